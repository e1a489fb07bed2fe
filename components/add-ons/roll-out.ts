import { createHash } from "node:crypto";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import { DaemonSetPatch, DeploymentPatch } from "@pulumi/kubernetes/apps/v1";
import * as pulumi from "@pulumi/pulumi";

import { KubernetesObject } from "./objects";

/** Something that was applied before it could run, and is awaited later. */
export interface RollOutTarget {
  readonly kind: "DaemonSet" | "Deployment";
  readonly namespace: string;
  readonly name: string;
  /** As it was applied. It is awaited again when this changes. */
  readonly spec: unknown;
}

export const targetOf = ({ kind, metadata, spec }: KubernetesObject): RollOutTarget => ({
  kind: kind as RollOutTarget["kind"],
  namespace: metadata.namespace ?? "default",
  name: metadata.name,
  spec,
});

export interface RollOutArgs {
  readonly resourceGroup: ResourceGroup;
  readonly targets: readonly RollOutTarget[];
  /** Ids of the machines it runs on. It is awaited again when one is new. */
  readonly machineIds: readonly pulumi.Input<string>[];
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
    const { resourceGroup, targets, machineIds } = args;
    const child = { parent: this, deletedWith: resourceGroup, dependsOn: opts?.dependsOn };

    for (const target of targets) {
      const Patch = target.kind === "DaemonSet" ? DaemonSetPatch : DeploymentPatch;
      new Patch(
        `${name}-${target.name}`,
        {
          metadata: {
            namespace: target.namespace,
            name: target.name,
            annotations: {
              "zoned/awaited-for": pulumi
                .all([...machineIds])
                .apply((ids) => digest([target.spec, [...ids].sort()])),
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
