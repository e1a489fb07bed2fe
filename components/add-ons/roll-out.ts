import { createHash } from "node:crypto";

import { DaemonSetPatch, DeploymentPatch } from "@pulumi/kubernetes/apps/v1";
import * as pulumi from "@pulumi/pulumi";

import { ManifestObject } from "./objects";

/** Something that was applied before it could run, and is awaited later. */
export interface RollOutTarget {
  readonly kind: "DaemonSet" | "Deployment";
  readonly namespace: string;
  readonly name: string;
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
  /** The machines it runs on, each with the run of its step. It is awaited again for a new one. */
  readonly machines: readonly string[];
}

/**
 * Ends when every target's pods are ready.
 *
 * The Kubernetes provider waits for whatever it changes, so this changes an annotation on each: it
 * names what the roll-out was last awaited for. The annotation that made the provider not wait
 * belongs to the object's other resource, and counts for that one only.
 */
export class RollOut extends pulumi.ComponentResource {
  constructor(name: string, args: RollOutArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:RollOut", name, {}, opts);
    const { targets, machines } = args;
    const child = { parent: this, dependsOn: opts?.dependsOn };

    for (const target of targets) {
      const Patch = target.kind === "DaemonSet" ? DaemonSetPatch : DeploymentPatch;
      new Patch(
        `${name}-${target.name}`,
        {
          metadata: {
            namespace: target.namespace,
            name: target.name,
            annotations: {
              "zoned/awaited-for": digest([target.spec, [...machines].sort()]),
            },
          },
        },
        child,
      );
    }
    this.registerOutputs();
  }
}

const digest = (of: unknown): string =>
  createHash("sha256").update(JSON.stringify(of)).digest("hex").slice(0, 16);
