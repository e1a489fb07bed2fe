import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../api-server";
import { portRange } from "../settings/rules/argument-types";
import type { Settings } from "../settings/settings";
import { manifests as sources } from "../versions";
import { Flannel, netConf, podMtu } from "./flannel";
import { applyObjects, isWorkload, objectIn, parseObjects, Workload } from "./objects";
import { RollOutTarget, targetOf } from "./roll-out";

export interface CniArgs {
  readonly settings: Pick<Settings, "cni" | "podCidr" | "kubeadm">;
  readonly apiServer: ApiServer;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
}

/**
 * The pod network that the settings name, or nothing for those who bring their own.
 *
 * It is applied, not awaited: machines become ready through it, so joins depend on this whole
 * component.
 */
export class Cni extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: CniArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Cni", name, {}, opts);
    const { cni } = args.settings;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    switch (cni) {
      case "canal":
        this.targets = new Canal("canal", args, child).targets;
        break;
      case "flannel":
        this.targets = new Flannel("flannel", args, child).targets;
        break;
      case "none":
        this.targets = [];
        break;
      default:
        throw new Error(`cni ${cni satisfies never} is not known`);
    }
    this.registerOutputs();
  }
}

export interface CanalArgs {
  readonly settings: Pick<Settings, "podCidr" | "kubeadm">;
  /** Text of upstream's files by path. */
  readonly manifests: ReadonlyMap<string, string>;
}

/**
 * Canal: flannel carries the pods' packets, Calico enforces network policies.
 *
 * Upstream's manifest, with the pod range and MTU of this cluster.
 */
export class Canal extends pulumi.ComponentResource {
  /** What to await once there are machines for it to run on. */
  readonly targets: readonly RollOutTarget[];

  constructor(name: string, args: CanalArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Canal", name, {}, opts);
    const { settings, manifests } = args;

    const objects = sources.canal.flatMap(({ path }) =>
      parseObjects(path, manifests.get(path) ?? ""),
    );
    const { data } = objectIn<{ data: Record<string, string> }>(
      objects,
      "ConfigMap",
      "canal-config",
    );
    data["net-conf.json"] = netConf(settings.podCidr);
    // Left to itself, Calico takes the network interface's MTU: it does not know of flannel's
    // VXLAN.
    data["veth_mtu"] = String(podMtu);

    const nodePorts = portRange(
      settings.kubeadm.apiServerExtraArgs["service-node-port-range"] ?? "",
    );
    if (nodePorts !== undefined) {
      // With IPVS, Calico tells node ports from the host's own by their range alone.
      const canal = objectIn<Workload>(objects, "DaemonSet", "canal");
      const node = canal.spec.template.spec.containers.find((one) => one.name === "calico-node");
      node?.env?.push({ name: "FELIX_KUBENODEPORTRANGES", value: nodePorts.join(":") });
    }

    applyObjects(name, objects, { parent: this, dependsOn: opts?.dependsOn });
    this.targets = objects.filter(isWorkload).map(targetOf);
    this.registerOutputs();
  }
}
