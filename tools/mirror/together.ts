import { Interrupted } from "../shared/user-error";

type Works<T extends readonly unknown[]> = {
  readonly [K in keyof T]: (signal: AbortSignal) => Promise<T[K]>;
};

/** Does these things side by side; when one fails the others are aborted, and awaited. */
export async function together<T extends readonly unknown[]>(
  signal: AbortSignal,
  works: readonly [...Works<T>],
): Promise<T> {
  const all = new AbortController();
  const either = AbortSignal.any([signal, all.signal]);
  const failures: unknown[] = [];
  const results = await Promise.all(
    works.map(async (work) => {
      try {
        return await work(either);
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
