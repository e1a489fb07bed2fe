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

/** What has taken the place of an argument that earlier releases of a program had, if that is known. */
export function replacementOf(
  component: Component,
  name: string,
  { flags }: Pick<KnownArguments, "flags">,
): string | undefined {
  if (component !== "etcdExtraArgs") return undefined;
  if (secondApi.includes(name)) return "nothing has taken its place, since etcd has no v2 store";
  if (!name.startsWith(experimental)) return undefined;
  const kept = name.slice(experimental.length);
  const gate = gates[kept];
  if (gate !== undefined) return `its place has taken the feature gate ${gate}: set feature-gates`;
  return Object.hasOwn(flags, kept) ? `its name is ${kept} now` : undefined;
}
