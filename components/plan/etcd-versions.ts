import type { AzureState } from "../azure/state";
import { getEtcdVersions } from "../cluster/etcd-member";
import { KubernetesApi } from "../cluster/kubernetes-api";
import { isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import type { MachinePlan } from "../settings/topology";
import { minorFor } from "../versions";
import { type MachineChange, memberState, type PreviousOutputs } from "./machine-changes";
import { isNewer } from "./upgrade";

interface EtcdVersionArgs {
  readonly settings: Pick<Settings, "kubernetesVersion" | "skipHealthCheckUntil">;
  readonly changes: readonly MachineChange[];
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  readonly previous: PreviousOutputs | undefined;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * Why etcd must not be upgraded with Kubernetes: kubeadm starts the etcd of its own minor beside
 * whatever members there are. Only those are asked that this update upgrades to another minor.
 *
 * Where the operator has the health check skipped, nobody is asked.
 */
export async function etcdVersionProblems(args: EtcdVersionArgs): Promise<string[]> {
  const { settings, changes, controlPlanes, azure, previous, kubeconfig, now } = args;
  const { kubernetesVersion } = settings;
  const { minor, etcdBefore } = minorFor(kubernetesVersion);
  const isSkipped = isHealthCheckSkipped(settings, now);
  if (etcdBefore === undefined || isSkipped || kubeconfig === undefined) return [];
  const upgraded = controlPlanes.flatMap(({ name, address }) => {
    const { kubernetesVersion: before = kubernetesVersion } = memberState(
      azure.machines.get(name),
      previous?.machines[name],
    );
    const isUpgraded =
      isNewer(`${minor}.0`, before) &&
      changes.some(({ machine, action }) => machine === name && action === "upgrade");
    return isUpgraded ? [{ name, before, url: `https://${address}:2379` }] : [];
  });
  const [first] = upgraded;
  if (first === undefined) return [];
  const wants = `kubernetesVersion is ${kubernetesVersion}, whose etcd is only compatible with members from ${etcdBefore} on`;
  const api = new KubernetesApi(kubeconfig);
  try {
    const urls = upgraded.map(({ url }) => url);
    const versions = await getEtcdVersions(api, first.name, urls);
    const old = upgraded.flatMap(({ name }, index) =>
      isNewer(etcdBefore, versions[index]!) ? [`${name} reports ${versions[index]}`] : [],
    );
    if (old.length === 0) return [];
    return [
      `${wants}, and ${old.join(", ")}. Nothing was changed; with its present version this program upgrades etcd, ` +
        `one member after another: pulumi config set kubernetesVersion ${first.before}, pulumi up, then upgrade Kubernetes`,
    ];
  } catch (error) {
    return [
      `${wants}, and nobody knows which version the members have: ${(error as Error).message}. ` +
        "Nothing was changed; see that every control plane runs and is well (npm run doctor), then run pulumi up again",
    ];
  } finally {
    await api.close();
  }
}
