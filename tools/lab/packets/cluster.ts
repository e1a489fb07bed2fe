import { availableParallelism } from "node:os";
import { send } from "./cluster/api-server";

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
