import { readFileSync } from "node:fs";
import { join } from "node:path";

import { containerAddress } from "../azure/snapshots";
import type { PayloadFile } from "../kubeadm/payload-file";
import type { Settings } from "../settings/settings";

type BackupSettings = Pick<Settings, "clusterName" | "etcdBackups" | "resourceManagerEndpoint">;

const script = "/opt/zoned/etcd-snapshot.sh";

/** A role of a minute ago is not known to all of Azure, and the next turn of the timer may be a day ahead. */
const service = `[Unit]
Description=Save a snapshot of etcd
After=kubelet.service network-online.target

[Service]
Type=oneshot
ExecStart=${script} save
TimeoutStartSec=1h
Restart=on-failure
RestartSec=5min
`;

/** At its own time on every machine; the one that leads etcd saves. */
const timer = (every: string): string => `[Unit]
Description=Save a snapshot of etcd every ${every}

[Timer]
OnActiveSec=1m
OnUnitInactiveSec=${every}
RandomizedDelaySec=30

[Install]
WantedBy=timers.target
`;

/**
 * What saves etcd on a control plane, for its bootstrap step; nothing where the settings want no
 * snapshots.
 *
 * @param clientId of the identity by which the machine asks for a token
 */
export function snapshotFiles(settings: BackupSettings, clientId: string): PayloadFile[] {
  const { etcdBackups } = settings;
  if (etcdBackups === undefined) return [];
  const environment = Object.entries({
    CLUSTER_NAME: settings.clusterName,
    CONTAINER: containerAddress(settings),
    CLIENT_ID: clientId,
    EVERY: etcdBackups.every,
  })
    .map(([name, value]) => `${name}='${value}'\n`)
    .join("");
  const unit = (kind: string, content: string) => ({
    path: `/etc/systemd/system/zoned-etcd-snapshot.${kind}`,
    mode: "0644",
    content,
  });
  return [
    {
      path: script,
      mode: "0700",
      content: readFileSync(join(__dirname, "../../cloud-init/etcd-snapshot.sh"), "utf8"),
    },
    { path: "/opt/zoned/etcd-snapshot.env", mode: "0600", content: environment },
    unit("service", service),
    unit("timer", timer(etcdBackups.every)),
  ];
}
