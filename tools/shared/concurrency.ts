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
