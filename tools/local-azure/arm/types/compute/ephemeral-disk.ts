import {
  AzureError,
  invalidParameter,
  operationNotAllowed,
  propertyChangeNotAllowed,
} from "../../azure-error";
import { ArmId, Resource } from "../../resources/resource";
import { findSize, localDisksOf } from "../../subscription/offers";
import type { MachineBody } from "./virtual-machine-validation";

/** What Trusted Launch keeps on the disk, in GiB. */
const firmwareGib = 1;

const settingsOf = ({ storageProfile }: MachineBody) => storageProfile?.osDisk?.diffDiskSettings;

const isEphemeral = (body: MachineBody): boolean => settingsOf(body)?.option === "Local";

/**
 * Throws when an OS disk cannot lie on its host. The message of a disk that is too large is published; of
 * others only what they are about (ephemeral-os-disks, its FAQ).
 */
export function checkEphemeralDisk(
  body: MachineBody,
  old: Resource<MachineBody> | undefined,
): void {
  if (old) {
    const [before, next] = [settingsOf(old.body), settingsOf(body)];
    if (
      next !== undefined &&
      (next.placement !== before?.placement || next.option !== before?.option)
    ) {
      throw propertyChangeNotAllowed("osDisk.diffDiskSettings");
    }
  }
  if (!isEphemeral(body)) return;
  const osDisk = body.storageProfile!.osDisk!;
  if (osDisk.caching !== "ReadOnly") {
    throw invalidParameter(
      "Ephemeral OS disks are supported with caching 'ReadOnly' only.",
      "osDisk.caching",
    );
  }
  if (body.evictionPolicy === "Deallocate" || (body.priority === "Spot" && !body.evictionPolicy)) {
    throw invalidParameter(
      "Eviction policy 'Deallocate' is not supported for VMs with ephemeral OS disks.",
      "evictionPolicy",
    );
  }
  // The page ephemeral-os-disks has it so; cluster-api-provider-azure refuses the set in any case.
  if (osDisk.managedDisk?.diskEncryptionSet && body.securityProfile?.encryptionAtHost !== true) {
    throw invalidParameter(
      "Ephemeral OS disks are encrypted by a customer-managed key with encryption at host only.",
      "osDisk.managedDisk.diskEncryptionSet",
    );
  }
  const size = findSize(body.hardwareProfile?.vmSize ?? "")!;
  const disks = localDisksOf(size);
  const placement = osDisk.diffDiskSettings?.placement ?? disks.at(-1)?.[0];
  const [, gib = 0] = disks.find(([name]) => name === placement) ?? [];
  const isTrusted = body.securityProfile?.securityType === "TrustedLaunch";
  const most = Math.max(0, gib - (isTrusted ? firmwareGib : 0));
  if ((osDisk.diskSizeGB ?? 30) <= most) return;
  throw new AzureError(
    409,
    "NotSupported",
    `OS disk of Ephemeral VM with size greater than ${most} GB is not allowed for VM size ${size.name} when the DiffDiskPlacement is ` +
      `${placement}. Please refer to https://aka.ms/Ephemeral for more details.`,
  );
}

/** Neither is there anything that would keep its disk. */
export function checkSwitchesOff({ name }: ArmId, body: MachineBody, action: string): void {
  if (!isEphemeral(body) || !/^(powerOff|deallocate)$/.test(action)) return;
  throw operationNotAllowed(
    `Operation '${action}' is not supported on VM '${name}' since its OS disk is ephemeral.`,
  );
}
