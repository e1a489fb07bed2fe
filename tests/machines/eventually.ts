import { setTimeout as wait } from "node:timers/promises";

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
