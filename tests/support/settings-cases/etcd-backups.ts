import { idIn } from "../sample";
import type { Cases } from "./case";

const containerIn = (group: string): string =>
  idIn(group, "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd");
const container = containerIn("backups");

export const etcdBackupCases: Cases = {
  refused: [
    ["a container alone", { etcdBackups: container }, "expected values by name"],
    [
      "a container by its address",
      { etcdBackups: { container: "https://ours.blob.core.windows.net/etcd" } },
      "Azure's id of a blob container",
    ],
    [
      "a container that goes with the cluster",
      { clusterName: "mine", etcdBackups: { container: containerIn("Mine") } },
      "in another resource group than mine",
    ],
    [
      "a name that nobody reads",
      { etcdBackups: { container, interval: "1h" } },
      "one of container, every, endpoint",
    ],
    ["a snapshot a minute", { etcdBackups: { every: "1m" } }, "5m to 24h"],
    ["a snapshot a week", { etcdBackups: { container, every: "7d" } }, "5m to 24h"],
    [
      "an endpoint that is no address",
      { etcdBackups: { container, endpoint: "ours.blob" } },
      "the address of the account's Blob service",
    ],
    [
      "an endpoint without a container",
      { etcdBackups: { every: "1h", endpoint: "https://ours.example" } },
      "etcdBackups.container beside it",
    ],
    [
      "a date to restore from",
      { etcdBackups: { container }, restoreFrom: "yesterday" },
      "empty, latest, or the name of a snapshot",
    ],
    ["a snapshot from nowhere", { restoreFrom: "latest" }, "etcdBackups.container beside it"],
    [
      "a snapshot from a disk that is lost",
      { etcdBackups: { every: "1h" }, restoreFrom: "latest" },
      "etcdBackups.container beside it",
    ],
  ],
  accepted: [
    ["a container", { etcdBackups: { container } }],
    ["a folder of the control plane", { etcdBackups: { every: "24h" } }],
    [
      "a container behind an address of its own",
      { etcdBackups: { container, every: "5m", endpoint: "http://10.0.0.4:10000/ours" } },
    ],
    [
      "a snapshot by name",
      { etcdBackups: { container }, restoreFrom: "20261123T174128Z-51234.db" },
    ],
    [
      "a cluster that may be lost once more",
      { reinitialize: "1-20261123T174128Z-20261124T080000Z" },
    ],
  ],
};
