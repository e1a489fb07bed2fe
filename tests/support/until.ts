import { setTimeout as wait } from "node:timers/promises";

/** Asks until there is an answer that is not undefined or false, for four minutes. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
): Promise<Exclude<T, undefined | false>> {
  for (const end = Date.now() + 240_000; Date.now() < end; await wait(200)) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>;
  }
  throw new Error(`waited in vain for ${what}`);
}
