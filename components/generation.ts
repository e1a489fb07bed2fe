import { createHash } from "node:crypto";

import type { Settings } from "./settings";
import type { Machine } from "./topology";

/** Azure refuses a change of these on a living VM, and azure-native would try it as an update. */
export const replacing: readonly string[] = [
  "zones",
  "osProfile.adminUsername",
  "osProfile.computerName",
  "osProfile.customData",
  "osProfile.linuxConfiguration.ssh.publicKeys",
  "securityProfile.securityType",
  "storageProfile.imageReference",
  "storageProfile.osDisk.diskSizeGB",
  "storageProfile.osDisk.managedDisk.storageAccountType",
];

/** A machine's taints as one text, as the kubelet would take them. */
export const taintsText = ({ taints }: Machine): string =>
  taints.map(({ key, value, effect }) => `${key}=${value ?? ""}:${effect}`).join(",");

/** A hash over everything of which a change replaces the machine. */
export function generationOf(plan: Machine, settings: Settings, customData: string): string {
  const parts = [
    plan.name,
    plan.zone,
    taintsText(plan),
    settings.adminUsername,
    settings.sshPublicKey,
    settings.imageVersion,
    settings.osDiskSku,
    settings.osDiskSizeGb,
    customData,
  ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
}
