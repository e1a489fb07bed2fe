import { AzureError, ConnectionLost, OperationFailed } from "../resource-manager/azure-error";
import { Cloud } from "../resource-manager/cloud";

/** After how many seconds azure-native asks again. */
const delays = [20, 60, 120];

/** It does not wait longer for Azure's word, and then does not ask again. */
const longestWait = 120;

const statuses = new Set([408, 429, 500, 502, 503, 504]);

const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionLost ||
  (error instanceof AzureError &&
    !(error instanceof OperationFailed) &&
    (statuses.has(error.status) || error.code === "AnotherOperationInProgress"));

const wishOf = (error: unknown): number =>
  error instanceof AzureError ? (error.retryAfter ?? 0) : 0;

/** Asks again as azure-native does, at the pace of the cloud's operations and of Retry-After. */
export async function retried<T>(
  cloud: Cloud,
  ask: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (const seconds of delays) {
    let wait: number;
    try {
      return await ask();
    } catch (error) {
      if (!isPassing(error) || signal?.aborted || wishOf(error) > longestWait) throw error;
      wait = wishOf(error) || seconds;
    }
    await cloud.clock.sleep(wait * 1000 * cloud.durations.factor);
    signal?.throwIfAborted();
  }
  return ask();
}
