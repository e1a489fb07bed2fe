import { Machines } from "../machines/machines";
import {
  admit,
  checkReferences,
  groupLeaving,
  isInFlight,
  notFound,
  setState,
  stateOf,
} from "./admission";
import { AzureError, OperationFailed } from "./azure-error";
import { Breakpoints } from "./breakpoints";
import { Clock, wallClock } from "./clock";
import { Durations } from "./durations";
import { errorOf, Fault, Faults } from "./faults";
import { Holds, inProgress } from "./holds";
import { ArmId } from "./ids";
import { Inventory } from "./inventory";
import { Quotas } from "./quotas";
import { withoutReadOnly } from "./read-only";
import { RequestLog } from "./request-log";
import { Outcome, Requests } from "./requests";
import { Body, Resource, ResourceType } from "./resource-type";
import { StateFile } from "./state-file";
import { typeOf } from "./types";
import { isMachine, machineOf } from "./types/virtual-machine";

export interface CloudArgs {
  /** One JSON file; a cloud that is given the same file again is the same cloud. */
  readonly stateFile: string;
  readonly requestLog: string;
  readonly machines: Machines;
  readonly clock?: Clock;
  /** @default off */
  readonly durations?: Durations;
  /** @default none */
  readonly faults?: Faults;
}

/** Azure Resource Manager, as far as a cluster needs it. */
export class Cloud {
  readonly durations: Durations;
  readonly faults: Faults;
  readonly quotas = new Quotas();
  readonly log: RequestLog;
  readonly clock: Clock;
  readonly breakpoints = new Breakpoints();
  private readonly machines: Machines;
  private readonly state: StateFile;
  private readonly inventory: Inventory;
  private readonly requests: Requests;
  private readonly holds = new Holds();

  /** Throws UnreadableState when the state file is damaged. */
  constructor({ stateFile, requestLog, machines, clock, durations, faults }: CloudArgs) {
    this.machines = machines;
    this.clock = clock ?? wallClock;
    this.durations = durations ?? new Durations();
    this.faults = faults ?? new Faults();
    this.log = new RequestLog(requestLog);
    this.requests = new Requests(this.log, this.faults, this.breakpoints, this.clock);
    this.state = new StateFile(stateFile, () => this.inventory.all());
    this.inventory = new Inventory(this.state.load());
  }

  /** Brings back what the machines ran, and ends what was under way when the process before this one ended. */
  async resume(): Promise<void> {
    for (const resource of [...this.inventory.all()].filter(isInFlight)) {
      if (stateOf(resource.body) === "Deleting") await this.removeAll(resource.id);
      else {
        setState(resource, "Succeeded");
        typeOf(resource.type)?.interrupted?.(resource);
      }
    }
    await this.changed();
    const machines = [...this.inventory.all()].filter(isMachine);
    await this.machines.resume(machines.map((one) => machineOf(one, this.inventory)));
  }

  private async changed(): Promise<void> {
    await this.state.save();
    await this.machines.networkChanged?.(this.inventory);
  }

  get isEmpty(): boolean {
    return this.inventory.size === 0;
  }

  /** The resource as GET shows it, or undefined; not logged, for what is no request of its own. */
  peek(id: string): Body | undefined {
    const resource = this.inventory.find(id);
    return resource && this.inventory.shown(resource);
  }

  /** What is used of each quota in a region. */
  usagesIn(location: string): object[] {
    return this.quotas.usagesIn(location, this.inventory);
  }

  get(id: string): Promise<Outcome> {
    return this.requests.answer("GET", id, async (armId) => {
      const body = this.peek(armId.id);
      if (body !== undefined) return { status: 200, body };
      throw notFound(armId, this.inventory);
    });
  }

  /** What lies in a group, all of it or some types of it. */
  list(groupId: string, types?: readonly string[]): Resource[] {
    const wanted = types && new Set(types.map((type) => type.toLowerCase()));
    return this.inventory
      .descendants(groupId)
      .filter(({ type }) => wanted === undefined || wanted.has(type.toLowerCase()));
  }

  /** Creates or changes. Throws OperationFailed where Azure would accept the request and fail afterwards. */
  put(id: string, body: Body): Promise<Outcome> {
    return this.requests.answer("PUT", id, (armId, type, fault) =>
      this.apply(armId, type, structuredClone(body), fault),
    );
  }

  private async apply(id: ArmId, type: ResourceType, sent: Body, fault?: Fault): Promise<Outcome> {
    const old = this.inventory.find(id.id);
    const body = admit(type, id, withoutReadOnly(type, sent), old, this.inventory);
    this.quotas.check(id, body, this.inventory);
    if (old && isInFlight(old)) throw inProgress(old.id);
    const milliseconds = this.durations.milliseconds(type.type, old ? "update" : "create");
    const release = this.holds.take(type, id, milliseconds);
    try {
      checkReferences(type, id, body, this.inventory);
      const now = this.clock.now();
      const accepted = type.accept({ id, body, old, now }, this.inventory);
      const resource: Resource = {
        id: old?.id ?? id.id,
        type: type.type,
        body: accepted.body,
        hidden: accepted.hidden ?? {},
        changed: now.toISOString(),
      };
      const isLong = milliseconds > 0 || type.run !== undefined || fault !== undefined;
      setState(resource, !isLong ? "Succeeded" : old ? "Updating" : "Creating");
      type.commit?.(resource, this.inventory, now, old);
      this.inventory.put(resource);
      if (isLong) await this.operate(type, resource, { old, sent: body, milliseconds, fault });
      await this.changed();
      if (!isLong) await this.breakpoints.pass("accepted", "PUT", resource.id);
      return { status: old ? 200 : 201, body: this.inventory.shown(resource) };
    } finally {
      release();
    }
  }

  private async operate(
    type: ResourceType,
    resource: Resource,
    operation: { old?: Resource; sent: Body; milliseconds: number; fault?: Fault },
  ): Promise<void> {
    const { inventory: ledger, machines, requests } = this;
    try {
      await this.changed();
      await this.breakpoints.pass("accepted", "PUT", resource.id);
      if (operation.milliseconds > 0) await this.clock.sleep(operation.milliseconds);
      if (operation.fault) throw errorOf(operation.fault);
      await type.run?.({ ...operation, resource, ledger, machines, script: requests.script });
      setState(resource, "Succeeded");
    } catch (error) {
      const { status, code, message } =
        error instanceof AzureError
          ? error
          : new OperationFailed(200, "InternalExecutionError", (error as Error).message);
      resource.failure = { status, code, message };
      setState(resource, "Failed");
      if (!operation.old) type.failed?.(resource, ledger, this.clock.now());
      await this.state.save();
      throw new OperationFailed(status, code, message);
    }
  }

  /** Deletes, with everything nested in it. What is not there was deleted. */
  delete(id: string): Promise<Outcome> {
    return this.requests.answer("DELETE", id, async (armId, type) => {
      const resource = this.inventory.find(armId.id);
      if (resource === undefined) return { status: 204, body: {} };
      if (stateOf(resource.body) === "Deleting") throw groupLeaving(armId.group ?? armId.name);
      const milliseconds = this.durations.milliseconds(type.type, "delete");
      const release = this.holds.take(type, armId, milliseconds);
      try {
        type.mayDelete?.(resource, this.inventory, this.clock.now());
        if (milliseconds > 0) {
          setState(resource, "Deleting");
          await this.state.save();
          await this.clock.sleep(milliseconds);
        }
        await this.removeAll(resource.id);
        await this.changed();
        await this.breakpoints.pass("accepted", "DELETE", resource.id);
        return { status: 200, body: {} };
      } finally {
        release();
      }
    });
  }

  /** Machines end before what they stand on goes. */
  private async removeAll(id: string): Promise<void> {
    const root = this.inventory.find(id);
    const leaving = [...this.inventory.descendants(id), ...(root ? [root] : [])];
    const machines = leaving.filter(isMachine).map((one) => machineOf(one, this.inventory));
    await Promise.all(machines.map((machine) => this.machines.remove(machine)));
    for (const resource of leaving) {
      this.inventory.remove(resource.id);
      typeOf(resource.type)?.deleted?.(resource, this.inventory);
    }
  }
}
