import * as pulumi from "@pulumi/pulumi";

import { InitialControlPlane } from "./initial-control-plane";
import { bootstrapControlPlane, controlPlaneType, makeControlPlane } from "./member";
import type { ControlPlaneArgs, Member } from "./member";

export interface JoiningControlPlanesArgs extends ControlPlaneArgs {
  readonly initial: InitialControlPlane;
  /** What makes nodes Ready: a join ends when its node is. */
  readonly nodeAddOns: pulumi.Resource;
}

/**
 * All control planes but the first. They join one after another, since etcd admits one learner at a
 * time.
 *
 * On the first update all machines are made side by side. In a living cluster each waits until the
 * one before it is a healthy member again, so that never two are gone together.
 */
export class JoiningControlPlanes extends pulumi.ComponentResource {
  readonly members: readonly Member[];

  constructor(
    name: string,
    { initial, nodeAddOns, ...args }: JoiningControlPlanesArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super(controlPlaneType, name, {}, opts);
    const { initialControlPlane, replaced } = initial;
    const previous: Member[] = [initial];
    for (const plan of args.plan.turns.slice(1)) {
      const last = previous.at(-1)!;
      const machine = replaced.get(plan.name) ?? makeControlPlane(plan, args, this, last);
      const after = [nodeAddOns, last.step];
      previous.push(bootstrapControlPlane(machine, args, { initialControlPlane, after, previous }));
    }
    this.members = previous.slice(1);
    this.registerOutputs();
  }
}
