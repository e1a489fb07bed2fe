import * as managedidentity from "@pulumi/azure-native/managedidentity";
import * as pulumi from "@pulumi/pulumi";

import type { ExistingIdentity } from "./azure/identities";
import { kubeletIdentityName } from "./azure/resource-names";
import { knownOutput, Shown, shownText } from "./azure/shown";
import type { ClusterGroup } from "./cluster-group";
import { parseIdentity } from "./settings/azure-ids";
import { hasOwnKubeletIdentity } from "./settings/logins";
import { Settings } from "./settings/settings";

export interface IdentityArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly shown: Shown;
  /** The one that the settings name. */
  readonly existingIdentity?: ExistingIdentity;
}

/** An identity of this program's own. What Azure has chosen of it, a preview knows too. */
export function ownIdentity(
  name: string,
  resourceName: string,
  { resourceGroup, shown }: Pick<IdentityArgs, "resourceGroup" | "shown">,
  parent: pulumi.Resource,
): Record<"id" | "name" | "clientId" | "principalId", pulumi.Output<string>> {
  const identity = new managedidentity.UserAssignedIdentity(
    `${name}-identity`,
    { resourceGroupName: resourceGroup.name, resourceName },
    { parent, deletedWith: resourceGroup.own },
  );
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const known = (property: "clientId" | "principalId") =>
    knownOutput(identity[property], identity, shownText(shown, token, resourceName, property));
  return {
    ...{ id: identity.id, name: identity.name },
    ...{ clientId: known("clientId"), principalId: known("principalId") },
  };
}

/** Where an identity is, for what belongs to it. */
export interface IdentityPlace {
  readonly resourceGroupName: pulumi.Input<string>;
  readonly resourceName: pulumi.Input<string>;
  /** Whether it goes with the cluster's own resource group. */
  readonly isOwn: boolean;
}

/** The identity of the cloud provider and the disk driver in Azure. */
export interface CloudCredential {
  /** Of the managed identity or the service principal. */
  readonly clientId: pulumi.Output<string>;
  /** Only of a service principal. */
  readonly clientSecret?: pulumi.Output<string>;
}

/**
 * A managed identity for the control plane machines, whose rights are in role-assignments.ts; or
 * nothing at all, when the settings name one that exists, or a service principal.
 */
export class Identity extends pulumi.ComponentResource {
  readonly credential: CloudCredential;
  /** To be put on control plane machines; none with a service principal. */
  readonly resourceId?: pulumi.Output<string>;
  /** Where it is; none with a service principal. */
  readonly place?: IdentityPlace;
  /** Whom roles are assigned to; none where others assign them. */
  readonly principalId?: pulumi.Output<string>;

  constructor(name: string, args: IdentityArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Identity", name, {}, opts);
    const { settings, existingIdentity } = args;

    if (settings.servicePrincipal !== undefined) {
      const { clientId, clientSecret } = settings.servicePrincipal;
      this.credential = { clientId: pulumi.output(clientId), clientSecret };
      this.registerOutputs();
      return;
    }

    if (existingIdentity !== undefined) {
      this.credential = { clientId: pulumi.output(existingIdentity.clientId) };
      this.resourceId = pulumi.output(settings.identityId);
      const { resourceGroup, name: resourceName } = parseIdentity(settings.identityId)!;
      this.place = { resourceGroupName: resourceGroup, resourceName, isOwn: false };
      this.registerOutputs();
      return;
    }

    const identity = ownIdentity(name, settings.clusterName, args, this);
    this.resourceId = identity.id;
    this.credential = { clientId: identity.clientId };
    this.principalId = identity.principalId;
    this.place = {
      ...{ resourceGroupName: args.resourceGroup.name, resourceName: identity.name, isOwn: true },
    };

    this.registerOutputs();
  }
}

export interface KubeletIdentityArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly shown: Shown;
  /** The one that the settings name. */
  readonly existingKubeletIdentity?: ExistingIdentity;
}

/**
 * The managed identity by which each machine's kubelet pulls images from registries, and which has no other right:
 * whoever breaks out of a pod has it. Nothing is made where there are no registries, or the settings name one.
 */
export class KubeletIdentity extends pulumi.ComponentResource {
  /** To be put on every machine; none without registries. */
  readonly resourceId?: pulumi.Output<string>;
  readonly clientId?: pulumi.Output<string>;
  /** Whom roles are assigned to; none where others assign them. */
  readonly principalId?: pulumi.Output<string>;

  constructor(name: string, args: KubeletIdentityArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:KubeletIdentity", name, {}, opts);
    const { settings, existingKubeletIdentity } = args;
    if (hasOwnKubeletIdentity(settings)) {
      const identity = ownIdentity(name, kubeletIdentityName(settings.clusterName), args, this);
      this.resourceId = identity.id;
      this.clientId = identity.clientId;
      this.principalId = identity.principalId;
    } else if (existingKubeletIdentity !== undefined) {
      this.resourceId = pulumi.output(settings.kubeletIdentityId);
      this.clientId = pulumi.output(existingKubeletIdentity.clientId);
    }
    this.registerOutputs();
  }
}
