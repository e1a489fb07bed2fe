import { existsSync } from "node:fs";
import { Writable } from "node:stream";

import type {
  ApiException,
  CoreV1Api,
  Exec,
  KubeConfig,
  V1Service,
  V1Status,
} from "@kubernetes/client-node";

import { messageOf, UserError } from "../../shared/user-error";

const namespace = "kube-system";

export interface Access {
  /** A kubeconfig; without it $KUBECONFIG, then ~/.kube/config. */
  readonly kubeconfig?: string;
  /** One of its contexts; without it the current one. */
  readonly context?: string;
}

/** What a living cluster is asked. */
export interface Cluster {
  /** The node's addresses, as the kubelet reported them. */
  addressesOf(node: string): Promise<string[]>;
  /** How to run commands beside the node's kube-proxy, and the name of its pod. */
  kubeProxyOn(node: string): Promise<{ readonly pod: string; readonly run: Run }>;
  service(namespace: string, name: string): Promise<V1Service>;
}

export async function connect(access: Access): Promise<Cluster> {
  // It is loaded only here: reading dumps needs nothing of it.
  const { CoreV1Api: Api, Exec } = await import("@kubernetes/client-node");
  const config = await configOf(access);
  const server = config.getCurrentCluster()?.server ?? "";
  const api = config.makeApiClient(Api);
  const exec = new Exec(config);
  return {
    addressesOf: async (node) => {
      const { status } = await asked(server, api.readNode({ name: node }), async () =>
        unknownNode(node, await asked(server, api.listNode())),
      );
      return (status?.addresses ?? []).map(({ address }) => address);
    },
    kubeProxyOn: async (node) => {
      const pod = await asked(server, kubeProxyPod(api, node));
      return { pod, run: execIn(exec, { namespace, pod, container: "kube-proxy" }) };
    },
    service: (namespace, name) =>
      asked(server, api.readNamespacedService({ namespace, name }), () =>
        Promise.resolve(new UserError(`service: there is no Service ${namespace}/${name}`, 2)),
      ),
  };
}

async function configOf({ kubeconfig, context }: Access): Promise<KubeConfig> {
  const { KubeConfig: Config } = await import("@kubernetes/client-node");
  const config = new Config();
  if (kubeconfig !== undefined && !existsSync(kubeconfig)) {
    throw new UserError(`kubeconfig: there is no file ${kubeconfig}`, 2);
  }
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
  } catch (error) {
    throw new UserError(`kubeconfig: it cannot be read: ${messageOf(error)}`, 2);
  }
  const contexts = config.getContexts().map(({ name }) => name);
  if (context !== undefined && !contexts.includes(context)) {
    throw new UserError(`context: expected one of ${contexts.join(", ")}, got "${context}"`, 2);
  }
  if (context !== undefined) config.setCurrentContext(context);
  return config;
}

async function kubeProxyPod(api: CoreV1Api, node: string): Promise<string> {
  const { items } = await api.listNamespacedPod({
    namespace,
    labelSelector: "k8s-app=kube-proxy",
    fieldSelector: `spec.nodeName=${node}`,
  });
  const running = items.find(
    ({ spec, status }) => spec?.hostNetwork === true && status?.phase === "Running",
  );
  if (running?.metadata?.name !== undefined) return running.metadata.name;
  const got = items
    .map(({ metadata, status }) => `${metadata?.name} (${status?.phase})`)
    .join(", ");
  throw new UserError(
    `node: expected a running pod in ${namespace} with the label k8s-app=kube-proxy on ${node}, ` +
      `got ${got === "" ? "none" : got}; take the dumps on the node itself and name their folder`,
  );
}

function unknownNode(
  node: string,
  { items }: { items: { metadata?: { name?: string } }[] },
): Error {
  const names = items.map(({ metadata }) => metadata?.name).join(", ");
  return new UserError(`node: expected one of ${names}, got "${node}"`, 2);
}

/** The answer, or what went wrong with whom; `missing` explains a 404. */
async function asked<T>(
  server: string,
  answer: Promise<T>,
  missing?: () => Promise<Error>,
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code, body } = error as Partial<ApiException<unknown>>;
    if (code === 404 && missing !== undefined) throw await missing();
    const reason = typeof code === "number" ? `${code} ${reasonOf(body)}` : ended(error);
    throw new UserError(`the Kubernetes API at ${server}: ${reason}`);
  }
}

function reasonOf(body: unknown): string {
  const parsed: unknown = typeof body === "string" ? parse(body) : body;
  const { message } = (parsed ?? {}) as { message?: unknown };
  return typeof message === "string" ? message : "without a message";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.trim() };
  }
}

/** What a command printed, or why there is nothing. */
export type Outcome = { readonly output: string } | { readonly failure: string };

type Run = (command: readonly string[]) => Promise<Outcome>;

type Socket = Awaited<ReturnType<Exec["exec"]>>;

/** On an emulated processor a command takes a minute and more. */
const patience = 180_000;

interface Place {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

function execIn(exec: Exec, { namespace, pod, container }: Place): Run {
  return async (command) => {
    const output = new Collected();
    const errors = new Collected();
    let report: (status: V1Status) => void = () => undefined;
    const reported = new Promise<V1Status>((resolve) => (report = resolve));
    try {
      const socket = await exec.exec(
        namespace,
        pod,
        container,
        [...command],
        output,
        errors,
        null,
        false,
        (status) => report(status),
      );
      const status = await Promise.race([reported, gone(socket)]).finally(() => socket.terminate());
      if (status.status === "Success") return { output: output.text() };
      return { failure: errors.text().trim() || (status.message ?? "without a message") };
    } catch (error) {
      return { failure: ended(error) };
    }
  };
}

/** Rejects when the command will not be heard of any more. */
const gone = (socket: Socket): Promise<never> =>
  new Promise((_, reject) => {
    const late = setTimeout(
      () => reject(new Error(`it has not ended after ${patience / 1000} s`)),
      patience,
    );
    socket.onclose = () => {
      clearTimeout(late);
      reject(new Error("the connection ended before it did"));
    };
  });

class Collected extends Writable {
  private readonly chunks: Buffer[] = [];

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }

  text(): string {
    return Buffer.concat(this.chunks).toString("utf8");
  }
}

/** What a connection died of; a WebSocket throws events, Node hides the reason in the cause. */
function ended(error: unknown): string {
  const { message, cause, code } = error as { message?: string; cause?: unknown; code?: string };
  if (cause instanceof Error && cause.message !== "") return cause.message;
  return message || code || String(error);
}
