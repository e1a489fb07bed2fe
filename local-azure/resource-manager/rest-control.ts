import type { PowerAction } from "../machines/qemu";
import { AzureError } from "./azure-error";
import { Cloud } from "./cloud";
import { Pace } from "./durations";
import { Fault } from "./faults";
import { Body } from "./resource-type";

export interface Hooks {
  /** Told by /local/health, so that an older process is recognised. */
  readonly version?: string;
  /** More for /local/health, as ports of other servers of the same process. */
  readonly facts?: () => Body;
  /** Switches a machine off and on, where machines are real. */
  readonly power?: (id: string, action: PowerAction) => Promise<void>;
  /** Ends the process; called after the answer to /local/shutdown is on its way. */
  readonly shutdown?: () => void;
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

/** What steers the local Azure: for the commands and for tests, not for a program. */
export async function control(
  cloud: Cloud,
  hooks: Hooks,
  method: string,
  path: string,
  body: Body,
): Promise<Answer> {
  switch (`${method} ${path}`) {
    case "GET /local/health":
      return {
        status: 200,
        body: {
          pid: process.pid,
          version: hooks.version,
          empty: cloud.isEmpty,
          ...hooks.facts?.(),
        },
      };
    case "GET /local/requests":
      return { status: 200, body: cloud.log.read() };
    case "POST /local/faults":
      tell(() => cloud.faults.add(body as unknown as Fault));
      return { status: 204 };
    case "DELETE /local/faults":
      cloud.faults.clear();
      return { status: 204 };
    case "PUT /local/durations":
      tell(() => cloud.durations.set(body as unknown as Pace));
      return { status: 204 };
    case "POST /local/shutdown":
      if (hooks.shutdown === undefined)
        throw new AzureError(404, "NotFound", "This local Azure cannot be shut down by request.");
      setImmediate(hooks.shutdown);
      return { status: 202 };
    default:
      throw new AzureError(
        404,
        "NotFound",
        `${method} ${path} is nothing here; there are GET health, GET requests, POST and DELETE faults, PUT durations, POST shutdown.`,
      );
  }
}

function tell(change: () => void): void {
  try {
    change();
  } catch (error) {
    throw new AzureError(400, "BadRequest", (error as Error).message);
  }
}
