import { AzureError, OperationFailed } from "../resource-manager/azure-error";
import { Cloud } from "../resource-manager/cloud";

/** After how many seconds azure-native asks again. */
const delays = [20, 60, 120];

const statuses = new Set([408, 429, 500, 502, 503, 504]);

const isPassing = (error: unknown): boolean =>
  error instanceof AzureError &&
  !(error instanceof OperationFailed) &&
  (statuses.has(error.status) || error.code === "AnotherOperationInProgress");

/** Asks again as azure-native does, at the pace of the cloud's operations. */
export async function retried<T>(
  cloud: Cloud,
  ask: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (const seconds of delays) {
    try {
      return await ask();
    } catch (error) {
      if (!isPassing(error)) throw error;
    }
    await cloud.clock.sleep(seconds * 1000 * cloud.durations.factor);
    signal?.throwIfAborted();
  }
  return ask();
}
