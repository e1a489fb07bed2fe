import { isReady, KubernetesApi, KubernetesObject } from "../cluster/kubernetes-api";
import { drainMark } from "../cluster/drain";
import { getEtcdMembers } from "../cluster/etcd-member";
import type { AzureState, MachineState } from "../azure/state";
import { isMember, named } from "../cluster/cluster-health";
import { isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";

export interface LeftArgs {
  readonly settings: Pick<Settings, "skipHealthCheckUntil">;
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: AzureState;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * What Azure has, where control planes are marked whose step once ended well, and that etcd does not
 * list any more. An update that was to replace or remove one, and that ended between its member and its
 * VM, has left it so: when the change is taken back, Azure and Pulumi's state show no difference.
 *
 * etcd is asked only where the API shows that one may have left, and an API that does not answer says
 * nothing of any.
 */
export async function markRemovedFromEtcd<T extends AzureState>(
  args: LeftArgs & { readonly azure: T },
): Promise<T> {
  const { azure } = args;
  const left = await getRemovedFromEtcd(args);
  const marked = [...azure.machines].map(([name, machine]): [string, MachineState] => [
    name,
    left.includes(name) ? { ...machine, removedFromEtcd: true } : machine,
  ]);
  return { ...azure, machines: new Map(marked) };
}

async function getRemovedFromEtcd(args: LeftArgs): Promise<string[]> {
  const { settings, controlPlanes, azure, kubeconfig, now } = args;
  const isSkipped = isHealthCheckSkipped(settings, now);
  // Not by the outputs, which know already of fewer when one that is to be removed cannot go.
  const before = controlPlanes.filter(
    ({ name }) => azure.machines.get(name)?.bootstrap?.state === "Succeeded",
  );
  if (kubeconfig === undefined || isSkipped || before.length < 2) return [];
  const api = new KubernetesApi(kubeconfig);
  try {
    const nodes = await api.list("/api/v1/nodes");
    const [by, ...others] = before.filter(({ name }) => isUndisturbed(named(nodes, name)));
    if (by === undefined || others.length === before.length - 1) return [];
    const { members } = await getEtcdMembers(api, by.name);
    return before
      .filter((one) => !members.some((member) => isMember(one, member)))
      .map(({ name }) => name);
  } catch {
    return [];
  } finally {
    await api.close();
  }
}

const isUndisturbed = (node: KubernetesObject | undefined): boolean =>
  node !== undefined && isReady(node) && node.metadata.annotations?.[drainMark] === undefined;
