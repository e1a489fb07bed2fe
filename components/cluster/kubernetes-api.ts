import { X509Certificate } from "node:crypto";
import { checkServerIdentity, PeerCertificate } from "node:tls";
import { gunzipSync } from "node:zlib";

import { EnvHttpProxyAgent, request } from "undici";

import { proxyTo } from "../settings/shell-proxy";

const secondsPerRequest = 20;

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

interface Terminated {
  readonly exitCode: number;
  readonly message?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: Terminated;
  };
  readonly lastState?: { readonly terminated?: Terminated };
}

/** What this program reads of the objects that it asks for. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly generation?: number;
    readonly ownerReferences?: readonly { readonly kind: string; readonly controller?: boolean }[];
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly nodeName?: string;
    readonly unschedulable?: boolean;
    readonly providerID?: string;
    readonly containers?: readonly {
      readonly name: string;
      readonly image: string;
      readonly command?: readonly string[];
    }[];
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
  };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly phase?: string;
    readonly nodeInfo?: {
      readonly systemUUID: string;
      readonly architecture?: string;
      readonly kubeletVersion?: string;
      readonly kernelVersion?: string;
      /** Its program and version, as an address. */
      readonly containerRuntimeVersion?: string;
    };
    readonly message?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

export const readyCondition = ({ status }: KubernetesObject): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === "Ready");

export const isReady = (object: KubernetesObject): boolean =>
  readyCondition(object)?.status === "True";

/** A component in its static pod: what the operator's patches add to that stands before it. */
export const containerOf = ({ spec }: KubernetesObject, component: string) =>
  spec?.containers?.find(({ name }) => name === component);

/** The API did not answer at all; the state of the cluster is unknown. */
export class NoAnswer extends Error {
  constructor(
    message: string,
    /** As the system names it, such as ECONNREFUSED; where it does not, what it says; `silence` after 20 s. */
    readonly code: string,
  ) {
    super(message);
  }

  get isRefusedCertificate(): boolean {
    return ofCertificates.test(this.code);
  }
}

/** What OpenSSL and Node have against the certificate of who answers. */
const ofCertificates = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/;

/** An answer of the API that is no success. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly text: string,
  ) {
    super(message);
  }
}

/** The API of the cluster that a kubeconfig names. */
export class KubernetesApi {
  readonly server: string;
  /** PEM, of the kubeconfig's user. */
  readonly clientCertificate: string;
  /** The API server's own time, for operators' clocks may be off. */
  now = Date.now();
  /** That of the API server that answered; undefined before its first answer. */
  servingCertificate: PeerCertificate | undefined;
  /** By which it is asked. */
  readonly proxy: string | undefined;
  private readonly dispatcher: EnvHttpProxyAgent;

  /**
   * @param kubeconfig as kubeconfig.ts renders it
   * @param proxy where the kubeconfig names none; without any, HTTPS_PROXY and NO_PROXY are honoured
   */
  constructor(kubeconfig: string, proxy?: string) {
    const { clusters, users } = JSON.parse(kubeconfig) as {
      clusters: [{ cluster: Record<string, string> }];
      users: [{ user: Record<string, string> }];
    };
    const [{ cluster }] = clusters;
    const [{ user }] = users;
    const decoded = (text = "") => Buffer.from(text, "base64");
    this.server = cluster["server"]!;
    const cert = decoded(user["client-certificate-data"]);
    this.clientCertificate = cert.toString();
    const tls = {
      ca: decoded(cluster["certificate-authority-data"]),
      cert,
      key: decoded(user["client-key-data"]),
      checkServerIdentity: (host: string, certificate: PeerCertificate) => {
        this.servingCertificate = certificate;
        return checkServerIdentity(host, certificate);
      },
    };
    this.proxy = cluster["proxy-url"] ?? proxy ?? proxyTo(this.server);
    this.dispatcher = new EnvHttpProxyAgent({
      ...{ connect: tls, requestTls: tls },
      ...{ httpProxy: "", httpsProxy: this.proxy ?? "", noProxy: "" },
    });
  }

  close = (): Promise<void> => this.dispatcher.close();

  get = (path: string): Promise<string> => this.send("GET", path);

  async list<T = KubernetesObject>(path: string): Promise<readonly T[]> {
    return (JSON.parse(await this.get(path)) as { items: readonly T[] }).items;
  }

  /** The object, or nothing if there is none. */
  async find(path: string): Promise<KubernetesObject | undefined> {
    const text = await this.get(path).catch(unlessStatus(404));
    return text === undefined ? undefined : (JSON.parse(text) as KubernetesObject);
  }

  create = (path: string, object: object): Promise<string> =>
    this.send("POST", path, "application/json", object);

  merge = (path: string, patch: object): Promise<string> =>
    this.send("PATCH", path, "application/merge-patch+json", patch);

  apply = (path: string, object: object): Promise<string> =>
    this.send(
      "PATCH",
      `${path}?fieldManager=zoned&force=true`,
      "application/apply-patch+yaml",
      object,
    );

  /** Deletes the object, if there is one. */
  async delete(path: string): Promise<void> {
    await this.send("DELETE", path).catch(unlessStatus(404));
  }

  /**
   * @throws NoAnswer or ApiError that says what to do
   */
  private async send(method: string, path: string, type?: string, body?: object): Promise<string> {
    const { statusCode, headers, text } = await this.ask(method, path, type, body).catch(
      (error: Error) => {
        const { code = error.message } = (error.cause ?? error) as NodeJS.ErrnoException;
        const isSilent = error.name === "TimeoutError";
        const way = this.proxy === undefined ? "" : ` by the proxy ${new URL(this.proxy).host}`;
        if (ofCertificates.test(`${code}`)) {
          throw new NoAnswer(
            `the certificate that the API at ${this.server} shows${way} cannot be verified: it is of another CA or another name than the kubeconfig has, or not valid at this time (${code})`,
            `${code}`,
          );
        }
        throw new NoAnswer(
          `the API at ${this.server} does not answer from here${way} (${isSilent ? `silence for ${secondsPerRequest} s` : code}): ` +
            "the cluster is down, or this network may not reach it (apiAccessCidrs, or a private API; a proxy is taken from apiProxy, else from HTTPS_PROXY)",
          isSilent ? "silence" : `${code}`,
        );
      },
    );
    if (headers["date"] !== undefined) this.now = Date.parse(headers["date"] as string);
    if (statusCode >= 200 && statusCode < 300) return text;
    // Where /readyz fails, it lists all that is ready as well.
    const failed = text.match(/^\[-\].*$/gm)?.join(", ");
    throw new ApiError(
      `the API at ${this.server} answered ${statusCode} to ${method} ${path.split("?")[0]}, ` +
        `expected 200: ${failed ?? text.slice(0, 300).trim()}${statusCode === 401 ? this.unknownUser() : ""}`,
      statusCode,
      text,
    );
  }

  private unknownUser(): string {
    const { validTo } = new X509Certificate(this.clientCertificate);
    return (
      ` (the certificate of the stack's kubeconfig is valid until ${validTo}; ` +
      "a pulumi up that touches no machine renews it in its last 30 days, and when it has ended)"
    );
  }

  private async ask(method: string, path: string, type?: string, body?: object) {
    const {
      statusCode,
      headers,
      body: answer,
    } = await request(`${this.server}${path}`, {
      dispatcher: this.dispatcher,
      method,
      headers: {
        // The metrics of an API server and of hundreds of kubelets are tens of megabytes without it.
        "accept-encoding": "gzip",
        ...(body !== undefined && { "content-type": type! }),
      },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(secondsPerRequest * 1000),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const isCompressed = headers["content-encoding"] === "gzip";
    return { statusCode, headers, text: (isCompressed ? gunzipSync(bytes) : bytes).toString() };
  }
}

/** Does something by the API of the cluster that a kubeconfig names. */
export async function withApi<T>(
  kubeconfig: string,
  action: (api: KubernetesApi) => Promise<T>,
): Promise<T> {
  const api = new KubernetesApi(kubeconfig);
  try {
    return await action(api);
  } finally {
    await api.close();
  }
}

/** Why the API of the cluster that a kubeconfig names is out of reach; undefined if anything answers there. */
export const silenceOf = (kubeconfig: string): Promise<string | undefined> =>
  withApi(kubeconfig, (api) => api.get("/readyz")).then(
    () => undefined,
    (error) => (error instanceof NoAnswer ? error.message : undefined),
  );

/** Turns an answer of this status into nothing. */
const unlessStatus =
  (status: number) =>
  (error: unknown): undefined => {
    if (!(error instanceof ApiError && error.status === status)) throw error;
    return undefined;
  };
