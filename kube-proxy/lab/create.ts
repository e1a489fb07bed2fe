import { send } from "./api-server";
import { namespace, serviceOf, slicesOf, type Wanted } from "./objects";

const services = `/api/v1/namespaces/${namespace}/services`;
const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

export interface NodeAddresses {
  readonly name: string;
  readonly zone: string;
  readonly v4: string;
  readonly v6: string;
}

/** The Node that a kubelet would register, and the namespace of the Services. */
export async function createNode({ name, zone, v4, v6 }: NodeAddresses): Promise<void> {
  await send("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  await send("POST", "/api/v1/nodes", {
    metadata: { name, labels: { "topology.kubernetes.io/zone": zone } },
  });
  await send("PATCH", `/api/v1/nodes/${name}/status`, {
    status: { addresses: [v4, v6].map((address) => ({ type: "InternalIP", address })) },
  });
}

/** Services with their endpoints, many at a time. */
export async function create(all: readonly Wanted[]): Promise<void> {
  const waiting = [...all];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await createOne(next);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
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
