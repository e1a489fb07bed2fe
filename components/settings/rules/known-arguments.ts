import { readFileSync } from "node:fs";
import { join } from "node:path";

import { minorFor } from "../../versions";
import type { Component } from "../settings";

/** What a program takes on its command line. */
export interface KnownArguments {
  /** The type of each flag, as its parser in Go is called. */
  readonly flags: Readonly<Record<string, string>>;
  /** Stage, default, and `locked` where that is all that a gate can be, such as `GA true locked`. */
  readonly featureGates: Readonly<Record<string, string>>;
  /** Which gates have to be on for a gate to be. */
  readonly dependencies: Readonly<Record<string, readonly string[]>>;
  /** What the entries of a list can be, by the name of its flag. */
  readonly values: Readonly<Record<string, readonly string[]>>;
}

export const programs: Readonly<Record<Component, string>> = {
  apiServerExtraArgs: "kube-apiserver",
  controllerManagerExtraArgs: "kube-controller-manager",
  schedulerExtraArgs: "kube-scheduler",
  etcdExtraArgs: "etcd",
  kubeletExtraArgs: "kubelet",
};

/** Written by `npm run arguments`, from the programs themselves. */
const read = (minor: string): Readonly<Record<string, KnownArguments>> =>
  JSON.parse(readFileSync(join(__dirname, "arguments", `${minor}.json`), "utf8"));

const byMinor = new Map<string, Readonly<Record<string, KnownArguments>>>();

/** What a component takes at a Kubernetes version; at the newest where there is no such version. */
export function knownArguments(component: Component, kubernetesVersion: string): KnownArguments {
  const { minor } = minorFor(kubernetesVersion);
  if (!byMinor.has(minor)) byMinor.set(minor, read(minor));
  return byMinor.get(minor)![programs[component]]!;
}
