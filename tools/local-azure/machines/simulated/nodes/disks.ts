import { findSize, mostDataDisks } from "../../../arm/subscription/offers";
import type { VirtualMachine } from "../../machines";
import { type Api, ApiError, type Body, strategicPatch } from "../api";
import { cloudLabels } from "./cloud-provider";
import { podPath } from "./kubelets";
import { imageName, isOfDaemonSet, isOfNode } from "./mirror-pods";
import { isOf, nodePath } from "./node";

const driverName = "disk.csi.azure.com";
const csiNodes = "/apis/storage.k8s.io/v1/csinodes";
/** A kubelet's condition for a pod whose volumes are there; its containers come next. */
const readyToStart = "PodReadyToStartContainers";
const zoneLabel = "topology.kubernetes.io/zone";

interface Disks {
  readonly api: Api;
  readonly nodes: readonly Body[];
  readonly pods: readonly Body[];
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
}

/**
 * What kubelets and the disk driver's pods on nodes do for a disk: a node that runs such a pod takes
 * disks of its zone, as many as its machine; a pod begins when its disks are attached; and a claim
 * whose disk has grown has a file system of that size.
 */
export async function reconcileDisks(disks: Disks): Promise<void> {
  const { api, nodes, pods, vmOf, kubeletOf } = disks;
  const found = await itemsAt(api, csiNodes);
  for (const node of nodes) {
    const { name } = node.metadata;
    const vm = vmOf(name);
    const kubelet = kubeletOf(name);
    if (vm === undefined || !isOf(node, vm) || kubelet === undefined) continue;
    const csiNode = found.find(({ metadata }) => metadata.name === name);
    await unlessOutdated(register({ node, vm, csiNode, pods }, kubelet));
  }
  const claimants = pods.filter(
    (pod) => pod.metadata.deletionTimestamp === undefined && claimsOf(pod).length > 0,
  );
  if (claimants.length === 0) return;
  const [claims = [], volumes = [], attachments = []] = await Promise.all(
    [
      "/api/v1/persistentvolumeclaims",
      "/api/v1/persistentvolumes",
      "/apis/storage.k8s.io/v1/volumeattachments",
    ].map((path) => itemsAt(api, path)),
  );
  for (const pod of claimants) {
    const kubelet = kubeletOf(pod.spec.nodeName ?? "");
    if (kubelet === undefined) continue;
    const own = claimsOf(pod).flatMap((name) => {
      const claim = claims.find(
        ({ metadata }) => metadata.name === name && metadata.namespace === pod.metadata.namespace,
      );
      const volume = volumes.find(({ metadata }) => metadata.name === claim?.spec.volumeName);
      return claim && volume ? [{ claim, volume }] : [];
    });
    const isThere = ({ volume }: { volume: Body }): boolean =>
      volume.spec.csi?.driver !== driverName ||
      attachments.some(
        ({ spec, status }) =>
          spec.source.persistentVolumeName === volume.metadata.name &&
          spec.nodeName === pod.spec.nodeName &&
          status?.attached === true,
      );
    if (pod.status.phase === "Pending") {
      if (own.length === claimsOf(pod).length && own.every(isThere)) {
        await unlessOutdated(letStart(pod, kubelet));
      }
      continue;
    }
    for (const { claim, volume } of own) await unlessOutdated(grow(claim, volume, kubelet));
  }
}

const itemsAt = async (api: Api, path: string): Promise<Body[]> =>
  (await api.get(path)).items as Body[];

const claimsOf = ({ spec }: Body): string[] =>
  ((spec.volumes ?? []) as Body[]).flatMap(
    ({ persistentVolumeClaim: claim }) => (claim?.claimName as string | undefined) ?? [],
  );

/** What has changed or gone in between is seen by the next look. */
async function unlessOutdated(action: Promise<unknown>): Promise<void> {
  await action.catch((error: unknown) => {
    if (!(error instanceof ApiError && [404, 409].includes(error.status))) throw error;
  });
}

/**
 * A driver that a kubelet has found on its machine, as it says in the API; or that it is gone.
 *
 * The kubelet asks it once for its zone, and refuses one that is not what the Node has already
 * (`detected topology value collision`, pkg/volume/csi/nodeinfomanager).
 */
async function register(
  {
    node,
    vm,
    csiNode,
    pods,
  }: { node: Body; vm: VirtualMachine; csiNode?: Body; pods: readonly Body[] },
  kubelet: Api,
): Promise<void> {
  const { name, uid } = node.metadata;
  const path = `${csiNodes}/${name}`;
  const driverPod = pods.find((pod) => isDriverOn(name, pod));
  const knowsZone = vm.zone !== undefined && driverPod && readsItsSecret(driverPod, pods);
  const zone = knowsZone ? cloudLabels(vm)[zoneLabel] : undefined;
  const topology: Record<string, string> = {
    [`topology.${driverName}/zone`]: zone ?? "",
    ...(zone && { [zoneLabel]: zone }),
  };
  const driver = {
    name: driverName,
    nodeID: name,
    topologyKeys: Object.keys(topology).sort(),
    allocatable: { count: mostDataDisks(findSize(vm.size)!) },
  };
  const collides = Object.entries(topology).some(
    ([key, value]) => (node.metadata.labels?.[key] ?? value) !== value,
  );
  const drivers = driverPod && !collides ? [driver] : [];
  if (csiNode !== undefined && !isOfNode(csiNode, node)) {
    await kubelet.delete(path);
  } else if (csiNode === undefined) {
    await kubelet.post(csiNodes, {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] },
      spec: { drivers: [] },
    });
  } else if (csiNode.spec.drivers?.length !== drivers.length) {
    const nodeIds = drivers.length > 0 ? JSON.stringify({ [driverName]: name }) : null;
    await kubelet.patch(nodePath(name), {
      metadata: {
        annotations: { "csi.volume.kubernetes.io/nodeid": nodeIds },
        ...(drivers.length > 0 && { labels: topology }),
      },
    });
    await kubelet.patch(path, { spec: { drivers } });
  }
}

const isDriverOn = (node: string, pod: Body): boolean =>
  pod.spec.nodeName === node &&
  pod.status.phase === "Running" &&
  pod.metadata.deletionTimestamp === undefined &&
  isOfDaemonSet(pod) &&
  (pod.spec.containers as Body[]).some(isDriver);

const isDriver = (container: Body): boolean => imageName(container) === "azuredisk-csi";

/**
 * Whether a driver learns of Azure: it asks the API for azure.json once, when it starts, and goes on
 * without (azuredisk-csi-driver #3400). It then has no zone but one that the Node's labels might
 * have by that time, which is not counted on.
 */
function readsItsSecret({ spec, status }: Body, pods: readonly Body[]): boolean {
  const env = (spec.containers as Body[]).find(isDriver)!.env as Body[] | undefined;
  if (env?.some(({ name }) => name === "KUBERNETES_SERVICE_HOST")) return true;
  return pods.some(
    (pod) =>
      pod.spec.nodeName === spec.nodeName &&
      (pod.spec.containers as Body[]).some((container) => imageName(container) === "kube-proxy") &&
      Date.parse(pod.status.startTime) < Date.parse(status.startTime),
  );
}

async function letStart(pod: Body, kubelet: Api): Promise<void> {
  const conditions = (pod.status.conditions ?? []) as Body[];
  if (conditions.some(({ type, status }) => type === readyToStart && status === "True")) return;
  const lastTransitionTime = new Date().toISOString();
  await kubelet.patch(
    `${podPath(pod)}/status`,
    { status: { conditions: [{ type: readyToStart, status: "True", lastTransitionTime }] } },
    strategicPatch,
  );
}

/** Says that the file system has the size of its disk, when the resizer waits for that. */
async function grow({ metadata, status }: Body, volume: Body, kubelet: Api): Promise<void> {
  if (status.allocatedResourceStatuses?.storage !== "NodeResizePending") return;
  const { namespace, name } = metadata;
  const { storage } = volume.spec.capacity;
  await kubelet.patch(`/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}/status`, {
    status: { capacity: { storage }, allocatedResourceStatuses: null, conditions: null },
  });
}
