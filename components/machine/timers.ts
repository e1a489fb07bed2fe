import { createHmac } from "node:crypto";

import { azureCloudAt } from "../azure/clouds";
import { containerAddress } from "../azure/snapshots";
import type { PayloadFile } from "../kubeadm/payload-file";
import { snapshotAccount, subjectOf } from "../settings/logins";
import type { Settings } from "../settings/settings";
import { scriptFile, unitFile } from "./payload";

/** On the Node of a control plane: until when all certificates are valid that kubeadm made there. */
export const validUntil = "zoned/certificates-valid-until";

/** Beside it, after a renewal that did not end well: when, and why. */
export const renewalFailed = "zoned/certificates-renewal-failed";

/**
 * Certificates with fewer days left are renewed by their machine.
 *
 * kubeadm signs them for a year, and renews by itself only those of what it upgrades.
 *
 * @see https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs/
 */
export const renewedBelowDays = 60;

const days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/**
 * What renews a control plane's certificates on the machine, without an operator.
 *
 * @param position of the control plane among all of them, from 0
 */
export const renewalFiles = (position: number): PayloadFile[] => [
  scriptFile("renew-certificates.sh"),
  unitFile("zoned-certificates.service"),
  unitFile("zoned-certificates.timer", { DAY: days[position % days.length]! }),
];

type BackupSettings = Pick<Settings, "clusterName" | "etcdBackups" | "resourceManagerEndpoint">;

/** By which Entra takes a control plane for an identity that it does not carry. */
interface Login {
  /** Of service accounts' tokens, which the machine has the key of. */
  readonly issuer: string;
  readonly tenantId: string;
}

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
 * @param login where the machine does not carry that identity
 */
export function snapshotFiles(
  settings: BackupSettings,
  clientId: string,
  encryptionSecret: string,
  login?: Login,
): PayloadFile[] {
  const { etcdBackups } = settings;
  if (etcdBackups === undefined) return [];
  const environment = Object.entries({
    CLUSTER_NAME: settings.clusterName,
    CONTAINER: containerAddress(settings),
    CLIENT_ID: clientId,
    EVERY: etcdBackups.every,
    ORIGIN: originOf(encryptionSecret),
    ...(login && etcdBackups.container !== undefined && loginValues(settings, login)),
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

function loginValues(
  { resourceManagerEndpoint }: Pick<Settings, "resourceManagerEndpoint">,
  { issuer, tenantId }: Login,
) {
  const { login, tokenAudience } = azureCloudAt(resourceManagerEndpoint);
  return {
    ISSUER: issuer,
    SUBJECT: subjectOf(snapshotAccount),
    AUDIENCE: tokenAudience,
    LOGIN: `https://${login}/${tenantId}/oauth2/v2.0/token`,
  };
}
