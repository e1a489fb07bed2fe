import { addressOfInterface } from "../azure/free-addresses";
import type { AzureAnswer } from "../azure/state";
import { stackName } from "../azure/stack-tag";
import { isMember } from "../cluster/cluster-health";
import { getEtcdMembers } from "../cluster/etcd-member";
import { isReady, withApi } from "../cluster/kubernetes-api";
import { controlPlaneMark, isControlPlaneName } from "../settings/topology";
import type { Settings } from "../settings/settings";
import { askBackend } from "./backend";
import type { MachineChange } from "./machine-changes";

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
      const address = addressOfInterface(azure.shown, name);
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
