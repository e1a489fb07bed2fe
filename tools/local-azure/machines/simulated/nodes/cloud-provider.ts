import type { VirtualMachine } from "../../machines";
import { type Api, ApiError, mergePatch, strategicPatch, type Body } from "../api";
import { cniAnnotation, fakeNode } from "./kwok";
import {
  isOf,
  isReady,
  type NodeTaint,
  readyCondition,
  shutDown,
  uninitialized,
  unreachable,
} from "./node";

export interface CloudProviderOptions {
  readonly api: Api;
  /** The machine of this name, if Azure has one now. */
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  /**
   * Whether to delete the Node of a machine that is gone, and to taint that of one that is off: not
   * where Azure's own program runs.
   */
  readonly managesNodes: boolean;
  readonly log: (message: string) => void;
}

/**
 * The id by which Azure's cloud provider knows a machine. It writes the resource group in lower
 * case.
 */
export const providerId = ({ subscriptionId, resourceGroup, name }: VirtualMachine): string =>
  `azure:///subscriptions/${subscriptionId}/resourceGroups/${resourceGroup.toLowerCase()}` +
  `/providers/Microsoft.Compute/virtualMachines/${name}`;

/** Labels that Azure's node manager gives a Node (v1.36.5: no beta ones). */
export function cloudLabels({ location, zone, size }: VirtualMachine): Record<string, string> {
  const region = location.toLowerCase().replaceAll(" ", "");
  // Outside of zones the provider names the fault domain.
  const domain = zone === undefined ? "0" : `${region}-${zone}`;
  return {
    "node.kubernetes.io/instance-type": size,
    "topology.kubernetes.io/region": region,
    "topology.kubernetes.io/zone": domain,
  };
}

/**
 * A Node as Azure's cloud provider leaves it: its id, its labels, and the taint of a new one taken
 * off.
 */
export const initialized = (node: Body, vm: VirtualMachine): Body => ({
  ...node,
  metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...cloudLabels(vm) } },
  spec: {
    ...node.spec,
    providerID: providerId(vm),
    taints: node.spec.taints?.filter(({ key }: Body) => key !== uninitialized.key),
  },
});

/** The user that a pod is to the API. */
export const serviceAccount = ({ metadata, spec }: Body): string =>
  `system:serviceaccount:${metadata.namespace}:${spec.serviceAccountName ?? "default"}`;

const runsImage = (pod: Body, image: string): boolean =>
  pod.spec.containers.some((container: Body) => container.image?.includes(image));

/**
 * A pod that brings the host a CNI configuration: whatever of a DaemonSet mounts the folder for it.
 */
const bringsCni = ({ metadata, spec }: Body): boolean =>
  metadata.ownerReferences?.some(({ kind }: Body) => kind === "DaemonSet") &&
  spec.volumes?.some(({ hostPath }: Body) =>
    /^\/etc\/cni(\/net\.d)?\/?$/.test(hostPath?.path ?? ""),
  );

/** The node manager on a Node initializes it; the controller manager, in v1.36.5, none. */
const initializerOf = (node: string, pods: readonly Body[]): Body | undefined =>
  pods.find((pod) => pod.spec.nodeName === node && runsImage(pod, "cloud-node-manager"));

/**
 * Does once what the pods would do that KWOK only pretends to run. Returns whether anything is
 * still due.
 *
 * A kubelet finds its CNI configuration once a pod that brings one runs on its node. Azure's node
 * manager initializes a Node, and its controller manager deletes the Node of a machine that is
 * gone, each only where its pod runs, and with the rights of that pod's service account: a cluster
 * whose cloud provider cannot be scheduled, or may not touch Nodes, shows it here as it would on
 * Azure.
 */
export async function reconcileCloudProvider({
  api,
  vmOf,
  kubeletOf,
  managesNodes,
  log,
}: CloudProviderOptions): Promise<boolean> {
  const [nodes, allPods] = await Promise.all([
    api.get("/api/v1/nodes").then(({ items }) => items as Body[]),
    api.get("/api/v1/pods?fieldSelector=status.phase=Running").then(({ items }) => items as Body[]),
  ]);
  const silent = (node: Body): boolean => {
    const vm = vmOf(node.metadata.name);
    return vm === undefined || !isOf(node, vm) || vm.isOff;
  };
  const ours = nodes.filter(
    ({ metadata, spec }) =>
      metadata.annotations?.["kwok.x-k8s.io/node"] || spec.providerID?.startsWith("azure:///"),
  );
  const dead = new Set(ours.filter(silent).map(({ metadata }) => metadata.name));
  const pods = allPods.filter(({ spec }) => !dead.has(spec.nodeName));

  let due = false;
  for (const node of ours) {
    const name: string = node.metadata.name;
    const path = `/api/v1/nodes/${name}`;
    const vm = vmOf(name);
    try {
      if (vm === undefined || !isOf(node, vm)) {
        due = true;
        await removeGone(node, managesNodes && vm === undefined, pods, api);
        continue;
      }
      if (managesNodes) due = (await taintWhileOff(node, vm, pods, api)) || due;
      if (!node.metadata.annotations?.[cniAnnotation]) {
        const cni = pods.find((pod) => pod.spec.nodeName === name && bringsCni(pod));
        const kubelet = kubeletOf(name);
        due ||= cni === undefined;
        if (cni && kubelet) {
          await kubelet.patch(path, {
            metadata: { annotations: { [cniAnnotation]: cni.metadata.ownerReferences[0].name } },
          });
        }
      }
      if (node.spec.taints?.some(({ key }: Body) => key === uninitialized.key)) {
        due = true;
        const manager = initializerOf(name, pods);
        if (manager) {
          await initialize(node, vm, api.as(serviceAccount(manager)));
        }
      }
    } catch (error) {
      due = true;
      // A Node changed in between, or gone: the next poll sees it.
      if (!(error instanceof ApiError && [404, 409].includes(error.status))) {
        log(`node ${name}: ${(error as Error).message}`);
      }
    }
  }
  return due;
}

async function initialize(node: Body, vm: VirtualMachine, api: Api): Promise<void> {
  const path = `/api/v1/nodes/${vm.name}`;
  await api.patch(
    `${path}/status`,
    { status: { addresses: node.status.addresses } },
    strategicPatch,
  );
  await api.put(path, initialized(await api.get(path), vm));
}

/**
 * The Node of a machine that is off stays, with a taint from when its kubelet is silent until it is
 * heard again. Returns whether that is still due.
 */
async function taintWhileOff(
  node: Body,
  vm: VirtualMachine,
  pods: readonly Body[],
  api: Api,
): Promise<boolean> {
  const { taints = [] } = node.spec as { taints?: NodeTaint[] };
  const others = taints.filter(({ key }) => key !== shutDown.key);
  const isTainted = others.length < taints.length;
  const manager = pods.find((pod) => runsImage(pod, "cloud-controller-manager"));
  if (isTainted === vm.isOff || manager === undefined) return false;
  if (isTainted !== isReady(node)) return true;
  const spec = { taints: isTainted ? others : [...taints, shutDown] };
  await api
    .as(serviceAccount(manager))
    .patch(`/api/v1/nodes/${node.metadata.name}`, { spec }, mergePatch);
  return true;
}

/**
 * A kubelet that is gone is noticed first; its Node goes when the controller manager finds no such
 * machine, and no sooner than one that Azure might not list yet.
 */
async function removeGone(
  node: Body,
  deletes: boolean,
  pods: readonly Body[],
  api: Api,
): Promise<void> {
  const path = `/api/v1/nodes/${node.metadata.name}`;
  if (readyCondition(node)?.status !== "Unknown") {
    const [fake = ""] = Object.keys(fakeNode);
    await api.patch(path, { metadata: { annotations: { [fake]: null } } }, mergePatch);
    await api.patch(`${path}/status`, unreachable(new Date().toISOString()), strategicPatch);
    return;
  }
  const manager = pods.find((pod) => runsImage(pod, "cloud-controller-manager"));
  if (!deletes || !manager) return;
  const age = Date.now() - Date.parse(node.metadata.creationTimestamp);
  if (age < (await graceMs(manager, api))) return;
  await api.as(serviceAccount(manager)).delete(path);
}

/** How old a Node must be to be deleted: azure.json, which the pod mounts, may say so. */
async function graceMs({ metadata, spec }: Body, api: Api): Promise<number> {
  const { secret } = spec.volumes.find((volume: Body) => volume.secret !== undefined);
  const { data } = await api.get(
    `/api/v1/namespaces/${metadata.namespace}/secrets/${secret.secretName}`,
  );
  const [azureJson = ""] = Object.values(data as Record<string, string>);
  const { nodeInstanceNotFoundGracePeriodInSeconds: seconds = 0 } = JSON.parse(
    Buffer.from(azureJson, "base64").toString(),
  ) as Body;
  return seconds * 1000;
}
