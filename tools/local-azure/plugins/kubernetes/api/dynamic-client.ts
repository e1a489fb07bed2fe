import { setTimeout as pause } from "node:timers/promises";
import { Properties, Value } from "../../protocol/values";
import { Access, Client, Refused, Unreachable } from "./client";
import { Discovery, UnknownKind } from "./discovery";
import { at, defaultNamespace, items, nameOf, namespaceOf, text } from "../objects";
import { Resolve } from "./client";

export type Lister = (apiVersion: string, kind: string, namespace: string) => Promise<Properties[]>;

/** How an object is applied. */
export interface Applying {
  readonly manager: string;
  readonly force: boolean;
  readonly dryRun?: boolean;
}

const firstPauseMs = 200;
/**
 * In all about half a minute: as long as a definition, a namespace or a node may come later than
 * what needs it.
 */
const retries = 8;

/** Reads and writes the objects of one cluster by kind and name. */
export class DynamicClient {
  readonly discovery: Discovery;

  private constructor(readonly client: Client) {
    this.discovery = new Discovery(client);
  }

  /**
   * As the official plugin, takes an API for unreachable whose OpenAPI documents it does not get,
   * for whatever reason: also one that refuses the credentials or is not ready.
   *
   * @throws Unreachable
   */
  static async reached(access: Access, resolve: Resolve | undefined): Promise<DynamicClient> {
    const client = new Client(access, resolve);
    try {
      await client.get("/openapi/v3");
    } catch (error) {
      client.close();
      if (!(error instanceof Refused)) throw error;
      throw new Unreachable(
        `the Kubernetes API at ${access.server.origin} cannot be used: ${error.message} (${error.code})`,
        { cause: error },
      );
    }
    return new DynamicClient(client);
  }

  /** Undefined when there is no such object, or not even such a kind. */
  async find(object: Properties, signal?: AbortSignal): Promise<Properties | undefined> {
    try {
      return await this.client.get(await this.pathOf(object), signal);
    } catch (error) {
      if (error instanceof UnknownKind || (error instanceof Refused && error.code === 404)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Not to be interrupted, since the state has to know what came of it. */
  async apply(object: Properties, { manager, force, dryRun }: Applying): Promise<Properties> {
    return this.client.request({
      method: "PATCH",
      path: await this.pathOf(object),
      query: {
        fieldManager: manager,
        force: String(force),
        dryRun: dryRun ? "All" : undefined,
      },
      body: object,
    });
  }

  /** Replaces an object as `kubectl replace` does, unless it has changed since `like` was read. */
  async replace(
    object: Properties,
    { manager, dryRun, like }: Omit<Applying, "force"> & { readonly like: Properties },
  ): Promise<Properties> {
    const resourceVersion = at(like, "metadata", "resourceVersion");
    return this.client.request({
      method: "PUT",
      path: await this.pathOf(object),
      query: { fieldManager: manager, dryRun: dryRun ? "All" : undefined },
      body: { ...object, metadata: { ...(object.metadata as Properties), resourceVersion } },
    });
  }

  /** Objects of one kind in a namespace; none where the server does not list them. */
  readonly list: Lister = async (apiVersion, kind, namespace) => {
    try {
      const path = await this.discovery.path(apiVersion, kind, namespace);
      return items((await this.client.get(path)).items ?? []);
    } catch {
      return [];
    }
  };

  /**
   * Replaces the record of who manages which fields, unless the object has changed since it was
   * read.
   */
  async setManagers(live: Properties, managedFields: Value): Promise<Properties> {
    const resourceVersion = at(live, "metadata", "resourceVersion");
    return this.client.request({
      method: "PATCH",
      path: await this.pathOf(live),
      contentType: "application/json-patch+json",
      body: [
        { op: "replace", path: "/metadata/managedFields", value: managedFields },
        { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
      ],
    });
  }

  /** Deletes an object after what it owns. */
  async remove(object: Properties): Promise<void> {
    await this.client.request({
      method: "DELETE",
      path: await this.pathOf(object),
      query: { propagationPolicy: "Foreground" },
    });
  }

  /**
   * Tries again while what an object needs is missing: its definition, its namespace, or what it
   * patches.
   */
  async retryWhileMissing<Result>(
    act: () => Promise<Result>,
    signal: AbortSignal,
    progress: (why: string) => void,
  ): Promise<Result> {
    for (let retry = 0; ; retry++) {
      try {
        return await act();
      } catch (error) {
        const missing =
          error instanceof UnknownKind || (error instanceof Refused && error.code === 404);
        if (!missing || retry === retries) {
          throw error;
        }
        progress(`waiting: ${error.message}`);
        await pause(Math.min(firstPauseMs * 2 ** retry, 8000), undefined, { signal });
      }
    }
  }

  private pathOf(object: Properties): Promise<string> {
    const { apiVersion, kind } = object;
    return this.discovery.path(
      text(apiVersion),
      text(kind),
      namespaceOf(object) || defaultNamespace,
      nameOf(object),
    );
  }
}

export const isUnreachable = (error: unknown): error is Unreachable => error instanceof Unreachable;
