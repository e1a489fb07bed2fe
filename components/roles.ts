import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import { inNetworks, machineRights } from "./azure/lacking-rights";
import type { AzureConnection } from "./azure/resource-manager";
import type { NetworkPart } from "./azure/existing-network";
import { ownRoleId, roleAt } from "./azure/role-ids";
import { stackName } from "./azure/stack-tag";
import { isAllowed, letOwnerGrant, type Permission, permissionsAt, permits } from "./azure/rights";
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

/** What the roles are to be; none where the settings name an identity or a service principal. */
function wantedRoles({ settings, subscriptionId }: RolesArgs) {
  if (!hasOwnIdentity(settings)) return [];
  const role = (what: string, does: string, actions: readonly string[], description: string) => ({
    ...{ what, actions },
    // No two roles of a tenant may have the same name.
    roleName: `${settings.clusterName} ${does} (${subscriptionId})`,
    description: `${description} Of stack ${stackName()}.`,
  });
  const parts = Object.entries(inNetworks) as [NetworkPart, string[]][];
  return [
    role(
      "attaches-disks",
      "attaches disks and takes snapshots of them",
      machineRights(settings),
      "For the cloud provider and the disk driver of this cluster.",
    ),
    // The cloud provider asks at its start which zones the region has, and ends when it may not.
    // The smallest built-in role that allows it reads everything.
    role(
      "reads-providers",
      "reads which zones a region has",
      ["Microsoft.Resources/subscriptions/providers/read"],
      "For the cloud provider of this cluster; it stops at its start without this.",
    ),
    ...(settings.nodeSubnets.length === 0 ? [] : parts).map(([part, actions]) =>
      role(
        `uses-${part}`,
        `uses a ${part.replace("-", " ")} of others`,
        actions,
        "For the cloud provider of this cluster, where its machines are.",
      ),
    ),
  ];
}

/**
 * Roles of the cluster's own, for its identity (role-assignments.ts).
 *
 * They belong to the subscription, and go with no group. Azure refuses to delete a role whose
 * assignment it has deleted a moment ago (`RoleDefinitionHasAssignments`), and a destroy repeats nothing: so
 * the resource group comes after them, which takes minutes to be deleted.
 */
export class Roles extends pulumi.ComponentResource {
  /** Their ids, by what they are for; those in networks only where the network is that of others. */
  readonly ids: ReadonlyMap<string, pulumi.Output<string>>;

  constructor(name: string, args: RolesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Roles", name, {}, opts);
    const { settings, subscriptionId } = args;
    const subscription = `/subscriptions/${subscriptionId}`;
    this.ids = new Map(
      wantedRoles(args).map(({ what, actions, ...texts }) => [
        what,
        new authorization.RoleDefinition(
          `${name}-${what}`,
          {
            scope: subscription,
            roleDefinitionId: ownRoleId(what, settings.clusterName, subscriptionId),
            ...texts,
            permissions: [{ actions: [...actions] }],
            assignableScopes: [subscription],
          },
          { parent: this },
        ).id,
      ]),
    );
    this.registerOutputs();
  }
}

interface ShownRole {
  readonly properties: {
    readonly description?: string;
    readonly permissions?: readonly Permission[];
  };
}

/** A role of the cluster's own, as far as the login may read it. */
const shownRole = (what: string, clusterName: string, { arm, subscriptionId }: AzureConnection) =>
  arm
    .get<ShownRole>(
      roleAt(ownRoleId(what, clusterName, subscriptionId), "", subscriptionId),
      { "api-version": "2022-04-01" },
      { properties: {} },
    )
    .catch(() => undefined);

/**
 * Why a living cluster's roles cannot allow more, as `autoRepair` or another release of this program wants: who may
 * change machines and assign roles need not be one who may change roles.
 */
export async function roleProblems(
  settings: RolesArgs["settings"],
  connection: AzureConnection,
): Promise<string[]> {
  const { arm, subscriptionId } = connection;
  const wanted = wantedRoles({ settings, subscriptionId });
  if (wanted.length === 0) return [];
  const subscription = `/subscriptions/${subscriptionId}`;
  const login = await permissionsAt(arm, subscription);
  if (isAllowed(login, "Microsoft.Authorization/roleDefinitions/write")) return [];
  const lacking = await Promise.all(
    wanted.map(async ({ what, actions }) => {
      const role = await shownRole(what, settings.clusterName, connection);
      return role === undefined
        ? []
        : actions.filter((action) => !permits(role.properties.permissions ?? [], action));
    }),
  );
  if (lacking.flat().length === 0) return [];
  return [
    `the login may not change the roles of the cluster's identity, which are to allow ${lacking.flat().join(", ")} as well: ` +
      letOwnerGrant("User Access Administrator", subscription),
  ];
}

/**
 * Why a first cluster cannot have these roles: they follow from subscription and name, in whichever resource group
 * it is, and another stack's cluster has them. One whose stack is not said was made by an older release.
 */
export async function takenRoles(
  settings: Pick<Settings, "clusterName" | "identityId" | "servicePrincipal">,
  connection: AzureConnection,
): Promise<string[]> {
  if (!hasOwnIdentity(settings)) return [];
  const { subscriptionId } = connection;
  const { clusterName } = settings;
  const role = await shownRole("attaches-disks", clusterName, connection);
  const [, stack = stackName()] =
    / Of stack (\S+)\.$/.exec(role?.properties.description ?? "") ?? [];
  if (stack === stackName()) return [];
  return [
    `clusterName is ${clusterName}, and subscription ${subscriptionId} has roles of a cluster of this name, of stack ${stack}: ` +
      `take another (${toSet("clusterName", "NAME")})`,
  ];
}
