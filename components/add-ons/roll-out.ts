import * as pulumi from "@pulumi/pulumi";

import type { RolledOut } from "../cluster/roll-out";
import { digest } from "../digest";
import { ManifestObject } from "./objects";

/** Something that was applied without waiting, and is awaited later. */
export interface RollOutTarget extends RolledOut {
  /** As it was applied. It is awaited again when this changes. */
  readonly spec: unknown;
}

export const targetOf = ({ kind, metadata, spec }: ManifestObject): RollOutTarget => ({
  kind: kind as RollOutTarget["kind"],
  namespace: metadata.namespace ?? "default",
  name: metadata.name,
  spec,
});

export interface RollOutArgs {
  readonly targets: readonly RollOutTarget[];
  /** What it follows, of machines each with the run of its step. It is awaited again for a new one. */
  readonly runs: readonly string[];
  /** Secret. */
  readonly kubeconfig: pulumi.Input<string>;
}

/**
 * Ends when every target's pods are ready, on all machines that are.
 *
 * The one wait of this program for what runs in the cluster. The Kubernetes provider would wait for machines that
 * are off, dead or about to be removed too, and for ten minutes however many there are; so every workload is
 * applied without waiting.
 * Written without a closure, which would put a copy of the code into the state.
 */
export class RollOut extends pulumi.CustomResource {
  constructor(name: string, args: RollOutArgs, opts: pulumi.CustomResourceOptions) {
    const { targets, runs, kubeconfig } = args;
    const props = {
      targets: targets.map(({ spec: _, ...target }) => target),
      // A specification has values of other resources in it.
      awaitedFor: pulumi.output([targets, [...runs].sort()]).apply(digest),
      kubeconfig,
      __provider:
        'exports.handler = () => require(process.cwd() + "/components/add-ons/roll-out-provider.cjs");',
    };
    super("pulumi-nodejs:dynamic/zoned:RollOut", name, props, opts);
  }
}
