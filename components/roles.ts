import { createHash } from "node:crypto";

import * as authorization from "@pulumi/azure-native/authorization";
import * as pulumi from "@pulumi/pulumi";

import { Settings } from "./settings/settings";

/**
 * What the cloud provider and the disk driver do with machines, disks and snapshots, and what Azure
 * wants of them for what a disk names: an encryption set is to be read, a disk or snapshot that is
 * copied is to be accessed. The smallest built-in role with all of this may also run commands on every
 * machine. Upstream lists more, for scale sets, Azure Files and networks: there are none of the first
 * two here, and networks have a role of their own.
 *
 * @see https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/master/docs/driver-parameters.md
 * @see https://cloud-provider-azure.sigs.k8s.io/topics/azure-permissions/
 * @see https://learn.microsoft.com/azure/aks/concepts-identity
 */
const onMachines = [
  "virtualMachines/read",
  "virtualMachines/instanceView/read",
  "virtualMachines/write",
  "disks/read",
  "disks/write",
  "disks/delete",
  "disks/beginGetAccess/action",
  "diskEncryptionSets/read",
  "snapshots/read",
  "snapshots/write",
  "snapshots/delete",
  "locations/DiskOperations/read",
  "locations/operations/read",
  "locations/vmSizes/read",
].map((action) => `Microsoft.Compute/${action}`);

export interface RolesArgs {
  readonly settings: Pick<Settings, "clusterName" | "servicePrincipal">;
  readonly subscriptionId: string;
}

/**
 * Roles of the cluster's own, for its identity (role-assignments.ts); none where the settings name a service
 * principal.
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

  constructor(name: string, args: RolesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Roles", name, {}, opts);
    const { settings, subscriptionId } = args;
    if (settings.servicePrincipal !== undefined) {
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
      onMachines,
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
    this.registerOutputs();
  }
}

/** A GUID that is always the same for the same text. */
export const guid = (text: string): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-5$3-8$4-$5");
