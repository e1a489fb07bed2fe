import type { VirtualMachine } from "../../machines";
import { type Api, ApiError, type Body, mergePatch, strategicPatch } from "../api";
import { cniAnnotation, fakeNode } from "./kwok";
import {
  isOf,
  isReady,
  nodePath,
  type NodeTaint,
  readyCondition,
  shutDown,
  uninitialized,
  unreachable,
} from "./node";

interface CloudProviderOptions {
  readonly api: Api;
  /** The machine of this name, if Azure has one now. */
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  /** Whether to do the work of the cloud provider's pods: not where Azure's own programs run. */
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

export const sizeLabel = "node.kubernetes.io/instance-type";

/** Labels that Azure's node manager gives a Node (v1.36.5: no beta ones). */
export function cloudLabels({ location, zone, size }: VirtualMachine): Record<string, string> {
  const region = location.toLowerCase().replaceAll(" ", "");
  // Outside of zones the provider names the fault domain.
  const domain = zone === undefined ? "0" : `${region}-${zone}`;
  return {
    [sizeLabel]: size,
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

/** The API as a pod sees it, whose token says on which node that is. */
export const asPod = (api: Api, pod: Body): Api =>
  api.as(serviceAccount(pod), { "authentication.kubernetes.io/node-name": pod.spec.nodeName });

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
const nodeManagerOn = (node: string, pods: readonly Body[]): Body | undefined =>
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

  const manager = pods.find((pod) => runsImage(pod, "cloud-controller-manager"));
  const provider: CloudProviderPods = {
    nodeManager: (node) => {
      const pod = managesNodes ? nodeManagerOn(node, pods) : undefined;
      return pod && asPod(api, pod);
    },
    ...(managesNodes &&
      manager && {
        controllerManager: {
          api: asPod(api, manager),
          graceMs: () => graceMs(manager, api),
        },
      }),
  };
  let due = false;
  for (const node of ours) {
    const name: string = node.metadata.name;
    const vm = vmOf(name);
    try {
      if (vm === undefined || !isOf(node, vm)) {
        due = true;
        if (readyCondition(node)?.status !== "Unknown") await showGone(node, api);
        else if (vm === undefined) await reconcileNode(node, vm, provider);
        continue;
      }
      if (!node.metadata.annotations?.[cniAnnotation]) {
        const cni = pods.find((pod) => pod.spec.nodeName === name && bringsCni(pod));
        const kubelet = kubeletOf(name);
        due ||= cni === undefined;
        if (cni && kubelet) {
          await kubelet.patch(nodePath(name), {
            metadata: { annotations: { [cniAnnotation]: cni.metadata.ownerReferences[0].name } },
          });
        }
      }
      due = (await reconcileNode(node, vm, provider)) || due;
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

/** Acts for the pods of Azure's cloud provider, each only where it runs. */
interface CloudProviderPods {
  /** The API as the node manager on this Node sees it. */
  readonly nodeManager: (node: string) => NodeApi | undefined;
  readonly controllerManager?: {
    readonly api: NodeApi;
    /** How old a Node must be to be deleted, in milliseconds. */
    readonly graceMs: () => Promise<number>;
  };
}

type NodeApi = Pick<Api, "get" | "put" | "patch" | "delete">;

/**
 * Does once what Azure's cloud provider does to a Node: its node manager initializes a new one, its
 * controller manager taints that of a machine that is off while its kubelet is silent, and deletes
 * that of a machine that is gone. Returns whether anything is still due.
 */
export async function reconcileNode(
  node: Body,
  vm: VirtualMachine | undefined,
  { nodeManager, controllerManager }: CloudProviderPods,
): Promise<boolean> {
  const path = nodePath(node.metadata.name);
  if (vm === undefined) {
    const age = Date.now() - Date.parse(node.metadata.creationTimestamp);
    if (isReady(node) || !controllerManager || age < (await controllerManager.graceMs())) {
      return true;
    }
    await controllerManager.api.delete(path);
    return true;
  }
  const { taints = [] } = node.spec as { taints?: NodeTaint[] };
  const others = taints.filter(({ key }) => key !== shutDown.key);
  const isTainted = others.length < taints.length;
  const isTaintDue = controllerManager !== undefined && isTainted !== vm.isOff;
  // It is tainted once its kubelet is silent, and no longer once it is heard again.
  if (isTaintDue && isTainted === isReady(node)) {
    const spec = { taints: isTainted ? others : [...taints, shutDown] };
    await controllerManager.api.patch(path, { spec }, mergePatch);
  }
  if (!taints.some(({ key }) => key === uninitialized.key)) return isTaintDue;
  const api = nodeManager(node.metadata.name);
  if (api !== undefined) {
    const status = { addresses: node.status.addresses };
    await api.patch(`${path}/status`, { status }, strategicPatch);
    await api.put(path, initialized(await api.get(path), vm));
  }
  return true;
}

/** A kubelet that is gone, as the node controller shows it after a while. */
async function showGone(node: Body, api: Api): Promise<void> {
  const path = nodePath(node.metadata.name);
  const [fake = ""] = Object.keys(fakeNode);
  await api.patch(path, { metadata: { annotations: { [fake]: null } } }, mergePatch);
  await api.patch(`${path}/status`, unreachable(new Date().toISOString()), strategicPatch);
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

const intervalMs = 500;

/** Does something again and again until nothing is due, and from the start when it is woken. */
export class Poller {
  private timer: NodeJS.Timeout | undefined;
  private generation = 0;
  private readonly logged = new Set<string>();

  /** @param poll returns whether anything is still due */
  constructor(
    private readonly poll: (log: (message: string) => void) => Promise<boolean>,
    private readonly log: (message: string) => void,
  ) {}

  wake(): void {
    this.stop();
    this.next(this.generation);
  }

  stop(): void {
    this.generation += 1;
    clearTimeout(this.timer);
  }

  private next(generation: number): void {
    this.timer = setTimeout(async () => {
      let due = true;
      try {
        due = await this.poll((message) => this.logOnce(message));
      } catch (error) {
        this.logOnce((error as Error).message);
      }
      if (due && generation === this.generation) {
        this.next(generation);
      }
    }, intervalMs);
    this.timer.unref();
  }

  /** An error of one poll mostly comes again in the next. */
  private logOnce(message: string): void {
    if (!this.logged.has(message)) {
      this.logged.add(message);
      this.log(message);
    }
  }
}
