import { randomUUID } from "node:crypto";

import { Machines, PowerAction, VirtualMachine } from "../machines/machines";
import {
  checkReferences,
  checkRequest,
  groupBeingDeleted,
  isInFlight,
  notFound,
  setState,
  stateOf,
} from "./admission";
import {
  AzureError,
  conflict,
  methodNotAllowed,
  OperationFailed,
  refuse,
  subResourceNotFound,
} from "./azure-error";
import { Clock, Durations, wallClock } from "./durations";
import { Breakpoints, errorOf, Fault, Faults } from "./faults";
import {
  ArmId,
  Body,
  groupType,
  isWithin,
  keyOf,
  merged,
  parseId,
  pick,
  Reference,
  Resource,
  View,
} from "./resources/resource";
import { checkPolicies } from "./policy/policies";
import { Inventory, StateFile } from "./resources/inventory";
import { Outcome, RequestLog, Requests } from "./requests";
import { ResourceType, schemaOf, withKeptTags, withoutReadOnly } from "./types/resource-type";
import { ScheduledEvents } from "./scheduled-events";
import { Quotas } from "./subscription/quotas";
import { checkLocks } from "./types/authorization/guardrails";
import { SubResourceId, subResourceOf, typeOf } from "./types/types";
import { type Feature, featureBody, featureType, registered } from "./subscription/providers";
import { sizeEntry, sizesOf } from "./subscription/offers";
import { checkSwitchesOff } from "./types/compute/ephemeral-disk";
import { extensionViewOf, instanceViewOf } from "./types/compute/instance-view";
import {
  checkNotDeleting,
  checkNotGeneralized,
  checkPower,
  generalize,
  powerOf,
  setPower,
} from "./types/compute/power";
import { isMachine, machineOf } from "./types/compute/virtual-machine";
import { virtualMachineExtension } from "./types/compute/virtual-machine-extension";
import { noticeOfEnd } from "./types/compute/virtual-machine-validation";

export interface ResourceManagerArgs {
  /** One JSON file. One that exists is continued from. */
  readonly stateFile: string;
  readonly requestLog: string;
  readonly machines: Machines;
  readonly clock?: Clock;
  /** @default off */
  readonly durations?: Durations;
  /** @default none */
  readonly faults?: Faults;
  /** Called for each resource that is gone. */
  readonly removed?: (resource: Resource) => void;
  /** Called after every change, before its request is answered. */
  readonly networkChanged?: (view: View) => Promise<void>;
}

/** The headers If-Match and If-None-Match. */
interface Conditions {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
}

export interface ChangeOptions {
  readonly conditions?: Conditions;
  /** Called with Azure's first answer, when the operation goes on after it. */
  readonly accepted?: (outcome: Outcome) => void;
  /** Whether a machine that goes has approved it, or had its time. */
  readonly isAnnounced?: boolean;
}

interface ApplyOptions extends ChangeOptions {
  readonly fault?: Fault;
}

/** A simulated Azure Resource Manager, with the types that a cluster needs. */
export class ResourceManager {
  readonly durations: Durations;
  readonly faults: Faults;
  readonly quotas = new Quotas();
  /** Whether who has logged in owns the subscription, or may do what roles allow it alone. */
  readonly login = { isOwner: true };
  readonly log: RequestLog;
  readonly clock: Clock;
  readonly breakpoints = new Breakpoints();
  readonly scheduledEvents = new ScheduledEvents();
  private readonly machines: Machines;
  private readonly state: StateFile;
  private readonly inventory: Inventory;
  private readonly requests: Requests;
  private readonly locks = new OperationLocks();
  private readonly deletions = new Map<Resource, Promise<void>>();
  private readonly removed: ResourceManagerArgs["removed"];
  private readonly networkChanged: ResourceManagerArgs["networkChanged"];

  /** Throws UserError when the state file is damaged. */
  constructor({
    stateFile,
    requestLog,
    machines,
    clock,
    durations,
    faults,
    removed,
    networkChanged,
  }: ResourceManagerArgs) {
    this.machines = machines;
    this.removed = removed;
    this.networkChanged = networkChanged;
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
    await this.networkChanged?.(this.inventory);
  }

  /** What is there now, for the services beside the Resource Manager. */
  get view(): View {
    return this.inventory;
  }

  get isEmpty(): boolean {
    return [...this.inventory.all()].every(({ type }) => type === featureType);
  }

  /** The resource as GET returns it, or undefined, without an entry in the request log. */
  peek(id: string): Body | undefined {
    const resource = this.inventory.find(id);
    return resource && this.inventory.shown(resource);
  }

  /** Usage and limit of each quota that Microsoft.Compute or Microsoft.Network has in a region. */
  usagesIn(location: string, namespace: "compute" | "network"): object[] {
    return namespace === "compute"
      ? this.quotas.usagesIn(location, this.inventory)
      : this.quotas.addressUsagesIn(location, this.inventory);
  }

  get(id: string): Promise<Outcome> {
    return this.requests.answer("GET", id, async (armId, type) => {
      const subResource = subResourceOf(armId);
      const body = subResource ? this.inventory.shownSubResource(subResource) : this.peek(armId.id);
      if (subResource && body === undefined) throw subResourceNotFound(armId);
      if (body !== undefined) return { status: 200, body };
      throw notFound(type, armId, this.inventory);
    });
  }

  /** Everything below a subscription, a group or a resource. */
  list(scope: string): Resource[] {
    return this.inventory.descendants(scope);
  }

  /**
   * Creates or updates. Throws OperationFailed where Azure would accept the request and its operation
   * would fail.
   */
  put(id: string, body: Body, options: ChangeOptions = {}): Promise<Outcome> {
    return this.requests.answer("PUT", id, (armId, type, fault) => {
      const subResource = subResourceOf(armId);
      const sent = structuredClone(body);
      return subResource
        ? this.applySubResource(subResource, armId, sent, { ...options, fault })
        : this.apply(armId, type, sent, { ...options, fault });
    });
  }

  /** Changes tags and, of some types, other properties. What is left out stays. */
  patch(id: string, body: Body, options: ChangeOptions = {}): Promise<Outcome> {
    return this.requests.answer("PATCH", id, async (armId, type, fault) => {
      if (subResourceOf(armId) || !schemaOf(type).inputs.includes("tags")) {
        throw methodNotAllowed("PATCH", armId.type);
      }
      const current = this.inventory.find(armId.id);
      if (current === undefined) throw notFound(type, armId, this.inventory);
      const { tags = current.body["tags"], ...others } = structuredClone(body);
      const more = Object.fromEntries(
        Object.entries(others).filter(([key, value]) => value !== current.body[key]),
      );
      if (Object.keys(more).length > 0) {
        if (type.patches !== "inputs") {
          throw refuse(
            "InvalidRequestFormat",
            `Cannot parse the request: PATCH of ${armId.id} takes tags only.`,
          );
        }
        const changed = type.patched?.(current, more) ?? more;
        const sent = merged(pick(current.body, schemaOf(type).inputs), { tags, ...changed });
        return this.apply(armId, type, sent, { ...options, fault });
      }
      checkConditions(options.conditions, this.inventory.shown(current), armId);
      checkLocks(armId, "write", this.inventory);
      const changed = withKeptTags(type, { ...current.body, tags });
      checkPolicies(armId, type, changed, { view: this.inventory, now: this.clock.now() });
      checkIdle(current);
      current.body = changed;
      current.changed = this.clock.now().toISOString();
      await this.changed();
      return { status: 200, body: this.inventory.shown(current) };
    });
  }

  /** A sub-resource changes by a PUT of the resource that it belongs to; undefined deletes it. */
  private async applySubResource(
    { owner, ownerType, list, name }: SubResourceId,
    id: ArmId,
    body: Body | undefined,
    { accepted, ...options }: ApplyOptions,
  ): Promise<Outcome> {
    if (!ownerType.maintainIfUnset?.includes(list)) {
      throw methodNotAllowed(body === undefined ? "DELETE" : "PUT", id.type);
    }
    const resource = this.inventory.find(owner.id);
    if (resource === undefined) throw notFound(ownerType, owner, this.inventory);
    const shown = this.inventory.shown(resource);
    const subResources = (shown[list] ?? []) as { name: string }[];
    const at = subResources.findIndex(
      (subResource) => subResource.name.toLowerCase() === name.toLowerCase(),
    );
    if (at < 0 && body === undefined) return { status: 204, body: {} };
    const changed: Body[] = subResources.toSpliced(
      at < 0 ? subResources.length : at,
      at < 0 ? 0 : 1,
      ...(body === undefined ? [] : [{ ...body, name }]),
    );
    const status = body !== undefined && at < 0 ? 201 : 200;
    const subResource = () =>
      this.inventory.shownSubResource({ owner, ownerType, list, name }) ?? {};
    await this.apply(
      owner,
      ownerType,
      { ...pick(shown, schemaOf(ownerType).inputs), [list]: changed },
      { ...options, accepted: accepted && (() => accepted({ status, body: subResource() })) },
    );
    return { status, body: subResource() };
  }

  private async apply(
    id: ArmId,
    type: ResourceType,
    sent: Body,
    { fault, conditions, accepted: answer }: ApplyOptions,
  ): Promise<Outcome> {
    checkLocks(id, "write", this.inventory);
    const old = this.inventory.find(id.id);
    const checked = checkRequest(type, id, withoutReadOnly(type, sent), old, this.inventory);
    checkConditions(conditions, old && this.inventory.shown(old), id);
    const body =
      old && type.mergesOnPut
        ? merged(withoutReadOnly(type, pick(old.body, schemaOf(type).inputs)), checked)
        : checked;
    checkPolicies(id, type, body, { view: this.inventory, now: this.clock.now() });
    this.quotas.check(id, body, this.inventory);
    if (old) checkIdle(old);
    const milliseconds = this.durations.milliseconds(type.type, old ? "update" : "create");
    const release = this.locks.acquire(type, id, milliseconds);
    try {
      checkReferences(type, id, body, this.inventory);
      const now = this.clock.now();
      const admitted = type.accept(
        { id, body, old, now, pace: this.durations.factor },
        this.inventory,
      );
      const resource: Resource = {
        id: old?.id ?? id.id,
        type: type.type,
        body: withKeptTags(type, admitted.body),
        hidden: admitted.hidden ?? {},
        changed: now.toISOString(),
      };
      const status = old ? 200 : 201;
      const isLong = milliseconds > 0 || type.run !== undefined || fault !== undefined;
      // Network says of a new resource, too, that it is being updated.
      const isNew = old === undefined && !type.type.startsWith("Microsoft.Network/");
      setState(resource, !isLong ? "Succeeded" : isNew ? "Creating" : "Updating");
      type.commit?.(resource, this.inventory, now, old);
      this.inventory.put(resource);
      if (isLong) {
        const accepted = () => answer?.({ status, body: this.inventory.shown(resource) });
        await this.operate(type, resource, { old, sent: body, milliseconds, fault, accepted });
      }
      await this.changed();
      if (!isLong) await this.breakpoints.pass("accepted", "PUT", resource.id);
      return { status, body: this.inventory.shown(resource) };
    } finally {
      release();
    }
  }

  private async operate(
    type: ResourceType,
    resource: Resource,
    operation: {
      readonly old?: Resource;
      readonly sent: Body;
      readonly milliseconds: number;
      readonly fault?: Fault;
      readonly accepted: () => void;
    },
  ): Promise<void> {
    const { inventory: ledger, machines, requests } = this;
    const isEnding = () =>
      ledger.find(resource.id) !== resource || stateOf(resource.body) === "Deleting";
    try {
      await this.changed();
      await this.breakpoints.pass("accepted", "PUT", resource.id);
      operation.accepted();
      if (operation.milliseconds > 0) await this.clock.sleep(operation.milliseconds);
      if (operation.fault) throw errorOf(operation.fault);
      const { script } = requests;
      if (!isEnding()) await type.run?.({ ...operation, resource, ledger, machines, script });
      if (isEnding()) throw preempted();
      setState(resource, "Succeeded");
    } catch (thrown) {
      const error = isEnding() ? preempted() : thrown;
      const { status, code, message } =
        error instanceof AzureError
          ? error
          : new OperationFailed(200, "InternalExecutionError", (error as Error).message);
      resource.failure = { status, code, message };
      if (!isEnding()) setState(resource, "Failed");
      if (!operation.old) type.failed?.(resource, ledger, this.clock.now());
      if (!operation.old && operation.fault?.leavesNothing) await this.removeAll(resource.id);
      await this.state.save();
      throw new OperationFailed(status, code, message);
    }
  }

  /** The condition of a machine or of its extension, which GET does not return. */
  instanceView(id: string): Body | undefined {
    const resource = this.inventory.find(id);
    if (resource?.type === virtualMachineExtension.type) return extensionViewOf(resource);
    if (resource === undefined || !isMachine(resource)) return undefined;
    const isShutDown =
      powerOf(resource) === "running" &&
      this.machines.hasShutDown(machineOf(resource, this.inventory));
    return instanceViewOf(resource, isShutDown ? "stopped" : powerOf(resource));
  }

  /** The sizes that a machine can get as it is now. */
  sizesOf(id: string): object[] {
    const machine = this.inventory.find(id);
    if (machine === undefined || !isMachine(machine)) return [];
    const hasHardware = powerOf(machine) !== "deallocated";
    return sizesOf(machine.body.hardwareProfile?.vmSize ?? "", hasHardware).map(sizeEntry);
  }

  /** Registers a feature for the subscription. */
  async register(feature: Feature): Promise<Body> {
    this.inventory.put(registered(feature, this.clock.now()));
    await this.state.save();
    return featureBody(feature, this.inventory);
  }

  /** Switches a machine on or off. */
  power(
    id: string,
    action: PowerAction,
    {
      accepted,
      perform,
    }: Pick<ChangeOptions, "accepted"> & { readonly perform: (vm: VirtualMachine) => unknown },
  ): Promise<Outcome> {
    return this.requests.answer("POST", id, async (armId, type) => {
      const resource = this.inventory.find(armId.id);
      if (resource === undefined || !isMachine(resource))
        throw notFound(type, armId, this.inventory);
      checkLocks(armId, "write", this.inventory);
      checkNotDeleting(action, resource);
      checkSwitchesOff(armId, resource.body, action);
      if (action === "start" || action === "restart") checkNotGeneralized(action, resource);
      checkPower(action, resource);
      accepted?.({ status: 202, body: {} });
      await perform(machineOf(resource, this.inventory));
      setPower(resource, action);
      await this.state.save();
      return { status: 200, body: {} };
    });
  }

  /** Marks a machine that is off as one for images only. */
  generalize(id: string): Promise<Outcome> {
    return this.requests.answer("POST", id, async (armId, type) => {
      const resource = this.inventory.find(armId.id);
      if (resource === undefined || !isMachine(resource))
        throw notFound(type, armId, this.inventory);
      checkLocks(armId, "write", this.inventory);
      checkNotDeleting("generalize", resource);
      generalize(resource);
      await this.state.save();
      return { status: 200, body: {} };
    });
  }

  /** Deletes a resource and everything nested in it. One that does not exist in a group that does is no error. */
  delete(id: string, options: ChangeOptions = {}): Promise<Outcome> {
    return this.requests.answer("DELETE", id, async (armId, type) => {
      const subResource = subResourceOf(armId);
      if (subResource) return this.applySubResource(subResource, armId, undefined, options);
      const resource = this.inventory.find(armId.id);
      if (options.conditions) {
        checkConditions(options.conditions, resource && this.inventory.shown(resource), armId);
      }
      if (resource === undefined) {
        const missing = notFound(type, armId, this.inventory);
        if (missing.code === "ResourceGroupNotFound") throw missing;
        return { status: 204, body: {} };
      }
      checkLocks(armId, "delete", this.inventory);
      const running = this.deletions.get(resource);
      if (running && type.type === groupType) throw groupBeingDeleted(armId.name);
      if (running) options.accepted?.({ status: 202, body: {} });
      const deletion = running ?? this.end(armId, type, resource, options);
      this.deletions.set(resource, deletion);
      await deletion.finally(() => this.deletions.delete(resource));
      return { status: 200, body: {} };
    });
  }

  private async end(
    id: ArmId,
    type: ResourceType,
    resource: Resource,
    { accepted, isAnnounced }: ChangeOptions,
  ): Promise<void> {
    const milliseconds = this.durations.milliseconds(type.type, "delete");
    const release = this.locks.acquire(type, id, milliseconds);
    try {
      const users = this.inventory.referrers(resource.id);
      if (type.inUse && users.length > 0) throw type.inUse(resource.id, users);
      type.mayDelete?.(resource, this.inventory, this.clock.now(), this.durations.factor);
      if (milliseconds > 0) {
        setState(resource, "Deleting");
        await this.state.save();
      }
      accepted?.({ status: 202, body: {} });
      if (!isAnnounced) await this.announceEnd(resource);
      if (milliseconds > 0) await this.clock.sleep(milliseconds);
      const blocking = await this.removeAll(resource.id);
      await this.changed();
      await this.breakpoints.pass("accepted", "DELETE", resource.id);
      if (blocking.length > 0) throw deletionBlocked(id.name, blocking);
    } finally {
      release();
    }
  }

  /** Until a machine that wants to be told of its end has approved it, or its time has come. */
  private async announceEnd(resource: Resource): Promise<void> {
    if (!isMachine(resource) || powerOf(resource) !== "running") return;
    const notice = noticeOfEnd(resource.body);
    const { name } = machineOf(resource, this.inventory);
    if (notice === undefined || !this.scheduledEvents.isWatched(name)) return;
    const perform = async () => undefined;
    await this.scheduledEvents.schedule({
      ...{ machine: name, type: "Terminate", notice, isUsers: true, perform },
    }).done;
  }

  /** Removes machines before the resources that they use. Returns what of a group has to stay, as then the group does. */
  private async removeAll(id: string): Promise<Resource[]> {
    const root = this.inventory.find(id);
    const blocking = root?.type === groupType ? this.usedElsewhere(root) : [];
    const ends = (one: Resource) => !blocking.some((kept) => isWithin(one.id, kept.id));
    const removed = [
      ...this.inventory.descendants(id).filter(ends),
      ...(root && blocking.length === 0 ? [root] : []),
    ];
    if (root && blocking.length > 0) setState(root, "Succeeded");
    const machines = removed.filter(isMachine).map((one) => machineOf(one, this.inventory));
    await Promise.all(machines.map((machine) => this.machines.remove(machine)));
    for (const resource of removed) {
      this.inventory.remove(resource.id);
      typeOf(resource.type)?.deleted?.(resource, this.inventory, this.clock.now());
      this.removed?.(resource);
    }
    return blocking;
  }

  /** What of a group Azure does not delete, since others use it, or what it does not delete either. */
  private usedElsewhere(group: Resource): Resource[] {
    const { inventory } = this;
    const partsOf = ({ id }: Resource) => inventory.descendants(id);
    const all = partsOf(group).filter(({ id }) => keyOf(parseId(id)!.parent) === keyOf(group.id));
    const kept: Resource[] = [];
    const stays = ({ owner }: Reference) =>
      !isWithin(owner, group.id) || kept.some(({ id }) => isWithin(owner, id));
    const isUsed = (one: Resource): boolean =>
      typeOf(one.type)?.inUse !== undefined && inventory.referrers(one.id).some(stays);
    for (;;) {
      const more = all.filter((one) => !kept.includes(one) && [one, ...partsOf(one)].some(isUsed));
      if (more.length === 0) return kept;
      kept.push(...more);
    }
  }
}

/**
 * Azure allows one operation at a time on a virtual network, a security group or an identity's credentials.
 */
class OperationLocks {
  private readonly holders = new Map<string, string>();

  /** Returns the function that releases the lock. Operations without a duration need none. */
  acquire(type: ResourceType, id: ArmId, milliseconds: number): () => void {
    if (type.lock === undefined || milliseconds === 0) return () => undefined;
    const lock = type.lock(id);
    const key = keyOf(lock);
    const holder = this.holders.get(key);
    if (holder !== undefined) throw type.locked?.(lock) ?? inProgress(holder);
    this.holders.set(key, id.id);
    return () => void this.holders.delete(key);
  }
}

/** Throws when the resource is not in the condition that the client has seen it in. */
function checkConditions(
  { ifMatch, ifNoneMatch }: Conditions = {},
  shown: Body | undefined,
  { id }: ArmId,
): void {
  const etag = shown?.["etag"] as string | undefined;
  const isStale =
    ifMatch !== undefined &&
    (shown === undefined || (etag !== undefined && ifMatch !== "*" && ifMatch !== etag));
  const isThere =
    ifNoneMatch !== undefined &&
    shown !== undefined &&
    (ifNoneMatch === "*" || ifNoneMatch === etag);
  if (!isStale && !isThere) return;
  throw new AzureError(
    412,
    "PreconditionFailed",
    isStale
      ? `Etag provided in if-match header ${ifMatch} does not match etag ${etag ?? ""} of resource ${id} in NRP data store.`
      : `Etag provided in if-none-match header ${ifNoneMatch} matches etag ${etag ?? ""} of resource ${id}.`,
  );
}

const deletionBlocked = (group: string, kept: readonly Resource[]): AzureError => {
  const identifiers = kept.map(({ id }) => id.split("/providers/")[1]).join(",");
  return new OperationFailed(
    409,
    "ResourceGroupDeletionBlocked",
    `Deletion of resource group '${group}' failed as resources with identifiers '${identifiers}' could not be deleted. ` +
      `The provisioning state of the resource group will be rolled back. The tracking Id is '${randomUUID()}'. ` +
      "Please check audit logs for more details.",
  );
};

const preempted = (): AzureError =>
  new OperationFailed(
    200,
    "OperationPreempted",
    "The operation has been preempted by a more recent operation.",
  );

function checkIdle(resource: Resource): void {
  if (!isInFlight(resource)) return;
  if (isMachine(resource)) checkNotDeleting("Update VM", resource);
  if (!resource.type.startsWith("Microsoft.Compute/")) throw inProgress(resource.id);
  // azure-cli #15765. azure-native does not ask again after this code.
  throw conflict(
    "Conflict",
    "The request failed due to conflict with a concurrent request. To resolve it, please refer to " +
      "https://aka.ms/activitylog to get more details on the conflicting requests.",
  );
}

const inProgress = (id: string): AzureError =>
  conflict(
    "AnotherOperationInProgress",
    `Another operation on this or dependent resource is in progress. The resource is ${id}.`,
  );
