import { createHash } from "node:crypto";

import * as authorization from "@pulumi/azure-native/authorization";
import * as managedidentity from "@pulumi/azure-native/managedidentity";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Settings } from "./plan/settings/settings";

/** Azure's built-in roles by the ids that every tenant has. */
const builtIn = {
  networkContributor: "4d97b98b-1d4f-4787-a291-c67834d212e7",
  virtualMachineContributor: "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
  diskSnapshotContributor: "7efff54f-a5b4-42b5-a1c5-5411624893ce",
  managedIdentityOperator: "f1a07417-d97a-45cb-824c-7a7467783830",
} as const;

export interface IdentityArgs {
  readonly resourceGroup: ResourceGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
}

/** As whom the cloud provider and the disk driver talk to Azure. */
export interface CloudCredential {
  /** Of the managed identity or the service principal. */
  readonly clientId: pulumi.Output<string>;
  /** Only of a service principal. */
  readonly clientSecret?: pulumi.Output<string>;
}

/**
 * A managed identity for the control plane machines, with no more rights than the cloud provider
 * and the disk driver use; or nothing at all, when the settings name a service principal.
 *
 * Azure honours a new assignment within seconds to minutes; what runs on the machines retries for
 * so long.
 */
export class Identity extends pulumi.ComponentResource {
  readonly credential: CloudCredential;
  /** To be put on control plane machines; none with a service principal. */
  readonly resourceId?: pulumi.Output<string>;

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

    const assign = (
      what: string,
      scope: pulumi.Input<string>,
      roleDefinitionId: pulumi.Input<string>,
      options: pulumi.CustomResourceOptions,
    ) =>
      new authorization.RoleAssignment(
        `${name}-${what}`,
        {
          scope,
          roleDefinitionId,
          principalId: identity.principalId,
          principalType: "ServicePrincipal",
          // Derived from all three: an assignment can never be moved to another principal, scope or
          // role.
          roleAssignmentName: pulumi
            .all([identity.principalId, scope, roleDefinitionId])
            .apply((parts) => guid(parts.join(" "))),
        },
        options,
      );
    const role = (id: string) =>
      `${subscription}/providers/Microsoft.Authorization/roleDefinitions/${id}`;
    assign("network", resourceGroup.id, role(builtIn.networkContributor), inGroup);
    assign("machines", resourceGroup.id, role(builtIn.virtualMachineContributor), inGroup);
    assign("snapshots", resourceGroup.id, role(builtIn.diskSnapshotContributor), inGroup);
    // Attaching a disk is a PUT of location and data disks alone (driver v1.34.5). Whether Azure then
    // also checks the right to the identity that the machine has is not documented; OpenShift's
    // cluster-storage-operator asks for it for such machines.
    assign("itself", identity.id, role(builtIn.managedIdentityOperator), inGroup);

    // The cloud provider asks at its start which zones the region has, and ends when it may not.
    // The smallest built-in role that allows it reads everything, so this is one of our own.
    const readsProviders = new authorization.RoleDefinition(
      `${name}-reads-providers`,
      {
        scope: subscription,
        roleDefinitionId: guid(`reads-providers/${subscription}/${settings.clusterName}`),
        // No two roles of a tenant may have the same name.
        roleName: `${settings.clusterName} reads which zones a region has (${subscriptionId})`,
        description: "For the cloud provider of this cluster; it stops at its start without this.",
        permissions: [{ actions: ["Microsoft.Resources/subscriptions/providers/read"] }],
        assignableScopes: [subscription],
      },
      { parent: this },
    );
    // Neither lies in the group, so neither goes with it.
    assign("zones", subscription, readsProviders.id, { parent: this });

    this.registerOutputs();
  }
}

/** A GUID that is always the same for the same text. */
const guid = (text: string): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-5$3-8$4-$5");
