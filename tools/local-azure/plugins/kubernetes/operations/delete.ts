import { setTimeout as pause } from "node:timers/promises";

import { Properties } from "../../protocol/values";
import { DynamicClient, isMissing, Unreachable } from "../api";
import { annotation, at, items, text, titleOf } from "../objects";

/** For these kinds, the annotation skipAwait holds for deletion too. */
const deletedWithoutWaiting = ["DaemonSet", "Deployment", "Namespace"];

const firstPauseMs = 50;
const longestPauseMs = 1000;
/** Shorter waits are not reported. */
const quietMs = 1000;
const defaultTimeoutSeconds = 600;

interface Deleting {
  readonly signal: AbortSignal;
  /** Of customTimeouts; 0 where there are none. */
  readonly timeoutSeconds: number;
  /** Gets what holds it back when it takes a while, and an empty text when that is over. */
  readonly progress: (why: string) => void;
}

/** What holds back an object that is to go. */
function heldBy(object: Properties): string {
  const finalizers = at(object, "metadata", "finalizers");
  const conditions = items(at(object, "status", "conditions"))
    .filter(({ status, type }) => status === "True" && /Remaining|Failure/.test(text(type)))
    .map(({ message }) => text(message));
  const held =
    Array.isArray(finalizers) && finalizers.length > 0
      ? [`finalizers ${finalizers.join(", ")}`]
      : [];
  return ["it is still there", ...held, ...conditions].join("; ");
}

/** Deletes an object and ends when it is gone. */
export async function deleted(
  cluster: DynamicClient,
  object: Properties,
  inputs: Properties,
  deleting: Deleting,
): Promise<void> {
  try {
    await cluster.remove(object);
  } catch (error) {
    if (isMissing(error)) {
      return;
    }
    throw error;
  }
  const skips =
    annotation(inputs, "skipAwait") === "true" && deletedWithoutWaiting.includes(text(object.kind));
  const before = skips ? undefined : await cluster.find(object, deleting.signal);
  if (before) await gone(cluster, before, deleting);
}

/** The pauses grow, since most are gone at once and some take minutes. */
async function gone(
  cluster: DynamicClient,
  before: Properties,
  { signal, timeoutSeconds, progress }: Deleting,
): Promise<void> {
  const title = titleOf(before);
  const start = Date.now();
  const limit = timeoutSeconds || defaultTimeoutSeconds;
  const failed = (why: string) => new Error(`${title} is being deleted, but not gone: ${why}`);
  let held = heldBy(before);
  let reported = "";
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    if (Date.now() > start + limit * 1000) throw failed(`${held} after ${limit} seconds`);
    if (held !== reported && Date.now() > start + quietMs) {
      progress(`waiting for ${title} to go: ${held}`);
      reported = held;
    }
    try {
      await pause(pauseMs, undefined, { signal });
      const found = await cluster.find(before, signal);
      // One that was made anew under the same name is another.
      if (!found || at(found, "metadata", "uid") !== at(before, "metadata", "uid")) break;
      held = heldBy(found);
    } catch (error) {
      // An API server that restarts in the meantime is back soon.
      if (error instanceof Unreachable && !signal.aborted) continue;
      const why = signal.aborted ? "the run was interrupted" : (error as Error).message;
      throw failed(`${held}, and then ${why}`);
    }
  }
  if (reported !== "") progress("");
}
