import { placeOfInterface } from "../azure/free-addresses";
import { type AzureAnswer, type AzureState, isOff, type MachineState } from "../azure/state";
import { stackName } from "../azure/stack-tag";
import { isMember, named } from "../cluster/cluster-health";
import { getEtcdMembers } from "../cluster/etcd-member";
import { isReady, KubernetesApi, KubernetesObject, withApi } from "../cluster/kubernetes-api";
import { controlPlaneMark, isControlPlaneName, type MachinePlan } from "../settings/topology";
import type { Settings } from "../settings/settings";
import { askBackend } from "./engine";
import type { MachineChange } from "./machine-changes";
import { drainMark } from "../cluster/drain";
import { isHealthCheckSkipped } from "../settings/times";

interface JoinArgs {
  readonly settings: Pick<Settings, "clusterName">;
  readonly changes: readonly MachineChange[];
  readonly azure: Pick<AzureAnswer, "machines" | "shown">;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
}

/**
 * Why control planes must not be deleted: a Membership takes its machine out of etcd, and exists only once the update
 * in which the machine joined has seen that end. Without it, Pulumi deletes the VM of a voter.
 *
 * One that etcd does not list may go: its join has failed, or it has left and Azure did not delete its VM.
 */
export async function unfinishedJoinProblems(args: JoinArgs): Promise<string[]> {
  const { settings, changes, azure, kubeconfig } = args;
  const going = changes
    .filter(({ action }) => action === "remove" || action === "replace")
    .map(({ machine }) => machine)
    .filter((name) => isControlPlaneName(settings, name) && azure.machines.get(name)?.bootstrap);
  if (going.length === 0 || kubeconfig === undefined) return [];
  const members = await getMemberships();
  const unknown = going.filter((name) => !members.has(keyOf(name, azure.machines.get(name)!.vmId)));
  if (unknown.length === 0) return [];
  const isJoining = (name: string): boolean =>
    !["Succeeded", "Failed"].includes(azure.machines.get(name)!.bootstrap!.state);
  return withApi(kubeconfig, async (api) => {
    const nodes = await api.list(`/api/v1/nodes?labelSelector=${controlPlaneMark}`);
    const isSettled = (name: string) => azure.machines.has(name) && !unknown.includes(name);
    const by = nodes.find((node) => isReady(node) && isSettled(node.metadata.name));
    if (by === undefined) throw new Error("no other control plane is Ready");
    const etcd = await getEtcdMembers(api, by.metadata.name);
    const joined = unknown.filter((name) => {
      const address = placeOfInterface(azure.shown, name)?.privateIPAddress;
      return isJoining(name) || etcd.members.some((member) => isMember({ name, address }, member));
    });
    return joined.length === 0
      ? []
      : [refusal(args, joined, "has joined, or may still be joining")];
  }).catch(({ message }: Error) => [refusal(args, unknown, `may have joined (${message})`)]);
}

const keyOf = (machine: string, vmId = ""): string => `${machine} ${vmId.toLowerCase()}`;

interface ResourceOutputs {
  readonly type: string;
  readonly outputs?: { readonly machine: string; readonly vmId: string };
}

/** Of all machines that Pulumi takes out of the cluster before it deletes their VMs. */
async function getMemberships(): Promise<Set<string>> {
  const stack = { stackName: stackName() };
  const resources =
    (await askBackend<Record<string, ResourceOutputs>>("readStackResourceOutputs", stack)) ?? {};
  return new Set(
    Object.values(resources)
      .filter(({ type }) => type === "pulumi-nodejs:dynamic/zoned:Membership")
      .map(({ outputs }) => keyOf(outputs!.machine, outputs!.vmId)),
  );
}

function refusal({ settings, changes }: JoinArgs, names: readonly string[], does: string): string {
  const numbers = names
    .filter((name) => changes.some((one) => one.machine === name && one.action === "remove"))
    .map((name) => Number(name.slice(`${settings.clusterName}-cp-`.length)));
  // The counts are odd, so that it is the highest number or the one after it.
  const count = Math.max(...numbers) | 1;
  const way = numbers.length > 0 ? ` (pulumi config set controlPlaneCount ${count})` : "";
  return (
    `this change would delete the VM of ${names.join(", ")}, which ${does} in an update that has not ended, so that Pulumi's state does not ` +
    "have it as a member: it would not be taken out of etcd, which may lose its majority. Nothing was changed. " +
    `Take the change back${way}, run pulumi up until it ends well, then make the change`
  );
}

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
 * replace or remove them, and drained, where Azure was to give them another size or their kubelets were to be
 * upgraded. When the change is taken back, Azure and Pulumi's state show no difference. A worker may also have joined after the snapshot that its cluster
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
        ...(isDrained(named(nodes, name)) && { isDrained: true }),
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
