import { setTimeout as wait } from "node:timers/promises";

import { drainMark, excluded } from "../../../../../components/cluster/drain";
import type { Payload } from "../../../../../components/machine/payload";
import { etcdOf } from "../../../../../components/versions";
import { type Api, ApiError, type Body, mergePatch } from "../api";
import type { SimulatedCluster } from "../cluster/simulated-cluster";
import { isMirror } from "../nodes/mirror-pods";
import { nodePath } from "../nodes/node";
import { caFile, fileOf, filesOf, hasTask, initFile } from "./payload";
import { minorOf } from "./snapshots";
import { isOwnTurn, turnsName } from "../../../../../components/cluster/turns";

const clusterAnnotation = "zoned/configuration";
const kubeadmConfig = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
const clusterInfo = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const rootAuthority = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
const pollMs = 500;

/** Whether the kubelet of a node is of another version than the payload wants. */
export const hasOtherVersion = ({ status }: Body, { kubernetesVersion }: Payload): boolean =>
  status?.nodeInfo?.kubeletVersion !== `v${kubernetesVersion}`;

/** Fails where kubeadm would leave etcd as it is, since that is newer than its own. */
export function checkEtcd(etcd: string, { kubernetesVersion }: Payload): void {
  const wanted = etcdOf(kubernetesVersion);
  if (minorOf(etcd) <= minorOf(wanted)) return;
  throw new Error(
    `etcd of this machine is ${etcd}, newer than the ${wanted} of Kubernetes ${kubernetesVersion}, and kubeadm leaves such a one ` +
      "as it is: no flag, certificate or CA would reach it. So the machine was not touched. Go on with the upgrade that brought it " +
      "(pulumi config set kubernetesVersion); then run `pulumi up` again",
  );
}

/** Cordons a node and evicts its pods, with the kubelet's own certificate, as the script does. */
export async function drain(kubelet: Api, { machine, drainMinutes }: Payload): Promise<void> {
  const path = nodePath(machine);
  const node = await kubelet.get(path);
  if (node.spec.unschedulable !== true) {
    const metadata = { annotations: { [drainMark]: "unschedulable" } };
    await kubelet.patch(path, { metadata, spec: { unschedulable: true } }, mergePatch);
  }
  let held: string[] = [];
  for (const until = Date.now() + drainMinutes * 60_000; Date.now() < until; await wait(pollMs)) {
    const pods = await drainablePods(kubelet, machine);
    if (pods.length === 0) return;
    held = await Promise.all(pods.map((pod) => evict(kubelet, pod)));
  }
  await undoDrain(kubelet, machine);
  throw new Error(
    `after ${drainMinutes} minutes pods are still on this machine, which was not touched and takes pods again: ` +
      `${held.join(";")}. Let them go, or give them longer (zoned:drainMinutes), and run \`pulumi up\` again`,
  );
}

async function drainablePods(kubelet: Api, machine: string): Promise<readonly Body[]> {
  const { items } = await kubelet.get(`/api/v1/pods?fieldSelector=spec.nodeName%3D${machine}`);
  return (items as readonly Body[]).filter(
    (pod) =>
      !["Succeeded", "Failed"].includes(pod.status?.phase) &&
      !isMirror(pod) &&
      !pod.metadata.ownerReferences?.some(({ kind }: Body) => kind === "DaemonSet"),
  );
}

async function evict(kubelet: Api, { metadata }: Body): Promise<string> {
  const { namespace, name, deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined) return `${namespace}/${name} has not ended yet`;
  try {
    await kubelet.post(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace, name },
    });
    return `${namespace}/${name} is being evicted`;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return `${namespace}/${name} is gone`;
    if (error instanceof ApiError && error.status === 429) {
      return `${namespace}/${name}: ${error.message}`;
    }
    throw error;
  }
}

export const isDrained = async (kubelet: Api, machine: string): Promise<boolean> =>
  (await kubelet.get(nodePath(machine))).metadata.annotations?.[drainMark] !== undefined;

/** Lets pods come to a node again, with the kubelet's own certificate. */
export async function undoDrain(kubelet: Api, machine: string): Promise<void> {
  const { metadata } = await kubelet.get(nodePath(machine));
  const own: string[] = metadata.annotations?.[drainMark]?.split(" ") ?? [];
  const labels = own.includes("excluded") ? { [excluded]: null } : {};
  const change = {
    metadata: { annotations: { [drainMark]: null }, labels },
    ...(own.includes("unschedulable") && { spec: { unschedulable: null } }),
  };
  await kubelet.patch(nodePath(machine), change, mergePatch);
}

/**
 * `kubeadm upgrade apply` on the first control plane that has another configuration than the
 * cluster. On all others `kubeadm upgrade node` has only CoreDNS to see to, since the simulated
 * control planes of a cluster share their processes.
 */
export async function upgradeControlPlane(
  cluster: SimulatedCluster,
  payload: Payload,
): Promise<void> {
  await bringSettings(cluster, payload);
  await cluster.upgradeCoreDns(filesOf(payload));
}

/** What a control plane that joins or is upgraded gives to the cluster, where it is the first that has it. */
export async function bringSettings(cluster: SimulatedCluster, payload: Payload): Promise<void> {
  const { metadata } = await cluster.superAdmin().get(kubeadmConfig);
  if (metadata.annotations?.[clusterAnnotation] === payload.clusterConfiguration) return;
  await cluster.upgrade(filesOf(payload), fileOf(payload, initFile));
  if (hasTask(payload, "cas")) {
    await publishAuthorities(cluster.superAdmin(), fileOf(payload, caFile));
  }
  await noteSettings(cluster, payload);
}

export async function noteSettings(cluster: SimulatedCluster, payload: Payload): Promise<void> {
  const annotations = { [clusterAnnotation]: payload.clusterConfiguration };
  await cluster.superAdmin().patch(kubeadmConfig, { metadata: { annotations } }, mergePatch);
}

/** kubeadm writes it when it initializes, with the first CA alone, and never again. */
export async function publishAuthorities(api: Api, trusted: string): Promise<void> {
  const info = await api.find(clusterInfo);
  if (info === undefined) return;
  const kubeconfig = (info.data.kubeconfig as string).replace(
    /(certificate-authority-data:) .*/,
    `$1 ${Buffer.from(trusted).toString("base64")}`,
  );
  await api.patch(clusterInfo, { data: { kubeconfig } }, mergePatch);
}

/** Whether pods get these CAs. */
export async function unpublished(api: Api, trusted: string): Promise<string | undefined> {
  const { data } = await api.get(rootAuthority);
  return (data["ca.crt"] as string).trim() === trusted.trim()
    ? undefined
    : "pods do not get the new CAs yet: ConfigMap kube-root-ca.crt in kube-system has others";
}

/** Has the pods of the namespaces `kube-*` made anew. */
export async function restartPods(api: Api): Promise<void> {
  const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
  for (const kind of ["daemonsets", "deployments"]) {
    const { items } = await api.get(`/apis/apps/v1/${kind}`);
    for (const { metadata } of items as readonly Body[]) {
      if (!metadata.namespace.startsWith("kube-")) continue;
      await api.patch(
        `/apis/apps/v1/namespaces/${metadata.namespace}/${kind}/${metadata.name}`,
        { spec: { template: { metadata: { annotations } } } },
        mergePatch,
      );
    }
  }
}

/** A kubelet reports in its Node's status of which version it is, and how many pods it takes. */
export const upgradeKubelet = async (
  kubelet: Api,
  { machine, kubernetesVersion, maxPods }: Payload,
): Promise<void> => {
  const version = `v${kubernetesVersion}`;
  const nodeInfo = { kubeletVersion: version, kubeProxyVersion: version };
  const pods = { pods: `${maxPods}` };
  const status = { nodeInfo, capacity: pods, allocatable: pods };
  await kubelet.patch(`${nodePath(machine)}/status`, { status }, mergePatch);
};

const turnsPath = `/api/v1/namespaces/kube-system/configmaps/${turnsName}`;

/** Nothing in a cluster of before, in which a kubelet may not read it either. */
const turnsOf = (kubelet: Api): Promise<Body | undefined> =>
  kubelet.find(turnsPath).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  });

const downFor = (value: string | undefined): string => (value ?? "").split(" ")[0]!;

/** Notes that an update takes this machine down, once no other one is down for something else. */
export async function awaitTurn(
  kubelet: Api,
  { machine, drainMinutes }: Payload,
  patience: number,
): Promise<void> {
  for (const end = Date.now() + patience; ; await wait(pollMs)) {
    const turns = await turnsOf(kubelet);
    if (turns === undefined) return;
    const other = Object.entries((turns["data"] ?? {}) as Record<string, string>).find(
      ([name, value]) =>
        !isOwnTurn(machine, name) &&
        downFor(value) !== "update" &&
        Date.parse(value.split(" ")[1] ?? "") > Date.now(),
    );
    if (other === undefined) {
      const until = new Date(Date.now() + (drainMinutes + 30) * 60_000).toISOString();
      const data = { [machine]: `update ${until.replace(/\.\d+/, "")}` };
      await kubelet.patch(turnsPath, { data });
      return;
    }
    if (Date.now() > end) {
      const [name, value] = other;
      throw new Error(
        `this machine was not touched, since only one may be down: ${name} is down for ${downFor(value)}`,
      );
    }
  }
}

/** Takes back what an update has noted of this machine. */
export async function endTurn(kubelet: Api, { machine }: Payload): Promise<void> {
  const turns = await turnsOf(kubelet);
  if (downFor(turns?.["data"]?.[machine]) === "update") {
    await kubelet.patch(turnsPath, { data: { [machine]: null } });
  }
}
