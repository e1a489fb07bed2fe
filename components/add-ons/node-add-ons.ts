import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../api-server";
import type { Settings } from "../settings/settings";
import { CloudNodeManager } from "./cloud-provider/cloud-node-manager";
import { Cni } from "./cni";
import { ownNodePolicy } from "./own-node";
import { RollOutTarget } from "./roll-out";
import { turns } from "./turns";

export interface NodeAddOnsArgs {
  readonly settings: Pick<
    Settings,
    "cni" | "podCidr" | "kubeadm" | "cloudProvider" | "diskDriver" | "reboots" | "kubernetesVersion"
  >;
  readonly apiServer: ApiServer;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
  /** What this update records of each machine, by its name. */
  readonly machineRecords: ReadonlyMap<string, unknown>;
}

/**
 * What a machine needs to become a ready node: the pod network, what gives it its zone, and where it says
 * that it is down; and before all pods on every machine, what keeps them to their own Node.
 *
 * Applied as soon as the API answers, and not awaited: joins depend on this, and {@link AddOns}
 * awaits it.
 */
export class NodeAddOns extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: NodeAddOnsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:NodeAddOns", name, {}, opts);
    const { settings } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    turns([...args.machineRecords.keys()], child);
    const policy = ownNodePolicy(settings, child);
    const bound = policy.length > 0 ? { ...child, dependsOn: policy } : child;
    const cni = new Cni("cni", args, bound);
    const nodeManager = settings.cloudProvider
      ? new CloudNodeManager("cloud-node-manager", args, bound)
      : undefined;
    this.targets = [...cni.targets, ...(nodeManager?.targets ?? [])];
    this.registerOutputs();
  }
}
