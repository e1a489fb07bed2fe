import { setTimeout as wait } from "node:timers/promises";

import type { Given, RealCluster } from "./real-cluster";

/** A sentence about a cluster of real machines, and how it is checked. */
export interface Claim {
  readonly sentence: string;
  /** Throws what was got and what was expected; a text that it returns goes into the report. */
  check(cluster: RealCluster): Promise<string | void>;
  /** When it is not true, what comes after it in its chapter cannot be checked. */
  readonly isGround?: true;
}

/** The life of one cluster: each claim goes on where the one before it ended. */
export interface Chapter {
  /** Short, and the name of its folder. */
  readonly key: string;
  readonly name: string;
  /** Above those of Pulumi.machines.yaml. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Kubernetes versions that its machines are upgraded to. */
  readonly upgrades?: readonly string[];
  /** Its machines pull the images of add-ons. Those of other chapters have them on their disk, which is faster. */
  readonly pullsAddOns?: true;
  /** Makes what others have made before the cluster; again when the chapter is taken up. */
  readonly give?: (cluster: RealCluster) => Promise<Given>;
  readonly claims: readonly Claim[];
  /** Further claims, which upstream's program lists. They take a night: such a chapter is run only when it is named. */
  readonly listed?: (cluster: RealCluster) => Promise<readonly Claim[]>;
}

export interface Result {
  readonly chapter: string;
  readonly sentence: string;
  readonly outcome: "passed" | "failed" | "not run" | "not covered";
  readonly seconds?: number;
  /** A figure, or why it did not pass. */
  readonly note?: string;
}

/** Fails unless it is as expected, saying what it is instead. */
export function expectSame(what: string, got: unknown, expected: unknown): void {
  const [is, wanted] = [JSON.stringify(got), JSON.stringify(expected)];
  if (is !== wanted) throw new Error(`${what}: got ${is}, expected ${wanted}`);
}

export function expectAll(what: string, got: readonly string[], expected: readonly string[]): void {
  const missing = expected.filter((one) => !got.includes(one));
  if (missing.length > 0) {
    const there = [...got.slice(0, 40), ...(got.length > 40 ? ["…"] : [])].join(" ");
    throw new Error(`${what}: ${missing.join(", ")} missing from these ${got.length}: ${there}`);
  }
}

/** Fails unless what was said has all of this. */
export function expectSaid(said: string, words: readonly string[]): void {
  const missing = words.filter((word) => !said.includes(word));
  if (missing.length === 0) return;
  throw new Error(`nothing was said of ${missing.join(", ")}, but:\n${said.slice(-3000)}`);
}

const pauseMs = 2_000;

/** Tries until it does not throw; when the time is over, throws what the last try threw. */
export async function eventually<T>(
  seconds: number,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  for (const until = Date.now() + seconds * 1000; ;) {
    try {
      return await work();
    } catch (error) {
      if (Date.now() > until || signal.aborted) throw error;
      await wait(pauseMs, undefined, { signal });
    }
  }
}

/** Does this work, and counts something meanwhile, as often as it can be counted; returns the lowest count. */
export async function lowestDuring<T>(
  count: () => Promise<number>,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly lowest: number }> {
  let isOver = false;
  let lowest = Infinity;
  const look = async (): Promise<void> => {
    while (!isOver) {
      lowest = Math.min(lowest, await count().catch(() => Infinity));
      await wait(pauseMs);
    }
  };
  const looking = look();
  const result = await work().finally(() => (isOver = true));
  await looking;
  return { result, lowest };
}
