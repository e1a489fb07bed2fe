import type { IncomingHttpHeaders } from "node:http";

import type { PowerAction, VirtualMachine } from "../../machines/machines";
import { AzureError, badRequest, methodNotAllowed } from "../azure-error";
import { ChangeOptions, ResourceManager } from "../resource-manager";
import {
  account,
  ArmId,
  Body,
  groupType,
  locationOf,
  parseId,
  subscriptionPath,
} from "../resources/resource";
import { Outcome } from "../requests";
import { policyRestrictions } from "../policy/policies";
import { checkApiVersion, featureAt } from "../subscription/providers";
import { subResourceOf, typeOf } from "../types/types";
import { hasAccount, storageAccountType } from "../types/storage";
import { Authorization } from "./authorize";
import { Hooks } from "./control";
import { collectionOf, membersOf, pageOf, resourceEntries } from "./lists";
import { networkAnswer, subscriptionAnswer, subscriptionBody } from "./subscription";
import { Operations, waitingFor } from "./operations";
import { fromArm, toArm } from "./shape";

/** An answer of the REST API. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

interface ArmRequest {
  readonly method: string;
  readonly path: string;
  readonly url: URL;
  /** Scheme, host and port by which the client reaches this Azure. */
  readonly origin: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Body;
}

/** Azure Resource Manager's REST API, over the resources that azure-native's stand-in shares. */
export class ArmApi {
  private readonly operations: Operations;

  constructor(
    private readonly arm: ResourceManager,
    private readonly hooks: Hooks,
  ) {
    this.operations = new Operations(
      () => arm.durations.factor,
      () => arm.clock.now(),
    );
  }

  async answer(request: ArmRequest): Promise<Answer> {
    const { path, url, method, origin } = request;
    const version = url.searchParams.get("api-version");
    const poll = method === "GET" ? this.operations.poll(path, origin, url.search) : undefined;
    if (poll) return poll;
    checkApiVersion(version, typeAt(path), method);
    if (/^\/subscriptions$/i.test(path)) {
      return { status: 200, body: pageOf([subscriptionBody], url, origin) };
    }
    checkSubscription(path);
    this.authorizationOf(request).check(method, path);
    if (method === "GET") {
      const read = await this.list(request);
      if (read) return read;
    }
    const feature = featureAt(path);
    if (feature !== undefined) {
      if (method !== "POST" || feature.action?.toLowerCase() !== "register") {
        throw methodNotAllowed(method, "Microsoft.Features/providers/features");
      }
      return { status: 200, body: await this.arm.register(feature.feature) };
    }
    const [, asked] =
      /^(.+)\/providers\/Microsoft\.PolicyInsights\/checkPolicyRestrictions$/i.exec(path) ?? [];
    if (asked !== undefined) return this.policyRestrictions(request, asked);
    if (/\/providers\/Microsoft\.Storage\/checkNameAvailability$/i.test(path)) {
      return this.accountName(request);
    }
    const [, machine, action = ""] =
      /^(.+\/virtualMachines\/[^/]+)\/(start|restart|redeploy|powerOff|deallocate|simulateEviction|generalize|instanceView|vmSizes)$/i.exec(
        path,
      ) ?? [];
    if (machine !== undefined) return this.machine(request, parseId(machine)!, action);
    const id = parseId(path);
    if (id === undefined) {
      throw new AzureError(404, "InvalidResourceType", `The local Azure does not support ${path}.`);
    }
    return this.resource(request, id);
  }

  /** The answer when the path is that of a list, or of something else than a resource. */
  private async list(request: ArmRequest): Promise<Answer | undefined> {
    const { path, url, origin } = request;
    const filter = url.searchParams.get("$filter") ?? "";
    const expand = url.searchParams.get("$expand") ?? "";
    const page = (values: readonly unknown[]) => ({
      status: 200,
      body: pageOf(values, url, origin),
    });
    const [, permitted] =
      /^(.+)\/providers\/Microsoft\.Authorization\/permissions$/i.exec(path) ?? [];
    if (permitted !== undefined) {
      const all = this.authorizationOf(request).permissionsAt(permitted);
      return page(
        all.map((one) => ({ notActions: [], dataActions: [], notDataActions: [], ...one })),
      );
    }
    const fixed = subscriptionAnswer(this.arm, path, url.searchParams);
    if (fixed) return "list" in fixed ? page(fixed.list) : { status: 200, body: fixed.body };
    if (/^\/subscriptions\/[^/]+(\/resourceGroups\/[^/]+)?\/resources$/i.test(path)) {
      const scope = path.replace(/\/resources$/i, "");
      if (parseId(scope)?.type === groupType) await this.arm.get(scope);
      return page(resourceEntries(this.arm, scope, filter, expand));
    }
    const ofNetwork = await networkAnswer(this.arm, path, url.searchParams);
    if (ofNetwork) return { status: 200, body: ofNetwork };
    const member = collectionOf(path);
    return member && page(await membersOf(this.arm, member, filter));
  }

  private async resource(request: ArmRequest, id: ArmId): Promise<Answer> {
    const { method, headers, url } = request;
    if (id.type === "Microsoft.Resources/subscriptions") {
      return { status: 200, body: subscriptionBody };
    }
    const conditions = { ifMatch: headers["if-match"], ifNoneMatch: headers["if-none-match"] };
    switch (method) {
      case "GET": {
        const { status, body } = await this.arm.get(id.id);
        const isWithView = /instanceView/i.test(url.searchParams.get("$expand") ?? "");
        const view = isWithView ? this.arm.instanceView(id.id) : undefined;
        return found(id, { status, body: { ...body, ...(view && { instanceView: view }) } });
      }
      case "HEAD":
        await this.arm.get(id.id);
        return { status: 204 };
      case "PUT": {
        const body = fromArm(id, request.body);
        const part = subResourceOf(id);
        this.authorizationOf(request).checkLinks(
          id.id,
          part?.ownerType ?? typeOf(id.type),
          part === undefined ? body : { [part.list]: [{ ...body, name: part.name }] },
        );
        return this.change(request, id, (more) =>
          this.arm.put(id.id, body, { conditions, ...more }),
        );
      }
      case "PATCH": {
        const body = fromArm(id, request.body);
        return this.change(request, id, (more) =>
          this.arm.patch(id.id, body, { conditions, ...more }),
        );
      }
      case "DELETE":
        return this.change(request, id, (more) => this.arm.delete(id.id, { conditions, ...more }));
      default:
        throw methodNotAllowed(method, id.type);
    }
  }

  private async policyRestrictions({ method, body }: ArmRequest, scope: string): Promise<Answer> {
    if (method !== "POST") {
      throw methodNotAllowed(method, "Microsoft.PolicyInsights/checkPolicyRestrictions");
    }
    if (parseId(scope)?.type === groupType) await this.arm.get(scope);
    return { status: 200, body: policyRestrictions(scope, body, this.arm.view) };
  }

  private accountName({ method, body }: ArmRequest): Answer {
    if (method !== "POST")
      throw methodNotAllowed(method, "Microsoft.Storage/checkNameAvailability");
    const name = String(body["name"]);
    return {
      status: 200,
      body: hasAccount(name, this.arm.view)
        ? {
            nameAvailable: false,
            reason: "AlreadyExists",
            message: `The storage account named ${name} is already taken.`,
          }
        : { nameAvailable: true },
    };
  }

  private authorizationOf({ headers }: ArmRequest): Authorization {
    return new Authorization(headers.authorization, this.arm);
  }

  private async machine(request: ArmRequest, id: ArmId, action: string): Promise<Answer> {
    await this.arm.get(id.id);
    if (action.toLowerCase() === "instanceview") {
      if (request.method !== "GET") throw methodNotAllowed(request.method, id.type);
      return { status: 200, body: this.arm.instanceView(id.id) };
    }
    if (action.toLowerCase() === "vmsizes") {
      if (request.method !== "GET") throw methodNotAllowed(request.method, id.type);
      return { status: 200, body: { value: this.arm.sizesOf(id.id) } };
    }
    if (request.method !== "POST") throw methodNotAllowed(request.method, id.type);
    if (action.toLowerCase() === "simulateeviction") return this.evict(id);
    if (action.toLowerCase() === "generalize") {
      return { status: (await this.arm.generalize(id.id)).status };
    }
    const power = powerAction(action);
    return this.change(request, id, (options) => this.switch(id, power, options));
  }

  /** Azure does it within half an hour, and says so at once. */
  private async evict(id: ArmId): Promise<Answer> {
    const { priority, evictionPolicy } = (await this.arm.get(id.id)).body as {
      readonly priority?: string;
      readonly evictionPolicy?: string;
    };
    if (priority !== "Spot") {
      throw badRequest(
        `The simulateEviction operation is for Azure Spot Virtual Machines, and '${id.name}' is none.`,
      );
    }
    if (evictionPolicy === "Delete") await this.arm.delete(id.id);
    else await this.switch(id, "deallocate", {});
    return { status: 204 };
  }

  private switch(id: ArmId, power: PowerAction, { accepted }: ChangeOptions): Promise<Outcome> {
    return this.arm.power(id.id, power, {
      accepted,
      perform: (vm) => this.switched(vm, power),
    });
  }

  /** What a user asks for, too, waits for the machine's word where that is told of events. */
  private switched(vm: VirtualMachine, power: PowerAction): Promise<unknown> | undefined {
    const perform = async () => this.hooks.power?.(vm, power);
    const { scheduledEvents } = this.arm;
    const type = power === "restart" ? "Reboot" : power === "redeploy" ? "Redeploy" : undefined;
    if (type === undefined || !scheduledEvents.isWatched(vm.name)) return perform();
    return scheduledEvents.schedule({ machine: vm.name, type, isUsers: true, perform }).done;
  }

  /** Answers as soon as Azure does, which for most types is before the operation is done. */
  private async change(
    { method, origin, url }: ArmRequest,
    id: ArmId,
    start: (options: ChangeOptions) => Promise<Outcome>,
  ): Promise<Answer> {
    if (waitingFor(id.type, method) === undefined) {
      const outcome = await start({});
      return method === "DELETE" ? { status: outcome.status } : found(id, outcome);
    }
    const location = locationOf(id.id, this.arm.view) ?? "global";
    let accept: (outcome: Outcome) => void = () => undefined;
    const accepted = new Promise<Outcome>((resolve) => (accept = resolve));
    const done = start({ accepted: accept });
    const first = await Promise.race([accepted, done]);
    if (first.status === 204) return { status: 204 };
    const version = url.searchParams.get("api-version") ?? "";
    const shaped = done.then(({ status, body }) =>
      Object.keys(body).length === 0 ? { status, body } : { status, body: toArm(id, body) },
    );
    const headers = this.operations.track(shaped, {
      type: id.type,
      method,
      location,
      origin,
      version,
    });
    if (method === "DELETE" || method === "POST") return { status: 202, headers };
    const { status, body } = found(id, first);
    if (isAccount(id)) return status === 201 ? { status: 202, headers } : { status, body };
    const isDisk = /\/(disks|snapshots)$/i.test(id.type);
    return { status: isDisk ? 202 : status, body, headers };
  }
}

const isAccount = ({ type }: ArmId): boolean =>
  type.toLowerCase() === storageAccountType.toLowerCase();

function found(id: ArmId, { status, body }: Outcome): Answer {
  const etag = body["etag"];
  return {
    status,
    body: toArm(id, body),
    headers: typeof etag === "string" ? { etag } : {},
  };
}

/** The type that a path is about, for its API versions. */
function typeAt(path: string): string {
  const [, namespace, rest = ""] = /^.*\/providers\/([^/]+)(?:\/(.*))?$/i.exec(path) ?? [];
  // A provider's description is Resource Manager's own.
  if (namespace === undefined || rest === "") return "Microsoft.Resources/subscriptions";
  return `${namespace}/${rest.split("/")[0]}`;
}

function checkSubscription(path: string): void {
  const [, id] = /^\/subscriptions\/([^/]+)/i.exec(path) ?? [];
  if (id === undefined || `/subscriptions/${id.toLowerCase()}` === subscriptionPath) return;
  const isGuid = id.length === account.subscriptionId.length;
  throw isGuid
    ? new AzureError(404, "SubscriptionNotFound", `The subscription '${id}' could not be found.`)
    : new AzureError(
        400,
        "InvalidSubscriptionId",
        `The provided subscription identifier '${id}' is malformed or invalid.`,
      );
}

/** Azure compares names of actions case-insensitively. */
const powerAction = (action: string): PowerAction =>
  (["start", "restart", "redeploy", "powerOff", "deallocate"] as const).find(
    (one) => one.toLowerCase() === action.toLowerCase(),
  )!;
