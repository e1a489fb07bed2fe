import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { CloudCredential } from "../identity";
import type { Initialization } from "../initialization";
import type { Settings } from "../settings";
import { ApiServer } from "./api-server";
import { CloudConfig } from "./cloud-config";
import { CloudControllerManager } from "./cloud-controller-manager";
import { DiskDriver } from "./disk-driver";
import { KubeProxy } from "./kube-proxy";
import { NodeAddOns } from "./node-add-ons";
import { RollOut } from "./roll-out";
import { StorageClasses } from "./storage-classes";

export interface AddOnsArgs {
  readonly resourceGroup: ResourceGroup;
  readonly settings: Settings;
  readonly tenantId: string;
  readonly subscriptionId: string;
  readonly credential: CloudCredential;
  readonly apiServer: ApiServer;
  /** Text of upstream's files by path. */
  readonly texts: ReadonlyMap<string, string>;
  /** In a living cluster a change waits until all machines are what they shall be. */
  readonly initialization: Pick<Initialization, "exists">;
  readonly proxyModeBefore?: Settings["proxyMode"];
  readonly nodeAddOns: NodeAddOns;
  /** What needs the identity runs on control planes, and its second replica on the second of them. */
  readonly controlPlaneJoins: readonly pulumi.Resource[];
  /** Ends of all joins. What runs on every machine is awaited after them. */
  readonly joins: readonly pulumi.Resource[];
  /** Ids of all machines. */
  readonly machineIds: readonly pulumi.Input<string>[];
}

/** What makes a cluster of ready nodes a useful one. Each part can be left out by a setting. */
export class AddOns extends pulumi.ComponentResource {
  constructor(name: string, args: AddOnsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:AddOns", name, {}, opts);
    const { resourceGroup, settings, nodeAddOns, controlPlaneJoins, joins, machineIds } = args;
    const { exists } = args.initialization;
    const atOnce = { parent: this, dependsOn: opts?.dependsOn };
    const [initial, ...others] = controlPlaneJoins;
    const twoControlPlanes = [initial!, ...others.slice(0, 1)];
    const onControlPlanes = {
      parent: this,
      dependsOn: [nodeAddOns, ...(exists ? controlPlaneJoins : twoControlPlanes)],
    };
    // Its modules must be seen on every machine before the mode of a living cluster changes.
    const kubeProxy = new KubeProxy("kube-proxy", args, {
      parent: this,
      dependsOn: exists ? [...joins] : [initial!],
    });
    const awaited: (NodeAddOns | KubeProxy | DiskDriver)[] = [nodeAddOns, kubeProxy];

    if (settings.cloudProvider || settings.diskDriver) {
      const cloudConfig = new CloudConfig("cloud-config", args, atOnce);
      if (settings.cloudProvider) {
        new CloudControllerManager(
          "cloud-controller-manager",
          { ...args, cloudConfig },
          onControlPlanes,
        );
      }
      if (settings.diskDriver) {
        awaited.push(new DiskDriver("disk-driver", { ...args, cloudConfig }, onControlPlanes));
      }
    }
    if (settings.storageClasses) {
      new StorageClasses("storage-classes", { resourceGroup, settings }, atOnce);
    }
    new RollOut(
      "roll-out",
      { resourceGroup, targets: awaited.flatMap(({ targets }) => targets), machineIds },
      { parent: this, dependsOn: [...awaited, ...joins] },
    );
    this.registerOutputs();
  }
}
