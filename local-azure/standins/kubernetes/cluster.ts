import { setTimeout as pause } from "node:timers/promises";
import { Properties } from "../protocol/values";
import { Access, Client, Refused, Unreachable } from "./client";
import { Discovery, UnknownKind } from "./discovery";
import { nameOf, namespaceOf, text } from "./objects";
import { Resolve } from "./redirect";

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

/** The objects of one cluster. */
export class Cluster {
  readonly discovery: Discovery;

  private constructor(
    readonly client: Client,
    readonly defaultNamespace: string,
  ) {
    this.discovery = new Discovery(client);
  }

  /** @throws Unreachable when nothing answers there */
  static async reached(
    access: Access,
    namespace: string,
    resolve: Resolve | undefined,
  ): Promise<Cluster> {
    const client = new Client(access, resolve);
    try {
      await client.get("/version");
    } catch (error) {
      // Whoever refuses is there, and says at the first object what it does not like.
      if (!(error instanceof Refused)) {
        client.close();
        throw error;
      }
    }
    return new Cluster(client, namespace);
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

  async remove(object: Properties, propagationPolicy: string): Promise<void> {
    await this.client.request({
      method: "DELETE",
      path: await this.pathOf(object),
      query: { propagationPolicy },
    });
  }

  /**
   * Tries again while what an object needs is missing: its definition, its namespace, or what it
   * patches.
   */
  async onceItCan<Result>(
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
    const namespace = namespaceOf(object) || this.defaultNamespace;
    return this.discovery.path(text(apiVersion), text(kind), namespace, nameOf(object));
  }
}

export const isUnreachable = (error: unknown): error is Unreachable => error instanceof Unreachable;
