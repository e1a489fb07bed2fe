import { setTimeout as pause } from "node:timers/promises";
import { Properties } from "../protocol/values";
import { Unreachable } from "./client";
import { annotation } from "./objects";
import { isFinal, Judge } from "./readiness";

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** What is over by then was not worth a word. */
const quietMs = 1000;
const defaultTimeoutSeconds = 600;

/** customTimeouts first, then the annotation, then ten minutes. */
export function timeoutOf(timeoutSeconds: number, inputs: Properties): number {
  const annotated = Number(annotation(inputs, "timeoutSeconds"));
  return timeoutSeconds || annotated || defaultTimeoutSeconds;
}

export interface Wait {
  readonly read: () => Promise<Properties>;
  readonly judge: Judge;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Told what is missing when it takes a while, and an empty text when that is over. */
  readonly progress: (flaw: string) => void;
}

export interface Outcome {
  readonly object: Properties;
  /** Why it was given up; undefined when all is well. */
  readonly flaw?: string;
}

/**
 * Looks at an object until it is as it should be. The pauses grow, since most are at once and some
 * take minutes.
 */
export async function awaited(first: Properties, wait: Wait): Promise<Outcome> {
  const start = Date.now();
  const end = start + wait.timeoutSeconds * 1000;
  let object = first;
  let told = "";
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    const flaw = wait.judge(object);
    if (flaw === undefined) {
      if (told !== "") {
        wait.progress("");
      }
      return { object };
    }
    if (isFinal(flaw)) {
      return { object, flaw };
    }
    if (Date.now() > end) {
      return { object, flaw: `${flaw} after ${wait.timeoutSeconds} seconds` };
    }
    if (flaw !== told && Date.now() > start + quietMs) {
      wait.progress(flaw);
      told = flaw;
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
      return { object, flaw: `${flaw}, and then ${why}` };
    }
  }
}
