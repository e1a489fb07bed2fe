import type { PowerAction } from "../machines/qemu";
import { AzureError } from "./azure-error";
import { Breakpoint } from "./breakpoints";
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
  /** Makes a part of a control plane sick, and all of it well, where machines are simulated. */
  readonly sicken?: (machine: string, part: string) => Promise<void>;
  readonly cure?: (machine: string) => Promise<void>;
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
  const [, machine] = /^\/local\/machines\/([^/]+)\/sick$/.exec(path) ?? [];
  if (machine !== undefined) return health(hooks, method, machine, body);
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
    case "GET /local/faults":
      return { status: 200, body: cloud.faults.list() };
    case "POST /local/faults":
      await tell(() => cloud.faults.add(body as unknown as Fault));
      return { status: 204 };
    case "DELETE /local/faults":
      cloud.faults.clear();
      return { status: 204 };
    case "PUT /local/breakpoint":
      await tell(() => cloud.breakpoints.set(body as unknown as Breakpoint));
      return { status: 204 };
    case "GET /local/breakpoint":
      await cloud.breakpoints.reached();
      return { status: 204 };
    case "DELETE /local/breakpoint":
      cloud.breakpoints.clear();
      return { status: 204 };
    case "PUT /local/durations":
      await tell(() => cloud.durations.set(body as unknown as Pace));
      return { status: 204 };
    case "PUT /local/quotas":
      await tell(() => cloud.quotas.set(body as Record<string, number>));
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
        `${method} ${path} is nothing here; there are GET health, GET requests, GET, POST and DELETE faults, ` +
          "PUT, GET and DELETE breakpoint, PUT durations, PUT quotas, POST and DELETE machines/NAME/sick, " +
          "POST shutdown.",
      );
  }
}

/** A control plane's health: `{"component": "etcd"}` makes that sick, and DELETE all of it well. */
async function health(
  { sicken, cure }: Hooks,
  method: string,
  machine: string,
  { component }: Body,
): Promise<Answer> {
  if (sicken === undefined || cure === undefined)
    throw new AzureError(404, "NotFound", "Real machines are made sick by what runs in them.");
  if (method === "POST") await tell(() => sicken(machine, String(component)));
  else if (method === "DELETE") await tell(() => cure(machine));
  else throw new AzureError(405, "MethodNotAllowed", "Expected POST or DELETE.");
  return { status: 204 };
}

async function tell(change: () => void | Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    throw new AzureError(400, "BadRequest", (error as Error).message);
  }
}
