import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import { inNetworks, machineRights } from "./azure/lacking-rights";
import type { AzureConnection } from "./azure/resource-manager";
import type { NetworkPart } from "./azure/existing-network";
import { type NetworkRole, ownRoleId, roleAt } from "./azure/role-ids";
import { stackName } from "./azure/stack-tag";
import { hasOwnIdentity } from "./settings/logins";
import { toSet } from "./settings/problem";
import { Settings } from "./settings/settings";

export interface RolesArgs {
  readonly settings: Pick<
    Settings,
    "autoRepair" | "clusterName" | "identityId" | "nodeSubnets" | "servicePrincipal"
  >;
  readonly subscriptionId: string;
}

/**
 * Roles of the cluster's own, for its identity (role-assignments.ts); none where the settings name an identity or
 * a service principal.
 *
 * They belong to the subscription, and go with no group. Azure refuses to delete a role whose
 * assignment it has deleted a moment ago (`RoleDefinitionHasAssignments`), and nobody repeats it: so
 * the resource group comes after them, which takes minutes to be deleted.
 */
export class Roles extends pulumi.ComponentResource {
  /** Its id. */
  readonly attachesDisks?: pulumi.Output<string>;
  /** Its id. */
  readonly readsProviders?: pulumi.Output<string>;
  /** Their ids; only where the network is that of others. */
  readonly inNetwork: ReadonlyMap<NetworkRole, pulumi.Output<string>> = new Map();

  constructor(name: string, args: RolesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Roles", name, {}, opts);
    const { settings, subscriptionId } = args;
    if (!hasOwnIdentity(settings)) {
      this.registerOutputs();
      return;
    }

    const subscription = `/subscriptions/${subscriptionId}`;
    const role = (what: string, does: string, actions: string[], description: string) =>
      new authorization.RoleDefinition(
        `${name}-${what}`,
        {
          scope: subscription,
          roleDefinitionId: ownRoleId(what, settings.clusterName, subscriptionId),
          // No two roles of a tenant may have the same name.
          roleName: `${settings.clusterName} ${does} (${subscriptionId})`,
          description: `${description} Of stack ${stackName()}.`,
          permissions: [{ actions }],
          assignableScopes: [subscription],
        },
        { parent: this },
      ).id;
    this.attachesDisks = role(
      "attaches-disks",
      "attaches disks and takes snapshots of them",
      machineRights(settings),
      "For the cloud provider and the disk driver of this cluster.",
    );
    // The cloud provider asks at its start which zones the region has, and ends when it may not.
    // The smallest built-in role that allows it reads everything.
    this.readsProviders = role(
      "reads-providers",
      "reads which zones a region has",
      ["Microsoft.Resources/subscriptions/providers/read"],
      "For the cloud provider of this cluster; it stops at its start without this.",
    );
    if (settings.nodeSubnets.length > 0) {
      const parts = Object.entries(inNetworks) as [NetworkPart, string[]][];
      this.inNetwork = new Map(
        parts.map(([part, actions]) => {
          const what = `uses-${part}` as const;
          const does = `uses a ${part.replace("-", " ")} of others`;
          const description = "For the cloud provider of this cluster, where its machines are.";
          return [what, role(what, does, actions, description)];
        }),
      );
    }
    this.registerOutputs();
  }
}

/**
 * Why a first cluster cannot have these roles: they follow from subscription and name, in whichever resource group
 * it is, and another stack's cluster has them. One whose stack is not said was made by an older release.
 */
export async function takenRoles(
  settings: Pick<Settings, "clusterName" | "identityId" | "servicePrincipal">,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  if (!hasOwnIdentity(settings)) return [];
  const { clusterName } = settings;
  const own = ownRoleId("attaches-disks", clusterName, subscriptionId);
  const role = await arm
    .get<{ readonly properties: { readonly description?: string } }>(
      roleAt(own, "", subscriptionId),
      { "api-version": "2022-04-01" },
      { properties: {} },
    )
    .catch(() => undefined);
  const [, stack = stackName()] =
    / Of stack (\S+)\.$/.exec(role?.properties.description ?? "") ?? [];
  if (stack === stackName()) return [];
  return [
    `clusterName is ${clusterName}, and subscription ${subscriptionId} has roles of a cluster of this name, of stack ${stack}: ` +
      `take another (${toSet("clusterName", "NAME")})`,
  ];
}
