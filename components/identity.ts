import * as authorization from "@pulumi/azure-native/authorization";
import * as managedidentity from "@pulumi/azure-native/managedidentity";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { knownOutput } from "./azure/known-output";
import { Shown, shownText } from "./azure/shown";
import { Settings } from "./settings/settings";
import { guid, Roles } from "./roles";

/** Azure's built-in roles by the ids that every tenant has. */
const builtIn = {
  networkContributor: "4d97b98b-1d4f-4787-a291-c67834d212e7",
  managedIdentityOperator: "f1a07417-d97a-45cb-824c-7a7467783830",
  storageBlobDataContributor: "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
} as const;

interface Grant {
  readonly what: string;
  readonly scope: pulumi.Input<string>;
  readonly roleDefinitionId: pulumi.Input<string>;
  readonly options: pulumi.CustomResourceOptions;
}

export interface IdentityArgs {
  readonly resourceGroup: ResourceGroup;
  readonly roles: Roles;
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly shown: Shown;
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
    const { resourceGroup, roles, settings, subscriptionId, shown } = args;

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
    const known = (property: "clientId" | "principalId") =>
      knownOutput(
        identity[property],
        identity,
        shownText(
          shown,
          "azure-native:managedidentity:UserAssignedIdentity",
          settings.clusterName,
          property,
        ),
      );
    this.credential = { clientId: known("clientId") };
    this.principalId = known("principalId");

    const assign = (
      what: string,
      scope: pulumi.Input<string>,
      roleDefinitionId: pulumi.Input<string>,
      options: pulumi.CustomResourceOptions,
    ) => this.grants.push({ what: `${name}-${what}`, scope, roleDefinitionId, options });
    const role = (id: string) =>
      `${subscription}/providers/Microsoft.Authorization/roleDefinitions/${id}`;
    assign("network", resourceGroup.id, role(builtIn.networkContributor), inGroup);
    // Not with the group, but before it: Azure deletes no role that is assigned.
    assign("machines", resourceGroup.id, roles.attachesDisks!, { parent: this });
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

    assign("zones", subscription, roles.readsProviders!, { parent: this });

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
