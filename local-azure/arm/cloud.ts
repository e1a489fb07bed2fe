import { Machines } from "../machines/machines";
import {
  checkReferences,
  checkRequest,
  groupBeingDeleted,
  isInFlight,
  notFound,
  setState,
  stateOf,
} from "./admission";
import { AzureError, conflict, OperationFailed } from "./azure-error";
import { Clock, Durations, wallClock } from "./durations";
import { Breakpoints } from "./faults/breakpoints";
import { errorOf, Fault, Faults } from "./faults/faults";
import { ArmId, keyOf } from "./ids";
import { Inventory } from "./inventory";
import { Outcome, RequestLog, Requests } from "./requests";
import { Body, Resource } from "./resource";
import { ResourceType, withoutReadOnly } from "./resource-type";
import { StateFile } from "./state-file";
import { Quotas } from "./subscription/quotas";
import { typeOf } from "./types";
import { isMachine, machineOf } from "./types/compute/virtual-machine";

export interface CloudArgs {
  /** One JSON file. A cloud that opens an existing file has its resources. */
  readonly stateFile: string;
  readonly requestLog: string;
  readonly machines: Machines;
  readonly clock?: Clock;
  /** @default off */
  readonly durations?: Durations;
  /** @default none */
  readonly faults?: Faults;
}

/** A simulated Azure Resource Manager, with the types that a cluster needs. */
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
  private readonly locks = new OperationLocks();

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

  /**
   * Restarts what the machines ran, and completes operations that were in progress when the
   * previous process ended.
   */
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

  /** The resource as GET returns it, or undefined, without an entry in the request log. */
  peek(id: string): Body | undefined {
    const resource = this.inventory.find(id);
    return resource && this.inventory.shown(resource);
  }

  /** Usage and limit of each quota in a region. */
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

  /** The resources of a group, all or of some types. */
  list(groupId: string, types?: readonly string[]): Resource[] {
    const wanted = types && new Set(types.map((type) => type.toLowerCase()));
    return this.inventory
      .descendants(groupId)
      .filter(({ type }) => wanted === undefined || wanted.has(type.toLowerCase()));
  }

  /**
   * Creates or updates. Throws OperationFailed where Azure would accept the request and its operation
   * would fail.
   */
  put(id: string, body: Body): Promise<Outcome> {
    return this.requests.answer("PUT", id, (armId, type, fault) =>
      this.apply(armId, type, structuredClone(body), fault),
    );
  }

  private async apply(id: ArmId, type: ResourceType, sent: Body, fault?: Fault): Promise<Outcome> {
    const old = this.inventory.find(id.id);
    const body = checkRequest(type, id, withoutReadOnly(type, sent), old, this.inventory);
    this.quotas.check(id, body, this.inventory);
    if (old && isInFlight(old)) throw inProgress(old.id);
    const milliseconds = this.durations.milliseconds(type.type, old ? "update" : "create");
    const release = this.locks.acquire(type, id, milliseconds);
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

  /** Deletes a resource and everything nested in it. One that does not exist is no error. */
  delete(id: string): Promise<Outcome> {
    return this.requests.answer("DELETE", id, async (armId, type) => {
      const resource = this.inventory.find(armId.id);
      if (resource === undefined) return { status: 204, body: {} };
      if (stateOf(resource.body) === "Deleting") throw groupBeingDeleted(armId.group ?? armId.name);
      const milliseconds = this.durations.milliseconds(type.type, "delete");
      const release = this.locks.acquire(type, armId, milliseconds);
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

  /** Removes machines before the resources that they use. */
  private async removeAll(id: string): Promise<void> {
    const root = this.inventory.find(id);
    const removed = [...this.inventory.descendants(id), ...(root ? [root] : [])];
    const machines = removed.filter(isMachine).map((one) => machineOf(one, this.inventory));
    await Promise.all(machines.map((machine) => this.machines.remove(machine)));
    for (const resource of removed) {
      this.inventory.remove(resource.id);
      typeOf(resource.type)?.deleted?.(resource, this.inventory);
    }
  }
}

/**
 * Azure allows one operation at a time on a virtual network or a security group.
 */
class OperationLocks {
  private readonly holders = new Map<string, string>();

  /** Returns the function that releases the lock. Operations without a duration need none. */
  acquire(type: ResourceType, id: ArmId, milliseconds: number): () => void {
    if (type.lock === undefined || milliseconds === 0) return () => undefined;
    const key = keyOf(type.lock(id));
    const holder = this.holders.get(key);
    if (holder !== undefined) throw inProgress(holder);
    this.holders.set(key, id.id);
    return () => void this.holders.delete(key);
  }
}

const inProgress = (id: string): AzureError =>
  conflict(
    "AnotherOperationInProgress",
    `Another operation on this or dependent resource is in progress. The resource is ${id}.`,
  );
