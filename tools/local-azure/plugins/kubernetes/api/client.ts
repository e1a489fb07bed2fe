import * as https from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { checkServerIdentity } from "node:tls";
import { urlToHttpOptions } from "node:url";

import { jsonRequest } from "../../../json-request";
import { Properties } from "../../protocol/values";
import { at, items, text } from "../objects";

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Where connections to a host go instead, for a name that does not resolve here. */
export type Resolve = (host: string, port: number) => Endpoint | undefined;

/** The name in the certificate stays the one that was asked for, wherever the connection leads. */
class RedirectingAgent extends https.Agent {
  constructor(
    private readonly resolve: Resolve,
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
    const target = this.resolve(host, Number(options.port));
    return super.createConnection(
      {
        ...options,
        ...target,
        checkServerIdentity: (_host, certificate) => checkServerIdentity(expected, certificate),
      },
      callback,
    );
  }
}

/** The address of an API server and the credentials for it. */
export interface Access {
  readonly server: URL;
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
    this.agent = new RedirectingAgent(resolve, {
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
