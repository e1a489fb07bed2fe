import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { renewalFiles, snapshotFiles } from "../../../components/machine/timers";
import { parseContainer } from "../../../components/settings/azure-ids";
import { idIn, subscriptionId, validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { installed } from "../../support/tools";

const container = idIn(
  "Backups",
  "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
);

const fileOf = (settings: object, ending: string) =>
  snapshotFiles({ ...validSettings, ...settings }, "the-client", "the secret").find(({ path }) =>
    path.endsWith(ending),
  )!;

it("brings nothing where no snapshots are wanted", () => {
  expect(snapshotFiles(validSettings, "the-client", "the secret")).toEqual([]);
});

it.each([
  ["in the public cloud", {}, "https://ours.blob.core.windows.net/etcd"],
  [
    "in Azure Government",
    { resourceManagerEndpoint: "https://management.usgovcloudapi.net" },
    "https://ours.blob.core.usgovcloudapi.net/etcd",
  ],
  [
    "in Azure China",
    { resourceManagerEndpoint: "https://management.chinacloudapi.cn" },
    "https://ours.blob.core.chinacloudapi.cn/etcd",
  ],
  [
    "behind an address of its own",
    { etcdBackups: { container, every: "1h", endpoint: "https://10.0.0.4:1000/ours" } },
    "https://10.0.0.4:1000/ours/etcd",
  ],
  ["in a folder", { etcdBackups: { every: "1h" } }, ""],
])("tells the script where the container is, %s", (_, settings, address) => {
  const etcdBackups = { container, every: "1h" };
  const { content, mode } = fileOf({ etcdBackups, ...settings }, "etcd-snapshot.env");
  const origin = /^ORIGIN='([0-9a-f]{64})'$/m.exec(content)![1];
  expect(content).toBe(
    `CLUSTER_NAME='zoned-test'\nCONTAINER='${address}'\nCLIENT_ID='the-client'\nEVERY='1h'\nORIGIN='${origin}'\n`,
  );
  expect(mode).toBe("0600");
});

it.each<[string, object, string, string]>([
  ["in the public cloud", {}, "login.microsoftonline.com", ""],
  [
    "in Azure Government",
    { resourceManagerEndpoint: "https://management.usgovcloudapi.net" },
    "login.microsoftonline.us",
    "USGov",
  ],
  [
    "in Azure China",
    { resourceManagerEndpoint: "https://management.chinacloudapi.cn" },
    "login.partner.microsoftonline.cn",
    "China",
  ],
])(
  "tells the script how to log in where its machine carries no identity, %s",
  (_, more, host, audience) => {
    const settings = { ...validSettings, etcdBackups: { container, every: "1h" }, ...more };
    const login = { issuer: "https://issuer.example", tenantId: "the-tenant" };
    const content = (of: Parameters<typeof snapshotFiles>[0]) =>
      snapshotFiles(of, "the-client", "the secret", login)[1]!.content;

    expect(content(settings)).toContain(
      "ISSUER='https://issuer.example'\nSUBJECT='system:serviceaccount:kube-system:zoned-etcd-snapshot'\n" +
        `AUDIENCE='api://AzureADTokenExchange${audience}'\nLOGIN='https://${host}/the-tenant/oauth2/v2.0/token'\n`,
    );
    expect(content({ ...settings, etcdBackups: { every: "1h" } })).not.toContain("ISSUER");
  },
);

it("saves by the clock of the setting from the first minute on, and again soon where that has failed", () => {
  const etcdBackups = { container, every: "30m" };
  const timer = fileOf({ etcdBackups }, ".timer");
  expect(timer.content).toMatch(/^OnUnitInactiveSec=30m$/m);
  // Without it the timer would never begin: the service has not been active yet (systemd.timer(5)).
  expect(timer.content).toMatch(/^OnActiveSec=1m$/m);
  expect(timer.content).toMatch(/^RandomizedDelaySec=30$/m);
  expect(timer.content).toMatch(/^\[Install\]\nWantedBy=timers\.target$/m);

  const { content } = fileOf({ etcdBackups }, ".service");
  expect(content).toMatch(
    /\nType=oneshot\nExecStart=\/opt\/zoned\/etcd-snapshot\.sh save\nTimeoutStartSec=1h\nRestart=on-failure\nRestartSec=5min\n/,
  );
});

it("marks snapshots by the secret of their stack for ever, since restores refuse those of another one", () => {
  const { content } = fileOf({ etcdBackups: { container, every: "1h" } }, "etcd-snapshot.env");

  expect(content).toContain(
    "ORIGIN='99db97d3fee1cce6ad74046108ce1014c461ef84ba1a51601611f1c49affb69b'",
  );
});

it("brings what its units start, for root alone", () => {
  const etcdBackups = { container, every: "30m" };
  const files = snapshotFiles({ ...validSettings, etcdBackups }, "the-client", "the secret");

  expect(files.map(({ path, mode }) => [path, mode])).toEqual([
    ["/opt/zoned/etcd-snapshot.sh", "0700"],
    ["/opt/zoned/etcd-snapshot.env", "0600"],
    ["/etc/systemd/system/zoned-etcd-snapshot.service", "0644"],
    ["/etc/systemd/system/zoned-etcd-snapshot.timer", "0644"],
  ]);
});

it("writes units that systemd itself takes, and starts nothing that is not there", () => {
  const folder = testFolder();
  const etcdBackups = { container, every: "30m" };
  const files = [
    ...snapshotFiles({ ...validSettings, etcdBackups }, "the-client", "the secret"),
    ...renewalFiles(0),
  ];
  const at = (path: string) => join(folder, path.replace("/etc/systemd/system", "units"));
  for (const { path, mode, content } of files) {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), content.replaceAll("/opt/", `${folder}/opt/`), {
      mode: parseInt(mode, 8),
    });
  }
  const units = files.filter(({ path }) => path.startsWith("/etc/systemd"));

  const { status, stderr } = spawnSync(
    installed("systemd-analyze", "systemd"),
    ["verify", "--recursive-errors=no", ...units.map(({ path }) => at(path))],
    { encoding: "utf8" },
  );

  expect([units.length, status, stderr]).toEqual([4, 0, ""]);
});

it("knows a container by its id in whatever case Azure prints it", () => {
  expect(parseContainer(container.replace("resourceGroups", "resourcegroups"))).toEqual({
    subscriptionId,
    resourceGroup: "Backups",
    account: "ours",
    container: "etcd",
  });
  expect(parseContainer(container.slice(0, -5))).toBeUndefined();
});
