import { Interrupted } from "../trouble";

type Work = (signal: AbortSignal) => Promise<void>;

/** Does these things side by side; when one fails the others are told to stop, and awaited. */
export async function together(signal: AbortSignal, works: readonly Work[]): Promise<void> {
  const all = new AbortController();
  const either = AbortSignal.any([signal, all.signal]);
  const failures: unknown[] = [];
  await Promise.all(
    works.map(async (work) => {
      try {
        await work(either);
      } catch (error) {
        failures.push(error);
        all.abort();
      }
    }),
  );
  if (signal.aborted) throw new Interrupted();
  if (failures.length > 0) throw failures.find((one) => !(one instanceof Interrupted));
}
