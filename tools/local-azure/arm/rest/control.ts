import { setTimeout as wait } from "node:timers/promises";

import type { PowerAction, SimulatedBackend, VirtualMachine } from "../../machines/machines";
import { AzureError } from "../azure-error";
import { ResourceManager } from "../resource-manager";
import { Pace } from "../durations";
import { Breakpoint, Fault } from "../faults";
import { Body } from "../resources/resource";
import { type EventType, eventTypes } from "../scheduled-events";
import { isMachine, machineOf } from "../types/compute/virtual-machine";

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
  const [, eventful] = /^\/local\/machines\/([^/]+)\/events$/.exec(path) ?? [];
  if (eventful !== undefined && method === "POST") {
    return {
      status: 200,
      body: { id: await asBadRequest(() => event(arm, hooks, eventful, body)) },
    };
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
    case "PUT /local/login":
      arm.login.isOwner = body["isOwner"] === true;
      return { status: 204 };
    default:
      throw new AzureError(
        404,
        "NotFound",
        `${method} ${path} does not exist; there are GET health, GET requests, GET, POST and DELETE faults, ` +
          "PUT, GET and DELETE breakpoint, PUT durations, PUT quotas, PUT login, POST and DELETE machines/NAME/failures, " +
          "POST machines/NAME/snapshot, POST machines/NAME/events.",
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

/** POST `{"type": "Redeploy", "notice": 600}` lets Azure announce that to a machine, and do it. */
function event(arm: ResourceManager, hooks: Hooks, name: string, { type, notice }: Body): string {
  const machine = arm.view
    .ofType("Microsoft.Compute/virtualMachines")
    .filter(isMachine)
    .map((resource) => machineOf(resource, arm.view))
    .find((one) => one.name.toLowerCase() === name);
  if (machine === undefined) throw new Error(`there is no machine ${name}`);
  const wanted = eventTypes.find((one) => one === type);
  if (wanted === undefined) {
    throw new Error(`type is ${String(type)}, expected one of ${eventTypes.join(", ")}`);
  }
  const power = async (action: PowerAction) => hooks.power?.(machine, action);
  const happens: Readonly<Record<EventType, () => Promise<unknown>>> = {
    Reboot: () => power("restart"),
    Redeploy: () => power("redeploy"),
    Freeze: () => wait(5000),
    Preempt: () =>
      arm.view.find(machine.id)?.body["evictionPolicy"] === "Deallocate"
        ? arm.power(machine.id, "deallocate", { perform: () => power("deallocate") })
        : arm.delete(machine.id, { isAnnounced: true }),
    Terminate: () => arm.delete(machine.id, { isAnnounced: true }),
  };
  const { id, done } = arm.scheduledEvents.schedule({
    ...{ machine: machine.name, type: wanted, perform: happens[wanted] },
    ...(notice !== undefined && { notice: Number(notice) }),
  });
  // What becomes of it is seen on the machine.
  done.catch(() => undefined);
  return id;
}

async function asBadRequest<T>(change: () => T | Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw new AzureError(400, "BadRequest", (error as Error).message);
  }
}
