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

const window = { days: ["tue", "thu"], from: "02:00", to: "05:00" };

export const rebootCases: Cases = {
  refused: [
    ["reboots at any time", { reboots: "always" }, "expected days, from and to"],
    [
      "a window without days",
      { reboots: { from: "02:00", to: "05:00" } },
      "a day beside from and to",
    ],
    [
      "a day that is none",
      { reboots: { ...window, days: ["tue", "Thursday"] } },
      'reboots.days[1] is "Thursday", expected one of mon, tue, wed, thu, fri, sat, sun',
    ],
    [
      "a window that never begins",
      { reboots: { days: ["tue"], to: "05:00" } },
      "reboots.from is not set, expected a time of day in UTC",
    ],
    ["a time that is none", { reboots: { ...window, to: "25:00" } }, "a time of day in UTC"],
    [
      "a window over midnight",
      { reboots: { ...window, from: "23:00", to: "02:00" } },
      "at least an hour before 02:00 on the same day",
    ],
    [
      "a window too short for a machine",
      { reboots: { ...window, to: "02:30" } },
      "reboots.from 01:30",
    ],
    ["a name that nobody reads", { reboots: { ...window, zone: "UTC" } }, "one of days, from, to"],
  ],
  accepted: [["reboots in two nights of the week", { reboots: window }]],
};
