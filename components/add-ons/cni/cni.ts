import * as pulumi from "@pulumi/pulumi";

import type { ApiServer } from "../../api-server";
import type { Settings } from "../../settings/settings";
import { Canal } from "../cni";
import { Flannel } from "./flannel";
import { RollOutTarget } from "../roll-out";

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
