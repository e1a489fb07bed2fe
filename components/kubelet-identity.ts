import * as pulumi from "@pulumi/pulumi";

import type { ExistingIdentity } from "./azure/existing-identity";
import { kubeletIdentityName } from "./azure/resource-names";
import type { Shown } from "./azure/shown";
import type { ClusterGroup } from "./cluster-group";
import { ownIdentity } from "./identity";
import { hasOwnKubeletIdentity } from "./settings/own-identity";
import type { Settings } from "./settings/settings";

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
