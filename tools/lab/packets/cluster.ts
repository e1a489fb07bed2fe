import { generateKeyPairSync, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { availableParallelism } from "node:os";
import { join } from "node:path";

import { jsonRequest } from "../../local-azure/json-request";
import { folder, type Running, start } from "./task";

const port = 6443;

const address = `https://127.0.0.1:${port}`;

const token = randomUUID();

/** Many requests at a time on connections that stay: a lab makes ten thousand objects. */
const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false });

const kubeconfig = join(folder, "kubeconfig");

export interface ControlPlane {
  readonly etcd: string;
  readonly "kube-apiserver": string;
}

/** Ranges of the Services, and the node's address, that the Service `kubernetes` leads to. */
export interface Ranges {
  readonly services: string;
  readonly node: string;
}

/** An etcd and an API server on loopback, without controllers; done when the API is ready. */
export async function startApiServer(
  binaries: ControlPlane,
  { services, node }: Ranges,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeKeys();
  start("etcd", binaries.etcd, [
    `--data-dir=${join(folder, "etcd")}`,
    "--unsafe-no-fsync",
    "--log-level=error",
    "--listen-client-urls=http://127.0.0.1:2379",
    "--advertise-client-urls=http://127.0.0.1:2379",
    "--listen-peer-urls=http://127.0.0.1:2380",
  ]);
  const server = start("kube-apiserver", binaries["kube-apiserver"], [
    "--etcd-servers=http://127.0.0.1:2379",
    `--service-cluster-ip-range=${services}`,
    `--advertise-address=${node}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${folder}`,
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(folder, "sa.pub")}`,
    `--service-account-signing-key-file=${join(folder, "sa.key")}`,
    "--authorization-mode=AlwaysAllow",
  ]);
  await server.until("the API is ready", 120, async () => {
    await send("GET", "/readyz");
    return true;
  });
}

function writeKeys(): void {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const write = (name: string, text: string | Buffer): void =>
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  write("sa.pub", publicKey.export({ type: "spki", format: "pem" }));
  write("sa.key", privateKey.export({ type: "pkcs8", format: "pem" }));
  write("tokens.csv", `${token},lab,lab,system:masters\n`);
  write(
    "kubeconfig",
    JSON.stringify({
      clusters: [{ name: "lab", cluster: { server: address, "insecure-skip-tls-verify": true } }],
      users: [{ name: "lab", user: { token } }],
      contexts: [{ name: "lab", context: { cluster: "lab", user: "lab" } }],
      "current-context": "lab",
    }),
  );
}

/** Asks the API; an error has its words when the answer is no success. */
async function send(method: string, path: string, body?: object): Promise<void> {
  const { status, body: answer } = await jsonRequest(
    { host: "127.0.0.1", port, path, method, agent, headers: { authorization: `Bearer ${token}` } },
    body,
    method === "PATCH" ? "application/merge-patch+json" : undefined,
  );
  if (status >= 300) throw new Error(`${method} ${path}: ${answer["message"]}`);
}

export type Mode = "iptables" | "nftables" | "ipvs";

/** kube-proxy as kubeadm configures it, but for what a namespace does not let it change. */
function configuration(mode: Mode, node: string, pods: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: node,
    clusterCIDR: pods,
    clientConnection: { kubeconfig },
    metricsBindAddress: "127.0.0.1:10249",
    healthzBindAddress: "127.0.0.1:10256",
    conntrack: { maxPerCore: 0 },
    oomScoreAdj: 0,
  };
}

/** iptables 1.8.9 takes minutes for 5,000 Services, the more the more there are. */
const syncSeconds = 720;

/** A kube-proxy of the node of that name; done when it has written all its rules. */
export async function startProxy(
  binary: string,
  mode: Mode,
  { node, pods }: { node: string; pods: string },
): Promise<Running> {
  const config = join(folder, `${mode}.json`);
  writeFileSync(config, JSON.stringify(configuration(mode, node, pods)));
  const proxy = start(`kube-proxy-${mode}`, binary, [`--config=${config}`]);
  await written(proxy, 0);
  return proxy;
}

/** Done when the rules have a change of this time, in milliseconds since 1970, and all before. */
export const written = (proxy: Running, since: number): Promise<void> =>
  proxy.until("a sync", syncSeconds, async () => isInStep(await metrics(), since / 1000));

const metrics = async (): Promise<string> => (await fetch("http://127.0.0.1:10249/metrics")).text();

/** The values of a metric by IP family. */
function values(text: string, name: string): Map<string, number> {
  const line = new RegExp(String.raw`^kubeproxy_${name}\{ip_family="(\w+)"\} (\S+)$`, "gm");
  return new Map([...text.matchAll(line)].map(([, family = "", value]) => [family, Number(value)]));
}

/** Whether there was something to write since, and it has been, in every family. */
function isInStep(text: string, since: number): boolean {
  const queued = values(text, "sync_proxy_rules_last_queued_timestamp_seconds");
  const done = values(text, "sync_proxy_rules_last_timestamp_seconds");
  return (
    queued.size > 0 &&
    [...queued].every(([family, at]) => since <= at && at <= (done.get(family) ?? 0))
  );
}

/** A metric of kube-proxy's IPv4 half. */
export const metric = async (name: string): Promise<number> =>
  values(await metrics(), name).get("IPv4") ?? 0;

const ticksPerSecond = 100;

/** Seconds of processor time that a process and the tools it ran have used. */
export function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name, which may hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user = 0, system = 0, ofTools = 0, ofToolsInSystem = 0] = fields.slice(11, 15).map(Number);
  return (user + system + ofTools + ofToolsInSystem) / ticksPerSecond;
}

/** Kubernetes objects as the API takes them, as far as a lab fills them in. */
export interface Wanted {
  readonly name: string;
  readonly ports: readonly Port[];
  readonly endpoints: readonly Endpoint[];
  /** Addresses of a kind, by family; one that is undefined leaves that family out. */
  readonly clusterIp: Addresses | "None";
  readonly spec?: object;
  /** What a load balancer reports as its own. */
  readonly ingress?: readonly object[];
}

interface Addresses {
  readonly v4?: string;
  readonly v6?: string;
}

export interface Port {
  readonly name?: string;
  readonly port: number;
  readonly targetPort: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly nodePort?: number;
}

export interface Endpoint {
  readonly address: Addresses;
  readonly nodeName: string;
  readonly conditions?: { ready: boolean; serving: boolean; terminating: boolean };
  readonly hints?: { forZones: readonly { name: string }[] };
}

const namespace = "lab";

const families = [
  ["v4", "IPv4"],
  ["v6", "IPv6"],
] as const;

function serviceOf({ name, ports, clusterIp, spec }: Wanted): object {
  const present = families.filter(([key]) => clusterIp === "None" || clusterIp[key]);
  const addresses = clusterIp === "None" ? ["None"] : present.map(([key]) => clusterIp[key] ?? "");
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: {
      clusterIP: addresses[0],
      clusterIPs: addresses,
      ipFamilies: present.map(([, family]) => family),
      ipFamilyPolicy: present.length === 2 ? "RequireDualStack" : "SingleStack",
      ports,
      ...spec,
    },
  };
}

/** What the controller of EndpointSlices would make: a slice for each family. */
function slicesOf(wanted: Wanted): object[] {
  const { name, ports, endpoints, clusterIp } = wanted;
  return families
    .filter(([key]) => clusterIp === "None" || clusterIp[key])
    .filter(([key]) => endpoints.some(({ address }) => address[key]))
    .map(([key, addressType]) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${name}-${key}`,
        namespace,
        labels: { "kubernetes.io/service-name": name },
      },
      addressType,
      ports: ports.map(({ name: port = "", targetPort, protocol }) => ({
        name: port,
        port: targetPort,
        protocol,
      })),
      endpoints: endpoints
        .filter(({ address }) => address[key])
        .map(({ address, conditions = alive, ...rest }) => ({
          addresses: [address[key]],
          conditions,
          ...rest,
        })),
    }));
}

const alive = { ready: true, serving: true, terminating: false };

const services = `/api/v1/namespaces/${namespace}/services`;

const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

const nodes = "/api/v1/nodes";

export interface NodeAddresses {
  readonly name: string;
  readonly v4: string;
  readonly v6: string;
}

/** The Node that a kubelet would register, and the namespace of the Services. */
export async function createNode({ name, v4, v6 }: NodeAddresses): Promise<void> {
  await send("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  await send("POST", nodes, { metadata: { name } });
  await send("PATCH", `${nodes}/${name}/status`, {
    status: { addresses: [v4, v6].map((address) => ({ type: "InternalIP", address })) },
  });
}

/** Labels the Node with its zone, as a cloud's node controller does; null takes it back. */
export async function setZone(name: string, zone: string | null): Promise<void> {
  await send("PATCH", `${nodes}/${name}`, {
    metadata: { labels: { "topology.kubernetes.io/zone": zone } },
  });
}

/** Services with their endpoints, many at a time. */
export async function create(all: readonly Wanted[]): Promise<void> {
  const waiting = [...all];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await createOne(next);
  };
  // An API server on emulated processors lets requests that wait for others time out.
  await Promise.all(Array.from({ length: 2 * availableParallelism() }, worker));
}

async function createOne(wanted: Wanted): Promise<void> {
  await send("POST", services, serviceOf(wanted));
  if (wanted.ingress) {
    await send("PATCH", `${services}/${wanted.name}/status`, {
      status: { loadBalancer: { ingress: wanted.ingress } },
    });
  }
  for (const slice of slicesOf(wanted)) await send("POST", slices, slice);
}

/** Puts other endpoints behind a Service. */
export async function replaceEndpoints(wanted: Wanted): Promise<void> {
  for (const slice of slicesOf(wanted)) {
    const { metadata } = slice as { metadata: { name: string } };
    await send("PUT", `${slices}/${metadata.name}`, slice);
  }
}

export async function remove(wanted: Wanted): Promise<void> {
  for (const slice of slicesOf(wanted)) {
    const { metadata } = slice as { metadata: { name: string } };
    await send("DELETE", `${slices}/${metadata.name}`);
  }
  await send("DELETE", `${services}/${wanted.name}`);
}
