import type { PreviousOutputs } from "../../components/plan/machine-changes";
import type { Expected } from "../doctor/check";
import type { Cluster } from "../doctor/doctor";
import { proxyOf } from "../local-azure/daemon/attachment";
import { UserError } from "../shared/user-error";
import { readStack, stackOf, type StackWords } from "./stack";

/**
 * The stack that is meant, and its cluster by its outputs.
 *
 * @throws UserError when the outputs cannot be read, or are not those of a cluster
 */
export async function clusterOf(
  words: StackWords,
  signal: AbortSignal,
): Promise<{ readonly stack: string; readonly cluster: Cluster }> {
  const stack = stackOf(words, signal);
  const { name, ports } = stack;
  const command = ["stack", "output", "--json", "--show-secrets"];
  const outputs = await readStack(stack, "outputs", command);
  const cluster = clusterIn(outputs, name);
  return { stack: name, cluster: ports ? { ...cluster, proxy: proxyOf(ports) } : cluster };
}

/** @throws UserError when the outputs are not those of a cluster */
export function clusterIn(outputs: string, stack: string): Cluster {
  const { kubeconfig, machines, cluster } = JSON.parse(outputs) as {
    kubeconfig?: string;
    machines?: Expected["machines"];
    cluster?: PreviousOutputs;
  };
  if (kubeconfig === undefined || machines === undefined) {
    throw new UserError(
      `stack ${stack} has no outputs kubeconfig and machines: run pulumi up until it ends well`,
    );
  }
  const {
    machines: records = {},
    apiAddress,
    etcdBackups,
    issuer,
    encryptionKeys,
    cas,
    serviceAccountKeys,
  } = cluster ?? {};
  // They are written when all machines have it.
  const kubernetesVersion = Object.values(records)[0]?.kubernetesVersion;
  return {
    ...{ kubeconfig, machines, kubernetesVersion, apiAddress, etcdBackups, issuer },
    ...{ encryptionKeys, cas, serviceAccountKeys },
  };
}
