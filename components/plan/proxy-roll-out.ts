import { digest } from "../digest";
import { kubeProxyConfiguration } from "../kubeadm/kube-proxy";
import { withApi } from "../cluster/kubernetes-api";
import { nodeProblems } from "../cluster/cluster-health";
import { groupWord } from "../azure/resource-names";
import { MachineChange, PreviousOutputs } from "./machine-changes";
import { isHealthCheckSkipped } from "../settings/times";
import { Settings } from "../settings/settings";

type ProxySettings = Parameters<typeof kubeProxyConfiguration>[0] &
  Pick<Settings, "kubernetesVersion">;

/** What every machine's kube-proxy runs with: a change rolls it out. */
export const proxyDigest = (settings: ProxySettings): string =>
  digest([settings.kubernetesVersion, kubeProxyConfiguration(settings)]);

interface ProxyRollOutArgs {
  readonly settings: ProxySettings &
    Pick<Settings, "clusterName" | "resourceGroup" | "skipHealthCheckUntil">;
  /** Of this cluster. */
  readonly previous: PreviousOutputs | undefined;
  readonly changes: readonly MachineChange[];
  /** Names of the machines that exist and are not replaced. */
  readonly retained: ReadonlySet<string>;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/**
 * Why kube-proxy must not be changed now, one sentence for each machine whose kubelet is silent: its
 * pod cannot be replaced, and is the one that may be unavailable, so that no other machine's would
 * be, and machines would go on with two configurations. An API that does not answer says nothing of them.
 */
export async function proxyRollOutProblems(args: ProxyRollOutArgs): Promise<string[]> {
  const { settings, previous, changes, retained, kubeconfig, now } = args;
  const isSkipped = isHealthCheckSkipped(settings, now);
  const before = previous?.kubeProxy;
  const isChanged = before !== undefined && before !== proxyDigest(settings);
  if (!isChanged || isSkipped || kubeconfig === undefined) return [];
  const replaced = changes
    .filter(({ action }) => action === "replace")
    .map(({ machine }) => machine);
  return withApi(kubeconfig, async (api) => {
    const [nodes, leases] = await Promise.all([
      api.list("/api/v1/nodes"),
      api.list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
    ]);
    return Object.keys(previous?.machines ?? {})
      .filter((name) => retained.has(name) && !replaced.includes(name))
      .flatMap((name) => {
        const reasons = nodeProblems(name, { nodes, leases }, api.now);
        return reasons.length === 0 ? [] : [sentence(name, reasons, groupWord(settings))];
      });
  }).catch(() => []);
}

const sentence = (name: string, reasons: readonly string[], group: string): string =>
  `${name}: ${reasons.join("; ")}, and this change replaces kube-proxy machine by machine, which would wait for this one: ` +
  `start it (az vm start --resource-group ${group} --name ${name}), or have it made anew or removed by a pulumi up before this change`;
