import {
  parseContainer,
  snapshotFiles,
} from "../../../../../components/machine/bootstrap/etcd-backups";
import { validSettings } from "../../../../support/sample";

const container =
  "/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/Backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd";

const fileOf = (settings: object, ending: string) =>
  snapshotFiles({ ...validSettings, ...settings }, "the-client").find(({ path }) =>
    path.endsWith(ending),
  )!;

it("brings nothing where no snapshots are wanted", () => {
  expect(snapshotFiles(validSettings, "the-client")).toEqual([]);
});

it.each([
  ["in the public cloud", {}, "https://ours.blob.core.windows.net/etcd"],
  [
    "in Azure Government",
    { resourceManagerEndpoint: "https://management.usgovcloudapi.net" },
    "https://ours.blob.core.usgovcloudapi.net/etcd",
  ],
  [
    "behind an address of its own",
    { etcdBackups: { container, every: "1h", endpoint: "http://10.0.0.4:1000/ours" } },
    "http://10.0.0.4:1000/ours/etcd",
  ],
  ["in a folder", { etcdBackups: { every: "1h" } }, ""],
])("tells the script where the container is, %s", (_, settings, address) => {
  const etcdBackups = { container, every: "1h" };
  const { content, mode } = fileOf({ etcdBackups, ...settings }, "etcd-snapshot.env");
  expect(content).toBe(
    `CLUSTER_NAME='zoned-test'\nCONTAINER='${address}'\nCLIENT_ID='the-client'\nEVERY='1h'\n`,
  );
  expect(mode).toBe("0600");
});

it("saves by the clock of the setting, and again soon where that has failed", () => {
  const etcdBackups = { container, every: "30m" };
  expect(fileOf({ etcdBackups }, ".timer").content).toContain("\nOnUnitInactiveSec=30m\n");
  const { content } = fileOf({ etcdBackups }, ".service");
  expect(content).toMatch(
    /\nExecStart=\/opt\/zoned\/etcd-snapshot\.sh save\n[^]*\nRestart=on-failure\n/,
  );
});

it("knows a container by its id in whatever case Azure prints it", () => {
  expect(parseContainer(container.replace("resourceGroups", "resourcegroups"))).toEqual({
    subscriptionId: "3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11",
    resourceGroup: "Backups",
    account: "ours",
    container: "etcd",
  });
  expect(parseContainer(container.slice(0, -5))).toBeUndefined();
});
