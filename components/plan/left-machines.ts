import { isReady, KubernetesApi, KubernetesObject, withApi } from "../cluster/kubernetes-api";
import { drainMark } from "../cluster/drain";
import { getEtcdMembers } from "../cluster/etcd-member";
import { type AzureState, isOff, type MachineState } from "../azure/state";
import { isMember, named } from "../cluster/cluster-health";
import { isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

export interface LeftArgs {
  readonly settings: Pick<Settings, "skipHealthCheckUntil">;
  /** Those of the settings. */
  readonly machines: readonly MachinePlan[];
  readonly azure: AzureState;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * What Azure has, where machines are marked that an update has left half-way: out of the cluster, where it was to
 * replace or remove them, and drained and off, where Azure was to give them another size. When the change is taken
 * back, Azure and Pulumi's state show no difference. A worker may also have joined after the snapshot that its cluster
 * was restored from.
 *
 * An API that does not answer says nothing of any.
 */
export async function markLeft<T extends AzureState>(
  args: LeftArgs & { readonly azure: T },
): Promise<T> {
  const { settings, machines, azure, kubeconfig, now } = args;
  // Not by the outputs, which know already of fewer when one that is to be removed cannot go.
  const before = machines.filter(
    ({ name }) => azure.machines.get(name)?.bootstrap?.state === "Succeeded",
  );
  if (kubeconfig === undefined || isHealthCheckSkipped(settings, now) || before.length === 0) {
    return azure;
  }
  return withApi(kubeconfig, async (api) => {
    const nodes = await api.list("/api/v1/nodes");
    const removed = await getRemovedFromEtcd(api, nodes, before);
    const nodeless = getWithoutNode(nodes, before, azure).filter((name) => !removed.includes(name));
    const marked = [...azure.machines].map(([name, machine]): [string, MachineState] => [
      name,
      {
        ...machine,
        ...(removed.includes(name) && { removedFromEtcd: true }),
        ...(nodeless.includes(name) && { lacksNode: true }),
        ...(isOff(machine) && isEmptied(named(nodes, name)) && { stoppedForResize: true }),
      },
    ]);
    return { ...azure, machines: new Map(marked) };
  }).catch(() => azure);
}

/** Control planes that etcd does not list. It is asked only where the API shows that one may have left. */
async function getRemovedFromEtcd(
  api: KubernetesApi,
  nodes: readonly KubernetesObject[],
  machines: readonly MachinePlan[],
): Promise<string[]> {
  const controlPlanes = machines.filter(({ role }) => role === "control-plane");
  const [by, ...others] = controlPlanes.filter(({ name }) => isUndisturbed(named(nodes, name)));
  if (by === undefined || others.length === controlPlanes.length - 1) return [];
  const { members } = await getEtcdMembers(api, by.name);
  return controlPlanes
    .filter((one) => !members.some((member) => isMember(one, member)))
    .map(({ name }) => name);
}

/**
 * Machines that run and have no Node. A kubelet makes it when it starts and not later, and would make it without what
 * a join and an update gave it: a control plane's role, its pool's taints and labels, and with flannel the range of
 * its pods. A control plane is made anew only where all others are Ready: it leaves etcd by one of them, and an update
 * that replaces one beside another that is not well is refused.
 */
const getWithoutNode = (
  nodes: readonly KubernetesObject[],
  machines: readonly MachinePlan[],
  azure: AzureState,
): string[] =>
  machines
    .filter(({ name }) => named(nodes, name) === undefined)
    .filter(({ name, role }) => {
      const peers = machines.filter((one) => one.role === role && one.name !== name);
      return (
        role === "worker" ||
        (peers.length > 0 && peers.every((peer) => isUndisturbed(named(nodes, peer.name))))
      );
    })
    .map(({ name }) => name)
    .filter((name) => !isOff(azure.machines.get(name)!));

const isDrained = (node: KubernetesObject | undefined): boolean =>
  node?.metadata.annotations?.[drainMark] !== undefined;

/** Where somebody has uncordoned it since, the mark stays. */
const isEmptied = (node: KubernetesObject | undefined): boolean =>
  isDrained(node) && node?.spec?.unschedulable === true;

const isUndisturbed = (node: KubernetesObject | undefined): boolean =>
  node !== undefined && isReady(node) && !isDrained(node);
