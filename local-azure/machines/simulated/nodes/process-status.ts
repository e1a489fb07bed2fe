import { get } from "node:https";

import type { ProcessStatus } from "../../supervisor";
import type { Body } from "../api";
import { readiness } from "./mirror-pods";

/** What ended by a signal has no exit code; of a kill, container runtimes say this one. */
const killed = 137;

/**
 * What a kubelet reports of a running pod whose only container is a process of this host; nothing
 * where it has said so before.
 */
export function statusOfProcess(
  pod: Body,
  { pid, since, restarts, lastExit }: ProcessStatus,
  isReady: boolean,
): Body | undefined {
  const [said] = pod.status.containerStatuses as Body[];
  const runs = pid !== undefined;
  const isSaid =
    said?.ready === isReady &&
    said?.restartCount === restarts &&
    (said?.state.running !== undefined) === runs;
  if (isSaid) return undefined;
  const { conditions, containerStatuses } = readiness(pod, isReady).status;
  const [, exitCode = killed] = /^exit code (\d+)$/.exec(lastExit ?? "") ?? [];
  return {
    conditions,
    containerStatuses: containerStatuses.map((one: Body) => ({
      ...one,
      started: runs,
      restartCount: restarts,
      state: runs
        ? { running: { startedAt: new Date(since).toISOString() }, waiting: null }
        : { running: null, waiting: { reason: "CrashLoopBackOff", message: lastExit } },
      ...(lastExit && {
        lastState: { terminated: { exitCode: Number(exitCode), reason: "Error" } },
      }),
    })),
  };
}

/** Whether a process that listens on this port counts as ready, as its kubelet would find out. */
export async function passesReadinessProbe(
  probe: Body | undefined,
  { pid, since }: ProcessStatus,
  port: number,
): Promise<boolean> {
  if (pid === undefined) return false;
  if (probe === undefined) return true;
  const { initialDelaySeconds = 0, timeoutSeconds = 1, httpGet } = probe;
  if (Date.now() - since < initialDelaySeconds * 1000) return false;
  return new Promise((resolve) => {
    const request = get(
      {
        ...{ host: "127.0.0.1", port, path: httpGet.path, timeout: timeoutSeconds * 1000 },
        // A kubelet takes any certificate.
        rejectUnauthorized: false,
      },
      (response) => {
        response.resume();
        const { statusCode = 0 } = response;
        resolve(statusCode >= 200 && statusCode < 400);
      },
    );
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}
