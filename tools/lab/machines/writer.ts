import { setTimeout as wait } from "node:timers/promises";

import { succeeded } from "../local-cloud";
import { expectAll, expectSaid, expectSame } from "./claim";
import type { RealCluster } from "./real-cluster";

const namespace = "zoned-writer";
const everyMs = 1_000;

/** What a client saw of a cluster while something was done to it. */
export interface Written {
  /** Objects whose creation the API has acknowledged. */
  readonly acknowledged: readonly string[];
  readonly refused: number;
  /** The longest time without an acknowledgement, in seconds. */
  readonly silence: number;
}

export const saw = ({ acknowledged, refused, silence }: Written): string =>
  `${acknowledged.length} writes acknowledged, ${refused} refused, at most ${silence} s without one`;

/** Creates an object once a second through the balancer, one request after another. */
async function write(cluster: RealCluster, signal: AbortSignal): Promise<Written> {
  const run = Date.now().toString(36);
  const acknowledged: string[] = [];
  let [refused, silence, last] = [0, 0, Date.now()];
  while (!signal.aborted) {
    const since = Date.now();
    const name = `${run}-${acknowledged.length + refused}`;
    try {
      await cluster.kubectl(["create", "configmap", name, "--namespace", namespace]);
      acknowledged.push(name);
      silence = Math.max(silence, Date.now() - last);
      last = Date.now();
    } catch {
      refused += 1;
    }
    await wait(Math.max(0, since + everyMs - Date.now()), undefined, { signal }).catch(() => {});
  }
  return { acknowledged, refused, silence: Math.round(silence / 1000) };
}

/**
 * Writes while this work is done, and fails unless all that was acknowledged is there afterwards. A
 * write that was refused may be there or not.
 */
export async function whileWriting<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly written: Written }> {
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const over = new AbortController();
  const signal = AbortSignal.any([cluster.signal, over.signal]);
  const writing = write(cluster, signal);
  let result: T;
  try {
    result = await work();
  } finally {
    over.abort();
    await writing;
  }
  const written = await writing;
  const listed = await cluster.kubectl([
    ...["get", "configmaps", "--namespace", namespace, "--output", "name"],
  ]);
  const names = listed.split("\n").map((name) => name.replace("configmap/", ""));
  expectAll("acknowledged writes", names, written.acknowledged);
  return { result, written };
}

/** One stage of another key or CA by one update, on the same machines; returns what a client saw. */
export async function stage(cluster: RealCluster, says: string): Promise<string> {
  const before = await cluster.generations();
  const { result, written } = await whileWriting(cluster, () => cluster.up());
  expectSaid(succeeded(result).stdout, [says]);
  expectSame("machines", await cluster.generations(), before);
  return saw(written);
}
