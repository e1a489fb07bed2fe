import * as pulumi from "@pulumi/pulumi";

import { isSameSize } from "../azure/size-offers";
import { isOff, type MachineState } from "../azure/state";
import type { MemberUpgrade } from "../cluster/leave";

/** A dynamic resource whose provider is code of this checkout, wherever that lies. */
const providedBy = (name: "membership" | "drain"): string =>
  `exports.handler = () => require(process.cwd() + "/components/machine/membership-provider.cjs").${name};`;

interface MemberArgs {
  readonly machine: string;
  readonly role: "control-plane" | "worker";
  /** Of the VM; another one restarts it. */
  readonly size: string;
  /** The initialization of the cluster that the machine was made for. */
  readonly initialization: string;
  /** Secret; known before there is an API. */
  readonly kubeconfig: pulumi.Input<string>;
}

/**
 * Drains a machine before it is restarted for another size, or its kubelet becomes another version: VM and
 * bootstrap step are changed after it, and the step lets pods on it again.
 */
export class Drain extends pulumi.CustomResource {
  declare readonly drained: pulumi.Output<string>;
  /**
   * When the machine was last drained for another size; empty where it never was. It comes from Azure
   * where this update drains nothing for that: a preview does not know what a resource puts out that
   * changes in any way.
   */
  readonly lastDrained: pulumi.Output<string>;
  /**
   * The size that it was drained for. Where `--target` or `--exclude` leave this resource out, that is
   * the size before, so that the VM keeps it.
   */
  declare readonly size: pulumi.Output<string>;

  constructor(
    args: MemberArgs,
    /**
     * What Azure shows, if it has the machine. Pulumi's state may have a drain whose VM was left out, and
     * not its restart.
     */
    now: Pick<MachineState, "size" | "drained" | "power" | "bootstrap"> | undefined,
    /** Whether there is a cluster that it could be a member of. */
    exists: boolean,
    /** What its bootstrap step would make of a member; undefined where it has made that already. */
    upgrade: MemberUpgrade | undefined,
    opts: pulumi.CustomResourceOptions,
  ) {
    const resizes = now !== undefined && !isSameSize(now.size, args.size) ? true : undefined;
    const isEmpty = now === undefined || isOff(now) || !exists || now.bootstrap === undefined;
    const props = {
      ...args,
      resizes,
      upgrade: isEmpty ? undefined : upgrade,
      // Nothing is on it to be evicted, and an only control plane takes the API with it.
      isEmpty: resizes && isEmpty ? true : undefined,
      drained: undefined,
      __provider: providedBy("drain"),
    };
    super("pulumi-nodejs:dynamic/zoned:Drain", `${args.machine}-drain`, props, opts);
    this.lastDrained = resizes ? this.drained : pulumi.output(now?.drained ?? "");
  }
}

/**
 * That a machine is a member of the cluster. Its deletion takes the machine out: it is drained, its
 * etcd member and its Node are removed.
 *
 * It has the id of the VM as an input, and not only as a dependency: the engine deletes what has to
 * be replaced with a VM before that VM, and nothing else. Written without a closure, which would put
 * a copy of the code into the state.
 */
export class Membership extends pulumi.CustomResource {
  constructor(
    args: MemberArgs & { readonly vmId: pulumi.Input<string> },
    opts: pulumi.CustomResourceOptions,
  ) {
    const props = { ...args, __provider: providedBy("membership") };
    super("pulumi-nodejs:dynamic/zoned:Membership", `${args.machine}-membership`, props, opts);
  }
}
