import type { PowerAction, SimulatedBackend, VirtualMachine } from "../../machines/machines";
import { AzureError } from "../azure-error";
import { ResourceManager } from "../resource-manager";
import { Pace } from "../durations";
import { Breakpoint } from "../faults/breakpoints";
import { Fault } from "../faults/faults";
import { Body } from "../resources/resource";

export interface Hooks {
  /** Additional fields of /local/health. */
  readonly health?: () => Body;
  /** Switches a machine off and on. */
  readonly power?: (vm: VirtualMachine, action: PowerAction) => Promise<void>;
  /** What simulated machines can be asked for besides. */
  readonly simulated?: Pick<SimulatedBackend, "injectFailure" | "clearFailures" | "snapshot">;
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

/** The API under /local that controls the local Azure: for the commands and for tests. */
export async function control(
  arm: ResourceManager,
  hooks: Hooks,
  method: string,
  path: string,
  body: Body,
): Promise<Answer> {
  const [, machine] = /^\/local\/machines\/([^/]+)\/failures$/.exec(path) ?? [];
  if (machine !== undefined) return failures(hooks, method, machine, body);
  const [, saved] = /^\/local\/machines\/([^/]+)\/snapshot$/.exec(path) ?? [];
  const { simulated } = hooks;
  if (saved !== undefined && method === "POST" && simulated !== undefined) {
    await asBadRequest(() => simulated.snapshot(saved));
    return { status: 204 };
  }
  switch (`${method} ${path}`) {
    case "GET /local/health":
      return {
        status: 200,
        body: {
          pid: process.pid,
          empty: arm.isEmpty,
          ...hooks.health?.(),
        },
      };
    case "GET /local/requests":
      return { status: 200, body: arm.log.read() };
    case "GET /local/faults":
      return { status: 200, body: arm.faults.list() };
    case "POST /local/faults":
      await asBadRequest(() => arm.faults.add(body as unknown as Fault));
      return { status: 204 };
    case "DELETE /local/faults":
      arm.faults.clear();
      return { status: 204 };
    case "PUT /local/breakpoint":
      await asBadRequest(() => arm.breakpoints.set(body as unknown as Breakpoint));
      return { status: 204 };
    case "GET /local/breakpoint":
      await arm.breakpoints.reached();
      return { status: 204 };
    case "DELETE /local/breakpoint":
      arm.breakpoints.clear();
      return { status: 204 };
    case "PUT /local/durations":
      await asBadRequest(() => arm.durations.set(body as unknown as Pace));
      return { status: 204 };
    case "PUT /local/quotas":
      await asBadRequest(() => arm.quotas.set(body as Record<string, number>));
      return { status: 204 };
    default:
      throw new AzureError(
        404,
        "NotFound",
        `${method} ${path} does not exist; there are GET health, GET requests, GET, POST and DELETE faults, ` +
          "PUT, GET and DELETE breakpoint, PUT durations, PUT quotas, POST and DELETE machines/NAME/failures, " +
          "POST machines/NAME/snapshot.",
      );
  }
}

/** POST `{"component": "etcd"}` makes that component unhealthy; DELETE makes all healthy. */
async function failures(
  { simulated }: Hooks,
  method: string,
  machine: string,
  { component }: Body,
): Promise<Answer> {
  if (simulated === undefined)
    throw new AzureError(
      404,
      "NotFound",
      "Only simulated machines can be made unhealthy by request.",
    );
  if (method === "POST")
    await asBadRequest(() => simulated.injectFailure(machine, String(component)));
  else if (method === "DELETE") await asBadRequest(() => simulated.clearFailures(machine));
  else throw new AzureError(405, "MethodNotAllowed", "Expected POST or DELETE.");
  return { status: 204 };
}

async function asBadRequest(change: () => void | Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    throw new AzureError(400, "BadRequest", (error as Error).message);
  }
}
