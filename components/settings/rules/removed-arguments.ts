import type { Component } from "../settings";
import type { KnownArguments } from "./known-arguments";

const experimental = "experimental-";

/** Feature gates that have taken the place of etcd's experimental flags; others kept their name. */
const gates: Readonly<Record<string, string>> = {
  "compact-hash-check-enabled": "CompactHashCheck",
  "enable-lease-checkpoint": "LeaseCheckpoint",
  "enable-lease-checkpoint-persist": "LeaseCheckpointPersist",
  "initial-corrupt-check": "InitialCorruptCheck",
  "stop-grpc-service-on-defrag": "StopGRPCServiceOnDefrag",
  "txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
};

/** Flags of etcd's second API, which has gone with its store. */
const secondApi = ["discovery", "discovery-proxy", "enable-v2", "experimental-enable-v2v3"];

/** Flags of cAdvisor's that kubelets took until 1.36, since both were once linked into one program. */
const cAdvisors = (
  "application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace enable-load-reader " +
  "event-storage-age-limit event-storage-event-limit global-housekeeping-interval log-cadvisor-usage machine-id-file " +
  "storage-driver-buffer-duration storage-driver-db storage-driver-host storage-driver-password storage-driver-secure " +
  "storage-driver-table storage-driver-user"
).split(" ");

/** What has taken the place of an argument that earlier releases of a program had, if that is known. */
export function replacementOf(
  component: Component,
  name: string,
  { flags }: Pick<KnownArguments, "flags">,
): string | undefined {
  if (component === "kubeletExtraArgs" && cAdvisors.includes(name))
    return "nothing has taken its place, since it was a flag of cAdvisor's, and a kubelet does not start with it";
  if (component === "controllerManagerExtraArgs" && name === "concurrent-service-syncs")
    return "nothing has taken its place, since it has done nothing from 1.31 on";
  if (component !== "etcdExtraArgs") return undefined;
  if (secondApi.includes(name)) return "nothing has taken its place, since etcd has no v2 store";
  if (!name.startsWith(experimental)) return undefined;
  const kept = name.slice(experimental.length);
  const gate = gates[kept];
  if (gate !== undefined) return `its place has taken the feature gate ${gate}: set feature-gates`;
  return Object.hasOwn(flags, kept) ? `its name is ${kept} now` : undefined;
}
