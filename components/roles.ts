import { createHash } from "node:crypto";

import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import { inNetworks, machineRights } from "./azure/needed-rights";
import { hasOwnIdentity } from "./settings/own-identity";
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
  /** Its id; only where the network is that of others. */
  readonly usesNetwork?: pulumi.Output<string>;

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
          roleDefinitionId: guid(`${what}/${subscription}/${settings.clusterName}`),
          // No two roles of a tenant may have the same name.
          roleName: `${settings.clusterName} ${does} (${subscriptionId})`,
          description,
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
      this.usesNetwork = role(
        "uses-network",
        "uses a network of others",
        inNetworks,
        "For the cloud provider of this cluster, in the network that its machines are in.",
      );
    }
    this.registerOutputs();
  }
}

/** A GUID that is always the same for the same text. */
export const guid = (text: string): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-5$3-8$4-$5");
