import type { VirtualMachine } from "../../machines";
import {
  type Api,
  ApiError,
  applyPatch,
  type Body,
  mergePatch,
  strategicPatch,
  unlessStatus,
} from "../api";
import {
  cniAnnotation,
  fakeNode,
  heardAnnotation,
  nodeWasMissed,
  shownAnnotation,
  wasLost,
  wasMissed,
} from "./kwok";
import { isUnhealthy, type Member } from "../cluster/members";
import {
  isMirror,
  isOfManifest,
  isOfNode,
  isPodReady,
  mirrorPodOf,
  readiness,
  lostHeartbeat,
} from "./mirror-pods";
import { isOf, isReady, nodePath, readyCondition, unreachable } from "./node";
import { type Component, components } from "../control-plane/static-pods";

interface Kubelets {
  /** The API, as the group that no RBAC binds. */
  readonly api: Api;
  readonly members: readonly Member[];
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  /** The API as the kubelet of this machine sees it, if it has joined. */
  readonly kubeletOf: (name: string) => Api | undefined;
  /** A component's manifest as it lies on this machine's disk. */
  readonly manifestOf: (component: Component, vm: VirtualMachine) => string;
  /** When KWOK was started the last time, in milliseconds. */
  readonly kwokSince: () => number;
  readonly restartKwok: () => Promise<void>;
}

const [fake = ""] = Object.keys(fakeNode);
const namespace = "kube-system";
const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
export const podPath = ({ metadata }: Body): string =>
  `${podsOf(metadata.namespace)}/${metadata.name}`;
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const leasePath = (name: string): string => `${leasesPath}/${name}`;

/** As long as a lease can be: KWOK leaves a Node alone whose lease another holder has. */
const forEver = 2 ** 31 - 1;

const leaseForEver = (name: string, since: string) => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name },
  spec: {
    holderIdentity: name,
    leaseDurationSeconds: forEver,
    renewTime: since.replace("Z", "000Z"),
  },
});

/** What the API has shown of the machines, and whether anything is still due. */
interface Look {
  readonly due: boolean;
  readonly nodes: readonly Body[];
  readonly pods: readonly Body[];
}

/**
 * What kubelets do besides what KWOK does for them.
 *
 * Those of control planes show their static pods, each by its own credential, and say which of them
 * are not ready; an unhealthy one renews no lease. One that is heard again says of its pods that they are
 * ready, where the node controller has said otherwise meanwhile. Pods and Nodes that KWOK has missed
 * are shown to it once more.
 */
export async function reconcileKubelets(kubelets: Kubelets): Promise<Look> {
  const { api, members, vmOf } = kubelets;
  const [nodes = [], pods = [], leases = []] = await Promise.all(
    ["/api/v1/nodes", "/api/v1/pods", leasesPath].map((path) =>
      api.get(path).then(({ items }) => items as Body[]),
    ),
  );
  const held = new Set(leases.map(({ metadata }) => metadata.name));
  let due = false;
  for (const node of nodes) {
    const { name } = node.metadata;
    const vm = vmOf(name);
    if (vm === undefined || !isOf(node, vm)) continue;
    const member = members.find(({ machine, lives }) => lives && machine === name);
    if (vm.isOff || (member && isUnhealthy(member, "kubelet"))) {
      due = (await stopHeartbeat(node, api)) || due;
      continue;
    }
    due = (await resumeHeartbeat(node, held.has(name), kubelets)) || due;
    const own = pods.filter(({ spec }) => spec.nodeName === name);
    for (const component of member ? components : []) {
      due = (await showStaticPod(kubelets, { component, own, node, member: member!, vm })) || due;
    }
    for (const pod of own.filter((one) => isReady(node) && !isMirror(one) && lostHeartbeat(one))) {
      await report(kubelets, name, pod, true);
      due = true;
    }
    for (const pod of own.filter((one) => wasMissed(one, new Date()))) {
      await showAgain(podPath(pod), api);
      due = true;
    }
  }
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  for (const pod of pods.filter((one) => isMirror(one) && !names.has(one.spec.nodeName))) {
    await api.delete(`${podPath(pod)}?gracePeriodSeconds=0`).catch(unlessStatus(404));
  }
  return { due, nodes, pods };
}

interface MirrorPodOfMachine {
  readonly component: Component;
  /** All pods of the machine. */
  readonly own: readonly Body[];
  readonly node: Body;
  readonly member: Member;
  readonly vm: VirtualMachine;
}

async function showStaticPod(
  kubelets: Kubelets,
  { component, own, node, member, vm }: MirrorPodOfMachine,
): Promise<boolean> {
  const kubelet = kubelets.kubeletOf(vm.name);
  if (kubelet === undefined) return true;
  const pod = own.find(({ metadata }) => metadata.name === `${component}-${vm.name}`);
  const ready = !isUnhealthy(member, component);
  const manifest = kubelets.manifestOf(component, vm);
  try {
    if (pod === undefined) {
      await kubelet.post(podsOf(namespace), mirrorPodOf(manifest, node));
    } else if (!isOfNode(pod, node) || !isOfManifest(pod, manifest, node)) {
      await kubelet.delete(`${podPath(pod)}?gracePeriodSeconds=0`);
    } else if (pod.status.phase === "Running" && isPodReady(pod) !== ready) {
      await report(kubelets, vm.name, pod, ready);
    } else {
      return pod.status.phase !== "Running";
    }
  } catch (error) {
    // A pod made or gone in between: the next poll sees it.
    if (!(error instanceof ApiError && [404, 409].includes(error.status))) throw error;
  }
  return true;
}

const report = async (
  { kubeletOf }: Kubelets,
  name: string,
  pod: Body,
  ready: boolean,
): Promise<void> => {
  await kubeletOf(name)
    ?.patch(`${podPath(pod)}/status`, readiness(pod, ready), strategicPatch)
    .catch(unlessStatus(404));
};

const showAgain = async (path: string, api: Api): Promise<void> => {
  const metadata = { annotations: { [shownAnnotation]: new Date().toISOString() } };
  await api.patch(path, { metadata }, mergePatch).catch(unlessStatus(404));
};

/** Of a Node that is silent, or becomes so. */
const noHeartbeat = "zoned.local/silent";

/**
 * Lets a Node go silent: its lease is renewed no more, and it turns NotReady. KWOK must have let go
 * of it before. It gets it back at once, and touches nothing without the lease: a KWOK that is started
 * later takes only Nodes that are given to it.
 */
async function stopHeartbeat(node: Body, api: Api): Promise<boolean> {
  const { name, annotations = {} } = node.metadata;
  const isSilent = noHeartbeat in annotations && readyCondition(node)?.status === "Unknown";
  if (isSilent && fake in annotations) return false;
  const mark = (marks: object) =>
    api.patch(nodePath(name), { metadata: { annotations: marks } }, mergePatch);
  const now = new Date().toISOString();
  await mark({ [fake]: null, [noHeartbeat]: "" });
  // Also where KWOK has made none yet: it would, and renew it.
  const lease = `${leasePath(name)}?fieldManager=zoned&force=true`;
  await api.patch(lease, leaseForEver(name, now), applyPatch);
  await api.patch(`${nodePath(name)}/status`, unreachable(now), strategicPatch);
  await mark(fakeNode);
  return true;
}

/**
 * Gives a silent Node back to KWOK, and waits for it to be Ready where it can be, and for its lease. A
 * KWOK that makes it no lease has lost it for good, and is started anew.
 */
async function resumeHeartbeat(
  node: Body,
  isHeld: boolean,
  { api, kwokSince, restartKwok }: Kubelets,
): Promise<boolean> {
  const { name, annotations = {} } = node.metadata;
  const now = new Date();
  if (!(fake in annotations) || noHeartbeat in annotations) {
    await api.delete(leasePath(name)).catch(unlessStatus(404));
    const marks = { ...fakeNode, [noHeartbeat]: null, [heardAnnotation]: now.toISOString() };
    await api.patch(nodePath(name), { metadata: { annotations: marks } }, mergePatch);
    return true;
  }
  const isDue = cniAnnotation in annotations && !isReady(node);
  if (isDue && nodeWasMissed(node, now)) await showAgain(nodePath(name), api);
  if (!isHeld && wasLost(node, kwokSince(), now)) await restartKwok();
  return isDue || !isHeld;
}
