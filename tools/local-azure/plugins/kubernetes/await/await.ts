import { setTimeout as pause } from "node:timers/promises";
import { Properties } from "../../protocol/values";
import { Unreachable } from "../api/client";

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** Shorter waits are not reported. */
const quietMs = 1000;
const defaultTimeoutSeconds = 600;

/** customTimeouts, or ten minutes. */
export const timeoutOf = (timeoutSeconds: number): number =>
  timeoutSeconds || defaultTimeoutSeconds;

interface Wait {
  readonly read: () => Promise<Properties>;
  readonly rule: (object: Properties) => Promise<string | undefined>;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Gets what is missing when it takes a while, and an empty text when that is over. */
  readonly progress: (problem: string) => void;
}

interface Outcome {
  readonly object: Properties;
  /** Why it was given up; undefined when all is well. */
  readonly problem?: string;
}

/**
 * Looks at an object until it is as it should be. The pauses grow, since most are at once and some
 * take minutes.
 */
export async function awaited(first: Properties, wait: Wait): Promise<Outcome> {
  const start = Date.now();
  const end = start + wait.timeoutSeconds * 1000;
  let object = first;
  let reported = "";
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    const problem = await wait.rule(object);
    if (problem === undefined) {
      if (reported !== "") {
        wait.progress("");
      }
      return { object };
    }
    if (Date.now() > end) {
      return { object, problem: `${problem} after ${wait.timeoutSeconds} seconds` };
    }
    if (problem !== reported && Date.now() > start + quietMs) {
      wait.progress(problem);
      reported = problem;
    }
    try {
      await pause(pauseMs, undefined, { signal: wait.signal });
      object = await wait.read();
    } catch (error) {
      // An API server that restarts in the meantime is back soon.
      if (error instanceof Unreachable && !wait.signal.aborted) {
        continue;
      }
      const why = wait.signal.aborted ? "the run was interrupted" : (error as Error).message;
      return { object, problem: `${problem}, and then ${why}` };
    }
  }
}
