import { setTimeout as pause } from "node:timers/promises";
import { Properties, Value } from "../protocol/values";
import { pathOf } from "./kinds";
import { at } from "./objects";
import { Access, Client, Refused, Resolve, Unreachable } from "./api/client";
import { kubeconfigOf } from "../../machines/simulated/api";

/** How an object is applied. */
interface Applying {
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
  private constructor(readonly client: Client) {}

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
      return await this.client.get(pathOf(object), signal);
    } catch (error) {
      if (isMissing(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Not to be interrupted, since the state has to know what came of it. */
  apply(object: Properties, { manager, force, dryRun }: Applying): Promise<Properties> {
    return this.client.request({
      method: "PATCH",
      path: pathOf(object),
      query: {
        fieldManager: manager,
        force: String(force),
        dryRun: dryRun ? "All" : undefined,
      },
      body: object,
    });
  }

  /** Replaces an object as `kubectl replace` does, unless it has changed since `like` was read. */
  replace(
    object: Properties,
    { manager, dryRun, like }: Omit<Applying, "force"> & { readonly like: Properties },
  ): Promise<Properties> {
    const resourceVersion = at(like, "metadata", "resourceVersion");
    return this.client.request({
      method: "PUT",
      path: pathOf(object),
      query: { fieldManager: manager, dryRun: dryRun ? "All" : undefined },
      body: { ...object, metadata: { ...(object.metadata as Properties), resourceVersion } },
    });
  }

  /**
   * Replaces the record of who manages which fields, unless the object has changed since it was
   * read.
   */
  setManagers(live: Properties, managedFields: Value): Promise<Properties> {
    const resourceVersion = at(live, "metadata", "resourceVersion");
    return this.client.request({
      method: "PATCH",
      path: pathOf(live),
      contentType: "application/json-patch+json",
      body: [
        { op: "replace", path: "/metadata/managedFields", value: managedFields },
        { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
      ],
    });
  }

  /** Deletes an object after what it owns. */
  remove(object: Properties): Promise<Properties> {
    return this.client.request({
      method: "DELETE",
      path: pathOf(object),
      query: { propagationPolicy: "Foreground" },
    });
  }

  /** Tries again while what an object needs is missing: its definition or its namespace. */
  async retryWhileMissing<Result>(
    act: () => Promise<Result>,
    signal: AbortSignal,
    progress: (why: string) => void,
  ): Promise<Result> {
    for (let retry = 0; ; retry++) {
      try {
        return await act();
      } catch (error) {
        if (!isMissing(error) || retry === retries) {
          throw error;
        }
        progress(`waiting: ${error.message}`);
        await pause(Math.min(firstPauseMs * 2 ** retry, 8000), undefined, { signal });
      }
    }
  }
}

/** Whether an object, or what it needs, is not there: its definition or its namespace. */
export const isMissing = (error: unknown): error is Refused =>
  error instanceof Refused && error.code === 404;

/** Whether the cluster that a provider's kubeconfig names can be reached, and its client. */
export class Reachability {
  private reached?: Promise<DynamicClient | Unreachable>;

  constructor(
    private readonly kubeconfig: string,
    private readonly resolve: Resolve | undefined,
  ) {}

  /** Asked once: whether there is a cluster does not change during a run. */
  tried(): Promise<DynamicClient | Unreachable> {
    this.reached ??= Promise.resolve()
      .then(() => DynamicClient.reached(accessFrom(this.kubeconfig), this.resolve))
      .catch((error: Error) =>
        error instanceof Unreachable ? error : new Unreachable(error.message, { cause: error }),
      );
    return this.reached;
  }

  /** @throws Unreachable */
  async cluster(): Promise<DynamicClient> {
    const found = await this.tried();
    if (found instanceof Unreachable) throw found;
    return found;
  }

  /** For previews, which have to do without a cluster that is not there yet. */
  async clusterIfThere(): Promise<DynamicClient | undefined> {
    const found = await this.tried();
    return found instanceof Unreachable ? undefined : found;
  }

  /**
   * For what reads or deletes an object of the state.
   *
   * @throws what is to be done
   */
  async clusterOfState(): Promise<DynamicClient> {
    const found = await this.tried();
    if (!(found instanceof Unreachable)) return found;
    throw new Error(`${found.message}. Nothing was forgotten; run this again when the API answers`);
  }
}

/** Reads a kubeconfig of one cluster and one client certificate, as the program renders it. */
function accessFrom(kubeconfig: string): Access {
  try {
    const { server, ca, user } = kubeconfigOf(kubeconfig);
    const { cert, key } = user;
    if (cert !== undefined && key !== undefined) return { server, tls: { ca, cert, key } };
  } catch {
    // The parser quotes the line that it stumbles over, and that line can be a key.
  }
  throw new Error(
    "the kubeconfig of this provider cannot be read: expected one cluster and one user with their certificates in it",
  );
}
