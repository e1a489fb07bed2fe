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

type Own = Omit<KnownArguments, "featureGates" | "dependencies"> & Partial<KnownArguments>;

/** A release as `npm run arguments` writes it: the gates that its programs share stand once. */
export interface KnownRelease extends Pick<KnownArguments, "featureGates" | "dependencies"> {
  /** Of each program what is its own, and which of the shared gates it does not have. */
  readonly programs: Readonly<Record<string, Own & { readonly without?: readonly string[] }>>;
}

/** What one program of a release takes. */
export function argumentsOf(
  { featureGates, dependencies, programs }: KnownRelease,
  program: string,
): KnownArguments {
  const { without = [], ...own } = programs[program]!;
  const gates = Object.entries(featureGates).filter(([name]) => !without.includes(name));
  return { featureGates: Object.fromEntries(gates), dependencies, ...own };
}

const read = (minor: string): KnownRelease =>
  JSON.parse(readFileSync(join(__dirname, "arguments", `${minor}.json`), "utf8"));

const byMinor = new Map<string, KnownRelease>();

/** What a component takes at a Kubernetes version; at the newest where there is no such version. */
export function knownArguments(component: Component, kubernetesVersion: string): KnownArguments {
  const { minor } = minorFor(kubernetesVersion);
  if (!byMinor.has(minor)) byMinor.set(minor, read(minor));
  return argumentsOf(byMinor.get(minor)!, programs[component]);
}
