import { get } from "node:https";

import type { ProcessStatus } from "../../supervisor";
import type { Body } from "../api";
import { readyConditions } from "./mirror-pods";

/** What ended by a signal has no exit code; of a kill, container runtimes say this one. */
const killed = 137;

export interface ContainerProcess extends ProcessStatus {
  readonly isReady: boolean;
}

/**
 * What a kubelet reports of a running pod of which containers are processes of this host; nothing
 * where it has said so before.
 *
 * @param processes by the name of the container; the others count as running
 */
export function statusOfProcesses(
  { status }: Body,
  processes: ReadonlyMap<string, ContainerProcess>,
): Body | undefined {
  const said = status.containerStatuses as Body[];
  const containerStatuses = said.map((one): Body => {
    const process = processes.get(one.name);
    return process ? { ...one, ...statusOf(process) } : { ...one, ready: true };
  });
  const facts = ({ ready, restartCount, state }: Body): string =>
    `${ready} ${restartCount} ${Boolean(state.running)}`;
  if (containerStatuses.every((one, index) => facts(one) === facts(said[index]!))) return undefined;
  const unready = containerStatuses.filter(({ ready }) => !ready).map(({ name }) => name as string);
  return { conditions: readyConditions(unready), containerStatuses };
}

function statusOf({ pid, since, restarts, lastExit, isReady }: ContainerProcess): Body {
  const runs = pid !== undefined;
  const [, exitCode = killed] = /^exit code (\d+)$/.exec(lastExit ?? "") ?? [];
  return {
    ready: isReady,
    started: runs,
    restartCount: restarts,
    state: runs
      ? { running: { startedAt: new Date(since).toISOString() }, waiting: null }
      : { running: null, waiting: { reason: "CrashLoopBackOff", message: lastExit } },
    ...(lastExit && {
      lastState: { terminated: { exitCode: Number(exitCode), reason: "Error" } },
    }),
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
