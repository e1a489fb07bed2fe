import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { Writable } from "node:stream";
import type {
  ApiException,
  CoreV1Api,
  Exec,
  KubeConfig,
  V1Service,
  V1Status,
} from "@kubernetes/client-node";
import { dirname, join, resolve } from "node:path";

import { messageOf, UserError } from "../../shared/user-error";
import { Progress } from "../../shared/progress";
import type { NodeDump } from "../model/dump";
import { type Destination, type Packet, serviceName } from "../model/packet";
import { type DumpText, nodeDump } from "../read/read-dumps";

const namespace = "kube-system";

export interface Access {
  /** A kubeconfig; without it $KUBECONFIG, then ~/.kube/config. */
  readonly kubeconfig?: string;
  /** One of its contexts; without it the current one. */
  readonly context?: string;
}

/** What a living cluster is asked. */
interface Cluster {
  /** The node's addresses, as the kubelet reported them. */
  addressesOf(node: string): Promise<string[]>;
  /** How to run commands beside the node's kube-proxy, and the name of its pod. */
  kubeProxyOn(node: string): Promise<{ readonly pod: string; readonly run: Run }>;
  service(namespace: string, name: string): Promise<V1Service>;
}

async function connect(access: Access): Promise<Cluster> {
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
  // A kubeconfig may name no current one.
  const named = context ?? config.getCurrentContext() ?? "";
  if (!contexts.includes(named)) {
    throw new UserError(`context: expected one of ${contexts.join(", ")}, got "${named}"`, 2);
  }
  config.setCurrentContext(named);
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
type Outcome = { readonly output: string } | { readonly failure: string };

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

interface LiveNode {
  readonly dump: NodeDump;
  /** `NAMESPACE/NAME[:PORT]`, as the API has it. */
  serviceNamed(text: string): Promise<Destination[]>;
}

export async function liveNode(node: string, access: Access): Promise<LiveNode> {
  const cluster = await connect(access);
  const { texts, notes } = await take(cluster, node);
  return {
    dump: nodeDump(texts, notes),
    serviceNamed: async (text) => {
      const { namespace, name, port } = serviceName(text);
      return destinationsOf(await cluster.service(namespace, name), port);
    },
  };
}

/** Takes the dumps of a node into a folder, all of them or none. */
export async function dumpNode(node: string, access: Access, folder: string): Promise<Taken> {
  checkEmpty(folder);
  const taken = await take(await connect(access), node);
  keep(taken.texts, folder);
  return taken;
}

/** Refused before the cluster is asked: two nodes' dumps in one folder are of neither. */
function checkEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new UserError(
      `dump: expected a new or empty folder, got ${folder}, which has files in it`,
      2,
    );
  }
}

/** The dumps as a folder, all of them or none. */
function keep(texts: readonly DumpText[], folder: string): void {
  const whole = resolve(folder);
  mkdirSync(dirname(whole), { recursive: true });
  const draft = mkdtempSync(`${whole}.`);
  try {
    for (const { file, text } of texts) writeFileSync(join(draft, file), text);
    renameSync(draft, whole);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
}

/** Where a Service is reached inside its cluster, as the API has it; `port` by name or number. */
function destinationsOf({ metadata, spec }: V1Service, port: string | null): Destination[] {
  const name = `${metadata?.namespace}/${metadata?.name}`;
  const addresses = (spec?.clusterIPs ?? []).filter((address) => address !== "None");
  if (addresses.length === 0) {
    throw new UserError(
      `service: ${name} has no cluster IP (headless, or an ExternalName), so kube-proxy leaves it be`,
      2,
    );
  }
  const all = spec?.ports ?? [];
  const ports = all.filter((each) => port === null || [each.name, `${each.port}`].includes(port));
  if (ports.length === 0) {
    const had = all
      .map((each) => (each.name ? `${each.name} (${each.port})` : each.port))
      .join(", ");
    throw new UserError(`service: expected a port of ${name}, which are ${had}, got "${port}"`, 2);
  }
  return addresses.flatMap((destination) =>
    ports.map((each) => ({
      destination,
      port: each.port,
      protocol: (each.protocol ?? "TCP").toLowerCase() as Packet["protocol"],
    })),
  );
}

interface Source {
  /** In which it is kept. */
  readonly file: string;
  readonly command: readonly string[];
}

/**
 * Of one thing, each where the one before it has failed: upstream's image has cat, and no ipvsadm.
 */
const things: readonly (readonly Source[])[] = [
  [{ file: "iptables-save.txt", command: ["iptables-save"] }],
  [{ file: "ip6tables-save.txt", command: ["ip6tables-save"] }],
  [{ file: "ipset-save.txt", command: ["ipset", "save"] }],
  [
    { file: "ipvsadm.txt", command: ["ipvsadm", "-Sn"] },
    { file: "ip_vs.txt", command: ["cat", "/proc/net/ip_vs"] },
  ],
  [{ file: "nft.json", command: ["nft", "-j", "list", "ruleset"] }],
  [{ file: "ip-addr.txt", command: ["ip", "addr"] }],
  [{ file: "ip-route.txt", command: ["ip", "route"] }],
];

interface Taken {
  readonly texts: readonly DumpText[];
  /** What could not be taken and why, one sentence each. */
  readonly notes: readonly string[];
}

/** What the node's kernel has, through the pod of its kube-proxy. */
async function take(cluster: Cluster, node: string): Promise<Taken> {
  const addresses = await cluster.addressesOf(node);
  const { pod, run } = await cluster.kubeProxyOn(node);
  const texts: DumpText[] = [];
  const notes: string[] = [];
  // One after another: a busy node answers one of them within seconds, and all at once within
  // minutes.
  await new Progress(process.stderr).during(`asking ${pod} on ${node}`, async (step) => {
    const ask = async ({ file, command }: Source): Promise<string | null> => {
      const name = command.join(" ");
      step.update(name);
      const outcome = await run(command);
      if ("failure" in outcome) return `\`${name}\` in ${pod}: ${whyNot(outcome)}.`;
      texts.push({ file, text: outcome.output });
      return null;
    };
    for (const sources of things) {
      const failures: string[] = [];
      for (const source of sources) {
        const failure = await ask(source);
        if (failure === null) break;
        failures.push(failure);
      }
      if (failures.length === sources.length) notes.push(...failures);
    }
  });
  if (texts.length === 0) {
    throw new UserError(`nothing could be taken from ${node}:\n  ${notes.join("\n  ")}`);
  }
  if (texts.some(({ file }) => file === "ip-addr.txt")) return { texts, notes };
  return {
    texts: [...texts, { file: "node-addresses.txt", text: brief(node, addresses) }],
    notes: [
      ...notes,
      `The node's own addresses are those that the API has: ${addresses.join(", ")}.`,
    ],
  };
}

/** kube-proxy's image has what kube-proxy uses, which need not be everything. */
function whyNot({ failure }: Extract<Outcome, { failure: string }>): string {
  if (/\/proc\/net\/ip_vs.*no such file/i.test(failure)) return "the kernel has no IPVS loaded";
  if (/executable file not found|no such file or directory/i.test(failure)) {
    return "the image does not have it";
  }
  return failure.split("\n")[0]?.replace(/\.$/, "") ?? "";
}

/** As `ip -br addr` would write it, on the interface that is not known. */
const brief = (node: string, addresses: readonly string[]): string =>
  addresses
    .filter((address) => /^[\d.]+$|:/.test(address))
    .map((address) => `${node}  UNKNOWN  ${address}/${address.includes(":") ? 128 : 32}\n`)
    .join("");
