import { setTimeout as sleep } from "node:timers/promises";

import { Interrupted } from "./user-error";

type Tasks<T extends readonly unknown[]> = {
  readonly [K in keyof T]: (signal: AbortSignal) => Promise<T[K]>;
};

/** Runs tasks concurrently. When one fails, it aborts the others, waits for them and throws the error. */
export async function runConcurrently<T extends readonly unknown[]>(
  signal: AbortSignal,
  tasks: readonly [...Tasks<T>],
): Promise<T> {
  const all = new AbortController();
  const either = AbortSignal.any([signal, all.signal]);
  const failures: unknown[] = [];
  const results = await Promise.all(
    tasks.map(async (task) => {
      try {
        return await task(either);
      } catch (error) {
        failures.push(error);
        all.abort();
        return undefined;
      }
    }),
  );
  if (signal.aborted) throw new Interrupted();
  if (failures.length > 0) throw failures.find((one) => !(one instanceof Interrupted));
  return results as readonly unknown[] as T;
}

/**
 * Does work whose signal is aborted with this one, and after so many milliseconds at the latest. A
 * timer of its own: what AbortSignal.timeout returns may be collected as garbage before its time where
 * nothing but AbortSignal.any has it (nodejs/node#57736).
 */
export async function withTimeLimit<T>(
  milliseconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const late = new Error(`no answer within ${milliseconds / 1000} s`);
  const timer = setTimeout(() => limit.abort(late), milliseconds);
  try {
    return await work(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Waits, unless the user does not want to wait any longer. */
export const pause = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
  sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new Interrupted();
  });
