import { setTimeout as pause } from "node:timers/promises";

import { fetch } from "../../settings/shell-proxy";

/** What a slow mirror may take, and how often a stumbling one is asked. */
const attempts = 3;
const secondsPerAttempt = 15;
const pauseMilliseconds = 500;

/** What an address holds. A server that stumbles is asked again, one that refuses is not. */
export async function download(url: string): Promise<Buffer> {
  for (let attempt = 1; ; attempt++) {
    const last = attempt === attempts;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(secondsPerAttempt * 1000) });
      if (response.ok) {
        return Buffer.from(await response.arrayBuffer());
      }
      const mayPass = response.status >= 500 || response.status === 429;
      if (last || !mayPass) {
        throw new Refusal(`HTTP ${response.status} ${response.statusText}`.trim());
      }
    } catch (error) {
      if (last || error instanceof Refusal) {
        throw error;
      }
    }
    await pause(attempt * pauseMilliseconds);
  }
}

/** An answer that asking again will not better. */
class Refusal extends Error {}

/**
 * Why something could not be read, in a user's words: fetch itself only ever says that it failed,
 * and why is in its cause.
 */
export function reasonOf(error: unknown): string {
  const { code, name, message, cause } = error as NodeJS.ErrnoException;
  if (cause !== undefined) {
    return reasonOf(cause);
  }
  if (name === "TimeoutError") {
    return `no answer within ${secondsPerAttempt} seconds`;
  }
  return code === "ENOENT" ? "no such file" : message || code || String(error);
}
