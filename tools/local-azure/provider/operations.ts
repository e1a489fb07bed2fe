import { isDeepStrictEqual } from "node:util";

import { AzureError, ConnectionLost, OperationFailed } from "../arm/azure-error";
import { ResourceManager } from "../arm/resource-manager";
import { Body } from "../arm/resources/resource";
import { Authorization } from "../arm/rest/authorize";
import { conforming } from "../arm/types/declared";
import { ResourceType, schemaOf, withoutReadOnly } from "../arm/types/resource-type";
import { loginToken } from "../machines/identity-token";
import type {
  CreateRequest,
  EngineLog,
  ReadRequest,
  UpdateRequest,
} from "../plugins/protocol/protocol";
import { isProperties, Properties, unknown, Unready, Value } from "../plugins/protocol/values";
import { idOf, parametersOf } from "./check";

/** What ends an operation of azure-native: its time limit, or the end of the run. */
interface Limits {
  readonly signal: AbortSignal;
  /** 0 is azure-native's own limit. */
  readonly timeoutSeconds: number;
}

interface Write {
  readonly method: "put" | "patch";
  readonly id: string;
  readonly inputs: Properties;
  readonly body: Body;
  readonly context: AbortSignal;
}

/** Of an operation for which a program sets none. */
const defaultTimeoutSeconds = 2 * 60 * 60;

/**
 * Creates, reads, updates and deletes as azure-native does: by PUT, GET and DELETE of whole
 * resources.
 */
export class AzureNative {
  constructor(
    private readonly arm: ResourceManager,
    private readonly warn: EngineLog["warn"] = () => undefined,
  ) {}

  async create(type: ResourceType, { urn, inputs, preview, ...limits }: CreateRequest) {
    if (preview) return { id: "", state: previewOutputs(type, inputs) };
    const id = idOf(type, inputs);
    const context = contextOf(limits);
    await this.refuseExisting(id, context);
    const body = bodyOf(type, inputs);
    for (const list of type.maintainIfUnset ?? []) body[list] ??= [];
    await this.sendAndWait(type, { method: "put", id, inputs, body, context });
    return { id, state: await this.readAfterWrite(type, id, urn, context) };
  }

  async update(
    type: ResourceType,
    { id, urn, olds, news, state, preview, ...limits }: UpdateRequest,
  ): Promise<Properties> {
    if (preview) {
      const { name, location } = state;
      return { ...previewOutputs(type, news), name, ...(location !== undefined && { location }) };
    }
    const context = contextOf(limits);
    const body = bodyOf(type, news);
    await this.maintain(type, id, body, context);
    const removed = removedIdentities(olds, news);
    const method = Object.keys(removed).length > 0 ? "patch" : "put";
    if (method === "patch") body["identity"] = withIdentities(news, removed);
    await this.sendAndWait(type, { method, id, inputs: news, body, context });
    return this.readAfterWrite(type, id, urn, context);
  }

  async read(type: ResourceType, { id, state, inputs, signal }: ReadRequest) {
    try {
      await this.get(id, signal);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw providerError(error);
    }
    const outputs = this.outputs(type, id);
    if (Object.keys(inputs).length === 0) {
      const { apiVersion: azureApiVersion } = schemaOf(type);
      const read: Properties = {
        ...inputsIn(type, outputs),
        ...parametersOf(type, id),
        azureApiVersion,
      };
      return { id, state: outputs, inputs: read };
    }
    return {
      id,
      state: withoutSeparate(type, inputs, outputs),
      inputs: refreshedInputs(type, inputs, state, outputs),
    };
  }

  /** Azure goes on with a deletion that is interrupted. */
  async delete({ id, ...limits }: { readonly id: string } & Limits): Promise<void> {
    const context = contextOf(limits);
    try {
      await this.send(context, async () => {
        this.authorization.check("DELETE", id);
        return this.arm.delete(id);
      });
    } catch (error) {
      if (!isNotFound(error)) throw providerError(error);
    }
  }

  private send<T>(context: AbortSignal, request: () => Promise<T>): Promise<T> {
    return within(context, withRetries(this.arm, request, context));
  }

  private get = (id: string, context: AbortSignal) =>
    this.send(context, async () => {
      this.authorization.check("GET", id);
      return this.arm.get(id);
    });

  /** Of the login, by which the plugin asks. */
  private get authorization(): Authorization {
    return new Authorization(loginToken(), this.arm);
  }

  /** A PUT would change what exists. */
  private async refuseExisting(id: string, context: AbortSignal): Promise<void> {
    try {
      await this.get(id, context);
    } catch (error) {
      if (isNotFound(error)) return;
      if (!(error instanceof AzureError)) throw error;
      throw new Error(
        `cannot check existence of resource '${id}': status code ${error.status}, ${error.message}`,
        { cause: error },
      );
    }
    throw new Error(`cannot create already existing resource '${id}'`);
  }

  /** Sends lists along that a program leaves to resources of their own. */
  private async maintain(
    { maintainIfUnset = [] }: ResourceType,
    id: string,
    body: Body,
    context: AbortSignal,
  ): Promise<void> {
    const unset = maintainIfUnset.filter((list) => body[list] === undefined);
    if (unset.length === 0) return;
    const { body: current } = await this.get(id, context).catch((error: unknown) => {
      const { message } = providerError(error);
      throw new Error(
        `failed maintaining unset sub-resource properties: reading cloud state: ${message}`,
      );
    });
    for (const list of unset) body[list] = current[list] ?? [];
  }

  /**
   * What Azure has accepted belongs into the state, however its operation ends: the next update goes
   * on with it.
   */
  private async sendAndWait(
    type: ResourceType,
    { method, id, inputs, body, context }: Write,
  ): Promise<void> {
    let isAccepted = false;
    const accepted = (): void => void (isAccepted = true);
    try {
      await this.send(context, async () => {
        const { authorization } = this;
        authorization.check(method.toUpperCase(), id);
        const sent = conforming(type, body);
        authorization.checkLinks(id, type, sent);
        return this.arm[method](id, sent, { accepted });
      });
    } catch (error) {
      const failure = providerError(error);
      if (!isAccepted && !(error instanceof OperationFailed)) throw failure;
      const state = await this.get(id, context).then(
        () => this.outputs(type, id),
        (unread: unknown) => {
          const { message } = providerError(unread);
          if (!(failure instanceof TimedOut))
            failure.message = `resource created but read failed ${message}: ${failure.message}`;
          return {};
        },
      );
      throw new Unready(id, state, inputs, [failure.message]);
    }
  }

  /** The answer to a PUT may have another shape than that to a GET, which a refresh sees. */
  private async readAfterWrite(
    type: ResourceType,
    id: string,
    urn: string,
    context: AbortSignal,
  ): Promise<Properties> {
    await this.get(id, context).catch(({ message }: Error) =>
      this.warn(urn, `failed to read the resource after it was written: ${message}`),
    );
    return this.outputs(type, id);
  }

  private outputs(type: ResourceType, id: string): Properties {
    return {
      ...this.arm.peek(id),
      type: type.type,
      azureApiVersion: schemaOf(type).apiVersion,
    } as Properties;
  }
}

/** Ends when the run is interrupted or the time of an operation is up. */
function contextOf({ signal, timeoutSeconds }: Limits): AbortSignal {
  const limit = AbortSignal.timeout((timeoutSeconds || defaultTimeoutSeconds) * 1000);
  return AbortSignal.any([signal, limit]);
}

/** What azure-native says of every operation whose time is up, and nothing else. */
class TimedOut extends Error {
  override readonly message = "operation timed out";
}

/** The work, or the end of its context, whichever is first. */
async function within<T>(context: AbortSignal, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const ended = new Promise<never>((_, reject) => {
    const end = (): void => {
      const { name } = context.reason as Error;
      reject(name === "TimeoutError" ? new TimedOut() : new Error("context canceled"));
    };
    context.addEventListener("abort", end, { signal: done.signal });
    if (context.aborted) end();
  });
  // Azure goes on, and the engine does not wait for it any more.
  work.catch(() => undefined);
  return Promise.race([work, ended]).finally(() => done.abort());
}

const isNotFound = (error: unknown): boolean => error instanceof AzureError && error.status === 404;

/** An error of Azure as azure-native reports it. */
function providerError(error: unknown): Error {
  if (!(error instanceof AzureError)) return error as Error;
  return new Error(`Status=${error.status} Code="${error.code}" Message="${error.message}"`);
}

const bodyOf = (type: ResourceType, inputs: Properties): Body =>
  Object.fromEntries(
    Object.entries(inputs).filter(
      ([key, value]) => schemaOf(type).inputs.includes(key) && value != null,
    ),
  );

const identitiesIn = ({ identity }: Properties): readonly string[] | undefined => {
  const listed = isProperties(identity) ? identity["userAssignedIdentities"] : undefined;
  return Array.isArray(listed) ? (listed as string[]) : undefined;
};

/** Identities that a program has taken from its list: Azure takes them away where they are null, by PATCH. */
function removedIdentities(olds: Properties, news: Properties): Record<string, null> {
  const kept = identitiesIn(news);
  const removed = identitiesIn(olds)?.filter((id) => kept?.includes(id) === false) ?? [];
  return Object.fromEntries(removed.map((id) => [id, null]));
}

const withIdentities = (inputs: Properties, removed: Record<string, null>): Body => ({
  ...(inputs["identity"] as Body),
  userAssignedIdentities: {
    ...Object.fromEntries(identitiesIn(inputs)!.map((id) => [id, {}])),
    ...removed,
  },
});

/**
 * The outputs of a preview: the inputs, with unknown ids of sub-resources.
 */
function previewOutputs(type: ResourceType, inputs: Properties): Properties {
  const body = bodyOf(type, inputs) as Properties;
  for (const list of type.subResources ?? []) {
    const subResources = body[list];
    if (!Array.isArray(subResources)) continue;
    body[list] = subResources.map((subResource) =>
      typeof subResource === "object"
        ? { ...(subResource as Properties), id: unknown }
        : subResource,
    );
  }
  return body;
}

/** Seconds between the attempts of azure-native. */
const retryDelays = [20, 60, 120];

/** With a longer Retry-After, azure-native does not retry. */
const maxRetryAfter = 120;

const statuses = new Set([408, 429, 500, 502, 503, 504]);

/** Codes of 409. */
const conflicts = new Set([
  "AnotherOperationInProgress",
  "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
]);

const isTransient = (error: unknown): boolean =>
  error instanceof ConnectionLost ||
  (error instanceof AzureError &&
    !(error instanceof OperationFailed) &&
    (statuses.has(error.status) || conflicts.has(error.code)));

const retryAfterOf = (error: unknown): number =>
  error instanceof AzureError ? (error.retryAfter ?? 0) : 0;

/** Retries as azure-native does; the waits are scaled like the durations of Resource Manager. */
export async function withRetries<T>(
  arm: ResourceManager,
  request: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (const seconds of retryDelays) {
    let wait: number;
    try {
      return await request();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted || retryAfterOf(error) > maxRetryAfter)
        throw error;
      wait = retryAfterOf(error) || seconds;
    }
    await arm.clock.sleep(wait * 1000 * arm.durations.factor);
    signal?.throwIfAborted();
  }
  return request();
}

/** The properties in the outputs that are inputs. */
function inputsIn(type: ResourceType, outputs: Properties): Properties {
  const inputs = Object.entries(outputs).filter(([key]) => schemaOf(type).inputs.includes(key));
  const body: Body = withoutReadOnly(type, Object.fromEntries(inputs));
  return (type.toInputs?.(body) ?? body) as Properties;
}

/**
 * Inputs after a refresh: the old ones, plus the changes in Azure since the last state.
 *
 * Inputs cannot be derived from outputs alone, since many of these are defaults. A property that
 * changed between two states is not a default.
 */
function refreshedInputs(
  type: ResourceType,
  inputs: Properties,
  before: Properties,
  after: Properties,
): Properties {
  const separate = separateIn(type, inputs);
  const own = Object.fromEntries(Object.entries(after).filter(([key]) => !separate.includes(key)));
  return applyChanges(inputs, inputsIn(type, before), inputsIn(type, own));
}

/** Rules and subnets that are resources of their own are not inputs of their parent. */
const separateIn = ({ maintainIfUnset = [] }: ResourceType, inputs: Properties): string[] =>
  maintainIfUnset.filter((list) => inputs[list] === undefined);

/** Outputs after a refresh, with no rules and subnets that are resources of their own. */
const withoutSeparate = (
  type: ResourceType,
  inputs: Properties,
  outputs: Properties,
): Properties => ({
  ...outputs,
  ...Object.fromEntries(separateIn(type, inputs).map((list) => [list, []])),
});

function applyChanges(base: Properties, before: Properties, after: Properties): Properties {
  const result = { ...base };
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[key], after[key]];
    if (isDeepStrictEqual(old, now)) continue;
    if (now === undefined) delete result[key];
    else if (old === undefined || base[key] === undefined) result[key] = now;
    else result[key] = applyChange(base[key], old, now);
  }
  return result;
}

function applyChange(base: Value, before: Value, after: Value): Value {
  if (isProperties(base) && isProperties(before) && isProperties(after))
    return applyChanges(base, before, after);
  if (Array.isArray(base) && Array.isArray(before) && Array.isArray(after)) {
    return after.map((element, index) =>
      index < base.length && index < before.length
        ? applyChange(base[index], before[index], element)
        : element,
    );
  }
  return isDeepStrictEqual(before, after) ? base : after;
}
