import { createHmac } from "node:crypto";

import { containerAddress } from "../azure/snapshots";
import type { PayloadFile } from "../kubeadm/payload-file";
import type { Settings } from "../settings/settings";
import { scriptFile, unitFile } from "./cloud-init-files";

type BackupSettings = Pick<Settings, "clusterName" | "etcdBackups" | "resourceManagerEndpoint">;

/**
 * What a snapshot has in common with the one stack by which it can be read: the key from which those of
 * Secrets are derived stays, whatever other keys change. It tells nothing of that key.
 */
const originOf = (encryptionSecret: string): string =>
  createHmac("sha256", encryptionSecret).update("snapshot-origin").digest("hex");

/**
 * What saves etcd on a control plane, for its bootstrap step; nothing where the settings want no
 * snapshots.
 *
 * @param clientId of the identity by which the machine asks for a token
 * @param encryptionSecret from which the keys of Secrets are derived
 */
export function snapshotFiles(
  settings: BackupSettings,
  clientId: string,
  encryptionSecret: string,
): PayloadFile[] {
  const { etcdBackups } = settings;
  if (etcdBackups === undefined) return [];
  const environment = Object.entries({
    CLUSTER_NAME: settings.clusterName,
    CONTAINER: containerAddress(settings),
    CLIENT_ID: clientId,
    EVERY: etcdBackups.every,
    ORIGIN: originOf(encryptionSecret),
  })
    .map(([name, value]) => `${name}='${value}'\n`)
    .join("");
  return [
    scriptFile("etcd-snapshot.sh"),
    { path: "/opt/zoned/etcd-snapshot.env", mode: "0600", content: environment },
    unitFile("zoned-etcd-snapshot.service"),
    unitFile("zoned-etcd-snapshot.timer", { EVERY: etcdBackups.every }),
  ];
}
