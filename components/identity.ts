import { createHash } from "node:crypto";

import * as authorization from "@pulumi/azure-native/authorization";
import * as managedidentity from "@pulumi/azure-native/managedidentity";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Settings } from "./plan/settings/settings";

/** Azure's built-in roles by the ids that every tenant has. */
const builtIn = {
  networkContributor: "4d97b98b-1d4f-4787-a291-c67834d212e7",
  managedIdentityOperator: "f1a07417-d97a-45cb-824c-7a7467783830",
  storageBlobDataContributor: "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
} as const;

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

interface Grant {
  readonly what: string;
  readonly scope: pulumi.Input<string>;
  readonly roleDefinitionId: pulumi.Input<string>;
  readonly options: pulumi.CustomResourceOptions;
}

export interface IdentityArgs {
  readonly resourceGroup: ResourceGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
}

/** The identity of the cloud provider and the disk driver in Azure. */
export interface CloudCredential {
  /** Of the managed identity or the service principal. */
  readonly clientId: pulumi.Output<string>;
  /** Only of a service principal. */
  readonly clientSecret?: pulumi.Output<string>;
}

/**
 * A managed identity for the control plane machines, with the rights that the cloud provider and the
 * disk driver need, in networks more than that; or nothing at all, when the settings name a service
 * principal.
 *
 * Azure honours a new assignment within seconds to minutes; what runs on the machines retries for
 * so long.
 */
export class Identity extends pulumi.ComponentResource {
  readonly credential: CloudCredential;
  /** To be put on control plane machines; none with a service principal. */
  readonly resourceId?: pulumi.Output<string>;
  private readonly principalId?: pulumi.Output<string>;
  private readonly grants: Grant[] = [];

  constructor(name: string, args: IdentityArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Identity", name, {}, opts);
    const { resourceGroup, settings, subscriptionId } = args;

    if (settings.servicePrincipal !== undefined) {
      const { clientId, clientSecret } = settings.servicePrincipal;
      this.credential = { clientId: pulumi.output(clientId), clientSecret };
      this.registerOutputs();
      return;
    }

    const inGroup = { parent: this, deletedWith: resourceGroup };
    const subscription = `/subscriptions/${subscriptionId}`;
    const identity = new managedidentity.UserAssignedIdentity(
      `${name}-identity`,
      { resourceGroupName: resourceGroup.name, resourceName: settings.clusterName },
      inGroup,
    );
    this.resourceId = identity.id;
    this.credential = { clientId: identity.clientId };
    this.principalId = identity.principalId;

    const assign = (
      what: string,
      scope: pulumi.Input<string>,
      roleDefinitionId: pulumi.Input<string>,
      options: pulumi.CustomResourceOptions,
    ) => this.grants.push({ what: `${name}-${what}`, scope, roleDefinitionId, options });
    const role = (id: string) =>
      `${subscription}/providers/Microsoft.Authorization/roleDefinitions/${id}`;
    // It lies in no group, so that it goes with none.
    const ownRole = (
      what: string,
      does: string,
      actions: string[],
      description: string,
    ): authorization.RoleDefinition =>
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
      );
    const attachesDisks = ownRole(
      "attaches-disks",
      "attaches disks and takes snapshots of them",
      onMachines,
      "For the cloud provider and the disk driver of this cluster.",
    );
    assign("network", resourceGroup.id, role(builtIn.networkContributor), inGroup);
    // Not with the group: Azure deletes no role that is assigned, and the group goes last.
    assign("machines", resourceGroup.id, attachesDisks.id, { parent: this });
    // Attaching a disk is a PUT of location and data disks alone (as the driver does it). Whether Azure then
    // also checks the right to the identity that the machine has is not documented; OpenShift's
    // cluster-storage-operator asks for it for such machines.
    assign("itself", identity.id, role(builtIn.managedIdentityOperator), inGroup);

    // Not with the group: the container lies in another one.
    const container = settings.etcdBackups?.container;
    if (container !== undefined) {
      const writesBlobs = role(builtIn.storageBlobDataContributor);
      assign("snapshots", container, writesBlobs, { parent: this });
    }

    // The cloud provider asks at its start which zones the region has, and ends when it may not.
    // The smallest built-in role that allows it reads everything, so this is one of our own.
    const readsProviders = ownRole(
      "reads-providers",
      "reads which zones a region has",
      ["Microsoft.Resources/subscriptions/providers/read"],
      "For the cloud provider of this cluster; it stops at its start without this.",
    );
    assign("zones", subscription, readsProviders.id, { parent: this });

    this.registerOutputs();
  }

  /**
   * Gives the identity its rights.
   *
   * @param after something that takes a minute: a new identity and a new role are not known to all
   *   of Azure at once, and an assignment that is refused for it is not retried
   */
  grant(after: pulumi.Resource): void {
    const { principalId } = this;
    if (principalId === undefined) return;
    for (const { what, scope, roleDefinitionId, options } of this.grants) {
      new authorization.RoleAssignment(
        what,
        {
          scope,
          roleDefinitionId,
          principalId,
          principalType: "ServicePrincipal",
          // Derived from all three: an assignment can never be moved to another principal, scope or
          // role.
          roleAssignmentName: pulumi
            .all([principalId, scope, roleDefinitionId])
            .apply((parts) => guid(parts.join(" "))),
        },
        { ...options, dependsOn: [after] },
      );
    }
  }
}

/** A GUID that is always the same for the same text. */
const guid = (text: string): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-5$3-8$4-$5");
