import * as compute from "@pulumi/azure-native/compute";
import * as pulumi from "@pulumi/pulumi";

import { Machine } from "../machine/machine";
import { Membership } from "../machine/membership";
import { bootstrapControlPlane, controlPlaneType, makeControlPlane } from "./member";
import type { ControlPlaneArgs, Member } from "./member";

/**
 * The control plane that is the first in turn: it initializes the cluster. In a living cluster it is
 * the one that is not healthy, if there is one.
 */
export class InitialControlPlane extends pulumi.ComponentResource implements Member {
  readonly machine: Machine;
  readonly step: compute.VirtualMachineExtension;
  readonly membership: Membership;
  /** vmId of the machine that runs, or has run, `kubeadm init`. */
  readonly initialControlPlane: pulumi.Output<string>;
  /**
   * The other control planes' machines, by name, where the cluster is restored: while a machine of
   * the etcd before is left, two clusters might answer.
   */
  readonly replaced: ReadonlyMap<string, Machine>;

  constructor(name: string, args: ControlPlaneArgs, opts?: pulumi.ComponentResourceOptions) {
    super(controlPlaneType, name, {}, opts);
    const { initialization, turns } = args.plan;
    const [first, ...others] = turns;

    const machine = makeControlPlane(first!, args, this);
    const isInitialized = initialization.exists && !initialization.isRestoring;
    this.initialControlPlane = isInitialized
      ? pulumi.output(initialization.initialControlPlane ?? "nobody")
      : machine.vm.vmId;
    this.replaced = new Map(
      (initialization.isRestoring ? others : []).map((one) => [
        one.name,
        makeControlPlane(one, args, this),
      ]),
    );
    const { step, membership } = bootstrapControlPlane(machine, args, {
      initialControlPlane: this.initialControlPlane,
      after: [args.api, args.network, ...[...this.replaced.values()].map(({ vm }) => vm)],
      previous: [],
    });
    this.machine = machine;
    this.step = step;
    this.membership = membership;
    this.registerOutputs();
  }

  /**
   * Signals that the API answers, so that objects can be applied. The state of a
   * step that has failed is unknown until it has run again.
   */
  get initialized(): pulumi.Output<string> {
    return this.step.provisioningState;
  }
}
