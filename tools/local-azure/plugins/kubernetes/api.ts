import { request } from "node:http";
import * as https from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { checkServerIdentity } from "node:tls";
import { urlToHttpOptions } from "node:url";

import { jsonRequest } from "../../json-request";
import { kubeconfigOf } from "../../machines/simulated/api";
import { Properties, Value } from "../protocol/values";
import { at, items, pathOf, text } from "./objects";

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Where connections to a host go instead, for a name that does not resolve here. */
export type Resolve = (host: string, port: number) => Endpoint | undefined;

/** A connection that an HTTP proxy makes to a host and port. */
const tunnelThrough = (proxy: string, path: string): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    request(proxy, { method: "CONNECT", path })
      .once("connect", ({ statusCode, statusMessage }, socket) => {
        if (statusCode === 200) return resolve(socket);
        socket.destroy();
        reject(new Error(`the proxy ${proxy} answers ${statusCode} ${statusMessage}`));
      })
      .once("error", reject)
      .end();
  });

/** The name in the certificate stays the one that was asked for, wherever the connection leads. */
class RedirectingAgent extends https.Agent {
  constructor(
    private readonly resolve: Resolve,
    private readonly proxy: string | undefined,
    options: https.AgentOptions,
  ) {
    super(options);
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ) {
    const host = options.host ?? "";
    const expected = options.servername || host;
    const secure = (target: object | undefined) =>
      super.createConnection(
        {
          ...options,
          ...target,
          checkServerIdentity: (_host, certificate) => checkServerIdentity(expected, certificate),
        },
        callback,
      );
    if (this.proxy === undefined) return secure(this.resolve(host, Number(options.port)));
    tunnelThrough(this.proxy, `${host}:${options.port}`).then(
      (socket) => callback?.(null, secure({ socket })!),
      (error: Error) => callback?.(error, undefined!),
    );
    return undefined;
  }
}

/** The address of an API server and the credentials for it. */
export interface Access {
  readonly server: URL;
  /** The kubeconfig's `proxy-url`. */
  readonly proxy?: string;
  readonly tls: Pick<https.AgentOptions, "ca" | "cert" | "key">;
}

/** The server answered, and the answer is no. */
export class Refused extends Error {
  constructor(
    readonly code: number,
    readonly status: Properties,
  ) {
    // A proxy's may be a page.
    super(text(status.message).slice(0, 1000) || `the API server answered with status ${code}`);
  }

  get reason(): string {
    return text(this.status.reason);
  }

  get causes(): Properties[] {
    return items(at(this.status, "details", "causes"));
  }
}

/** Errors that may be gone a moment later; a wrong certificate is not one of them. */
const transientCodes = ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EAI_AGAIN"];

/** No answer. */
export class Unreachable extends Error {
  get isTransient(): boolean {
    const { code } = this.cause as { readonly code?: string };
    return code !== undefined && transientCodes.includes(code);
  }
}

interface Request {
  readonly method: "GET" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** @default server-side apply for PATCH */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

const attempts = 4;
/**
 * The server itself gives up on a request after 60 s, and says so; a busy one must be let come to
 * that.
 */
const requestTimeoutMs = 75_000;

/** Plain requests to one API server; every one of them may be sent twice. */
export class Client {
  private readonly agent: https.Agent;

  constructor(
    readonly access: Access,
    resolve: Resolve = () => undefined,
  ) {
    this.agent = new RedirectingAgent(resolve, access.proxy, {
      ...access.tls,
      keepAlive: true,
      maxSockets: 24,
      // The server closes idle connections too, and a request on one that is being closed fails.
      timeout: requestTimeoutMs,
    });
  }

  async request(request: Request): Promise<Properties> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.once(request);
      } catch (error) {
        const again =
          (error instanceof Unreachable && error.isTransient) ||
          (error instanceof Refused && [429, 503, 504].includes(error.code));
        if (!again || request.signal?.aborted || attempt === attempts) {
          throw error;
        }
        await pause(100 * 2 ** attempt, undefined, { signal: request.signal });
      }
    }
  }

  get = (path: string, signal?: AbortSignal): Promise<Properties> =>
    this.request({ method: "GET", path, signal });

  close(): void {
    this.agent.destroy();
  }

  private async once({
    method,
    path,
    query = {},
    body,
    contentType = method === "PATCH" ? "application/apply-patch+yaml" : "application/json",
    signal,
  }: Request): Promise<Properties> {
    const { server } = this.access;
    const url = new URL(server.pathname.replace(/\/$/, "") + path, server);
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) {
        url.searchParams.set(key, value);
      }
    }
    const { agent } = this;
    const options = { ...urlToHttpOptions(url), method, agent, signal, timeout: requestTimeoutMs };
    const answer = await jsonRequest(options, body, contentType).catch((error: Error) => {
      throw signal?.aborted ? signal.reason : this.unreachable(error);
    });
    if (answer.status < 400) return answer.body;
    throw new Refused(answer.status, answer.body);
  }

  private unreachable(error: Error): Unreachable {
    return new Unreachable(
      `the Kubernetes API at ${this.access.server.origin} cannot be reached: ${causeOf(error)}`,
      { cause: error },
    );
  }
}

/** Several addresses of one host fail together, in an error that has no message of its own. */
const causeOf = (error: Error): string =>
  error instanceof AggregateError
    ? error.errors.map(({ message }) => message).join("; ")
    : error.message;

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
    const { server, proxy, ca, user } = kubeconfigOf(kubeconfig);
    const { cert, key } = user;
    if (cert !== undefined && key !== undefined) return { server, proxy, tls: { ca, cert, key } };
  } catch {
    // The parser quotes the line that it stumbles over, and that line can be a key.
  }
  throw new Error(
    "the kubeconfig of this provider cannot be read: expected one cluster and one user with their certificates in it",
  );
}
