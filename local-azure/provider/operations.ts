import { AzureError, OperationFailed } from "../resource-manager/azure-error";
import { Cloud } from "../resource-manager/cloud";
import { Body, ResourceType } from "../resource-manager/resource-type";
import type { CreateRequest, ReadRequest, UpdateRequest } from "../standins/protocol";
import { Unready } from "../standins/protocol/failures";
import { Properties, unknown } from "../standins/protocol/values";
import { idOf, parametersOf } from "./paths";
import { projected, refreshedInputs } from "./refresh";
import { retried } from "./retry";

interface Order {
  readonly id: string;
  readonly inputs: Properties;
  readonly signal: AbortSignal;
}

/** Creates, reads, updates and deletes as azure-native does: by PUT, GET and DELETE of whole resources. */
export class AzureNative {
  constructor(private readonly cloud: Cloud) {}

  async create(type: ResourceType, { inputs, preview, signal }: CreateRequest) {
    if (preview) return { id: "", state: previewed(type, inputs) };
    const id = idOf(type, inputs);
    if (this.cloud.peek(id) !== undefined) {
      throw new Error(`cannot create already existing resource '${id}'`);
    }
    const body = bodyOf(type, inputs);
    for (const list of type.maintained ?? []) body[list] ??= [];
    await this.ordered(type, { id, inputs, signal }, body);
    return { id, state: this.outputs(type, id) };
  }

  async update(
    type: ResourceType,
    { id, news, state, preview, signal }: UpdateRequest,
  ): Promise<Properties> {
    if (preview) {
      const { name, location } = state;
      return { ...previewed(type, news), name, ...(location !== undefined && { location }) };
    }
    const body = bodyOf(type, news);
    const found = this.cloud.peek(id);
    for (const list of type.maintained ?? []) body[list] ??= found?.[list] ?? [];
    await this.ordered(type, { id, inputs: news, signal }, body);
    return this.outputs(type, id);
  }

  async read(type: ResourceType, { id, state, inputs }: ReadRequest) {
    try {
      await this.cloud.get(id);
    } catch (error) {
      if (error instanceof AzureError && error.status === 404) return undefined;
      throw told(error);
    }
    const outputs = this.outputs(type, id);
    const isImport = Object.keys(inputs).length === 0;
    const read = isImport
      ? { ...projected(type, outputs), ...parametersOf(type, id), azureApiVersion: type.apiVersion }
      : refreshedInputs(type, inputs, state, outputs);
    return { id, state: outputs, inputs: read };
  }

  async delete(id: string, signal?: AbortSignal): Promise<void> {
    try {
      await retried(this.cloud, () => this.cloud.delete(id), signal);
    } catch (error) {
      if (error instanceof AzureError && error.status === 404) return;
      throw told(error);
    }
  }

  /** A PUT that was accepted and failed, or was not waited for, leaves a resource that the next update goes on with. */
  private async ordered(
    type: ResourceType,
    { id, inputs, signal }: Order,
    body: Body,
  ): Promise<void> {
    const interruption = new AbortController();
    const interrupted = new Promise<never>((_, reject) => {
      const leave = () => reject(new Interrupted());
      signal.addEventListener("abort", leave, { signal: interruption.signal });
      if (signal.aborted) leave();
    });
    try {
      await Promise.race([
        retried(this.cloud, () => this.cloud.put(id, body), signal),
        interrupted,
      ]);
    } catch (error) {
      const isKept = error instanceof OperationFailed || error instanceof Interrupted;
      if (!isKept || this.cloud.peek(id) === undefined) throw told(error);
      throw new Unready(id, this.outputs(type, id), inputs, [told(error).message]);
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
    super("the operation was not waited for to its end; Azure goes on with it");
  }
}

/** An error of Azure in azure-native's words. */
function told(error: unknown): Error {
  if (!(error instanceof AzureError)) return error as Error;
  return new Error(`Status=${error.status} Code="${error.code}" Message="${error.message}"`);
}

const bodyOf = (type: ResourceType, inputs: Properties): Body =>
  Object.fromEntries(
    Object.entries(inputs).filter(([key, value]) => type.inputs.includes(key) && value != null),
  );

/** What is known before the resource is: what was asked for. The ids of its parts are Azure's to give. */
function previewed(type: ResourceType, inputs: Properties): Properties {
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
