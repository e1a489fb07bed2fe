import { AzureError, ConnectionLost, OperationFailed } from "../arm/azure-error";
import { Cloud } from "../arm/cloud";
import { Body } from "../arm/resource";
import { ResourceType } from "../arm/resource-type";
import { Unready } from "../plugins/protocol/failures";
import type { CreateRequest, ReadRequest, UpdateRequest } from "../plugins/protocol/protocol";
import { Properties, unknown } from "../plugins/protocol/values";
import { idOf, parametersOf } from "./paths";
import { inputsIn, refreshedInputs } from "./refresh";

interface PutOptions {
  readonly id: string;
  readonly inputs: Properties;
  readonly signal: AbortSignal;
}

/**
 * Creates, reads, updates and deletes as azure-native does: by PUT, GET and DELETE of whole
 * resources.
 */
export class AzureNative {
  constructor(private readonly cloud: Cloud) {}

  async create(type: ResourceType, { inputs, preview, signal }: CreateRequest) {
    if (preview) return { id: "", state: previewOutputs(type, inputs) };
    const id = idOf(type, inputs);
    if (this.cloud.peek(id) !== undefined) {
      throw new Error(`cannot create already existing resource '${id}'`);
    }
    const body = bodyOf(type, inputs);
    for (const list of type.maintainIfUnset ?? []) body[list] ??= [];
    await this.putAndWait(type, { id, inputs, signal }, body);
    return { id, state: this.outputs(type, id) };
  }

  async update(
    type: ResourceType,
    { id, news, state, preview, signal }: UpdateRequest,
  ): Promise<Properties> {
    if (preview) {
      const { name, location } = state;
      return { ...previewOutputs(type, news), name, ...(location !== undefined && { location }) };
    }
    const body = bodyOf(type, news);
    const current = this.cloud.peek(id);
    for (const list of type.maintainIfUnset ?? []) body[list] ??= current?.[list] ?? [];
    await this.putAndWait(type, { id, inputs: news, signal }, body);
    return this.outputs(type, id);
  }

  async read(type: ResourceType, { id, state, inputs }: ReadRequest) {
    try {
      await this.cloud.get(id);
    } catch (error) {
      if (error instanceof AzureError && error.status === 404) return undefined;
      throw providerError(error);
    }
    const outputs = this.outputs(type, id);
    const isImport = Object.keys(inputs).length === 0;
    const read = isImport
      ? { ...inputsIn(type, outputs), ...parametersOf(type, id), azureApiVersion: type.apiVersion }
      : refreshedInputs(type, inputs, state, outputs);
    return { id, state: outputs, inputs: read };
  }

  async delete(id: string, signal?: AbortSignal): Promise<void> {
    try {
      await withRetries(this.cloud, () => this.cloud.delete(id), signal);
    } catch (error) {
      if (error instanceof AzureError && error.status === 404) return;
      throw providerError(error);
    }
  }

  /**
   * A PUT whose operation failed or was interrupted leaves a resource that the next update continues
   * with.
   */
  private async putAndWait(
    type: ResourceType,
    { id, inputs, signal }: PutOptions,
    body: Body,
  ): Promise<void> {
    const interruption = new AbortController();
    const interrupted = new Promise<never>((_, reject) => {
      const interrupt = () => reject(new Interrupted());
      signal.addEventListener("abort", interrupt, { signal: interruption.signal });
      if (signal.aborted) interrupt();
    });
    try {
      await Promise.race([
        withRetries(this.cloud, () => this.cloud.put(id, body), signal),
        interrupted,
      ]);
    } catch (error) {
      const isKept = error instanceof OperationFailed || error instanceof Interrupted;
      if (!isKept || this.cloud.peek(id) === undefined) throw providerError(error);
      throw new Unready(id, this.outputs(type, id), inputs, [providerError(error).message]);
    } finally {
      interruption.abort();
    }
  }

  private outputs(type: ResourceType, id: string): Properties {
    return {
      ...this.cloud.peek(id),
      type: type.type,
      azureApiVersion: type.apiVersion,
    } as Properties;
  }
}

class Interrupted extends Error {
  constructor() {
    super("interrupted before the operation was complete; Azure continues it");
  }
}

/** An error of Azure as azure-native reports it. */
function providerError(error: unknown): Error {
  if (!(error instanceof AzureError)) return error as Error;
  return new Error(`Status=${error.status} Code="${error.code}" Message="${error.message}"`);
}

const bodyOf = (type: ResourceType, inputs: Properties): Body =>
  Object.fromEntries(
    Object.entries(inputs).filter(([key, value]) => type.inputs.includes(key) && value != null),
  );

/**
 * The outputs of a preview: the inputs, with unknown ids of sub-resources.
 */
function previewOutputs(type: ResourceType, inputs: Properties): Properties {
  const body = bodyOf(type, inputs) as Properties;
  for (const list of type.parts ?? []) {
    const parts = body[list];
    if (!Array.isArray(parts)) continue;
    body[list] = parts.map((part) =>
      typeof part === "object" ? { ...(part as Properties), id: unknown } : part,
    );
  }
  return body;
}

/** Seconds between the attempts of azure-native. */
const retryDelays = [20, 60, 120];

/** With a longer Retry-After, azure-native does not retry. */
const maxRetryAfter = 120;

const statuses = new Set([408, 429, 500, 502, 503, 504]);

const isTransient = (error: unknown): boolean =>
  error instanceof ConnectionLost ||
  (error instanceof AzureError &&
    !(error instanceof OperationFailed) &&
    (statuses.has(error.status) || error.code === "AnotherOperationInProgress"));

const retryAfterOf = (error: unknown): number =>
  error instanceof AzureError ? (error.retryAfter ?? 0) : 0;

/** Retries as azure-native does; the waits are scaled like the durations of the cloud. */
export async function withRetries<T>(
  cloud: Cloud,
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
    await cloud.clock.sleep(wait * 1000 * cloud.durations.factor);
    signal?.throwIfAborted();
  }
  return request();
}
