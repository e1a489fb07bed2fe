import { Agent } from "node:https";

import { parse } from "yaml";

import { type Body, jsonRequest } from "../../json-request";

export type { Body };

/** Where an API server listens, and what its certificate must say. */
export interface ApiServer {
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
  readonly ca: string;
}

export interface ApiUser {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** A user to act as, which only cluster administrators may. */
  readonly as?: string;
  /** What else is to be known of that user: a value by each name. */
  readonly extra?: Readonly<Record<string, string>>;
}

/** An answer of the API that is no success, in its own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** As long as kubeadm tries a request (`kubernetesAPICall`): a busy host has left one unanswered for 20 s. */
const timeoutMs = 60_000;

/**
 * A connection kept over a restart of the API server would fail the next request. A session is
 * resumed, which spares a server without KVM a signature per request, and is made anew where the
 * server does not know it any more.
 */
const agent = new Agent({ keepAlive: false });

export const mergePatch = "application/merge-patch+json";
export const strategicPatch = "application/strategic-merge-patch+json";
/** Makes the object where there is none. */
export const applyPatch = "application/apply-patch+yaml";

/** What one user may do at one API server. */
export class Api {
  constructor(
    private readonly server: ApiServer,
    private readonly user: ApiUser,
  ) {}

  as(user: string, extra: ApiUser["extra"] = {}): Api {
    return new Api(this.server, { ...this.user, as: user, extra });
  }

  get = (path: string): Promise<Body> => this.send("GET", path);
  post = (path: string, body: Body): Promise<Body> => this.send("POST", path, body);
  put = (path: string, body: Body): Promise<Body> => this.send("PUT", path, body);
  delete = (path: string): Promise<Body> => this.send("DELETE", path);
  patch = (path: string, body: Body, type = mergePatch): Promise<Body> =>
    this.send("PATCH", path, body, type);

  /** The object, or nothing if there is none. */
  find = (path: string): Promise<Body | undefined> => this.get(path).catch(unlessStatus(404));

  /** Whether the API says that all of it is up. */
  async isReady(): Promise<boolean> {
    try {
      await this.send("GET", "/readyz");
      return true;
    } catch {
      return false;
    }
  }

  private async send(
    method: string,
    path: string,
    body?: Body,
    type = "application/json",
  ): Promise<Body> {
    const { serverName: servername, ...server } = this.server;
    const { token, as, extra = {}, ...pair } = this.user;
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(as && { "impersonate-user": as }),
      ...Object.fromEntries(
        Object.entries(extra).map(([name, value]) => [
          `impersonate-extra-${encodeURIComponent(name)}`,
          value,
        ]),
      ),
    };
    const { status, body: answer } = await jsonRequest(
      { ...server, ...pair, servername, method, path, headers, agent, timeout: timeoutMs },
      body,
      type,
    );
    if (status >= 200 && status < 300) return answer;
    throw new ApiError(status, `${answer["message"] ?? `${method} ${path}: ${status}`}`);
  }
}

/** Turns an answer of this status into nothing. */
export const unlessStatus =
  (status: number) =>
  (error: unknown): undefined => {
    if (!(error instanceof ApiError && error.status === status)) {
      throw error;
    }
    return undefined;
  };

interface Kubeconfig {
  readonly clusters: readonly [
    { cluster: { server: string; "certificate-authority-data"?: string; "proxy-url"?: string } },
  ];
  readonly users: readonly [
    {
      user: { token?: string; "client-certificate-data"?: string; "client-key-data"?: string };
    },
  ];
}

const decoded = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8");

/** What a kubeconfig of one cluster and one user says, with the certificates in it. */
export function kubeconfigOf(text: string): {
  server: URL;
  /** By which the server is asked. */
  proxy?: string;
  ca: string;
  user: ApiUser;
} {
  const { clusters, users } = parse(text) as Kubeconfig;
  const { server, "certificate-authority-data": ca, "proxy-url": proxy } = clusters[0].cluster;
  if (ca === undefined) {
    throw new Error(`the kubeconfig for ${server} has no certificate-authority-data`);
  }
  const user = users[0].user;
  return {
    server: new URL(server),
    proxy,
    ca: decoded(ca) ?? "",
    user: {
      token: user.token,
      cert: decoded(user["client-certificate-data"]),
      key: decoded(user["client-key-data"]),
    },
  };
}
