import { randomUUID } from "node:crypto";

import { conflict, invalidParameter, refuse } from "../azure-error";
import { ArmId, keyOf } from "../ids";
import { Ledger, Resource, View } from "../resource-type";
import { present } from "./common";
import { attach, detach, DiskBody, diskType } from "./disk";
import { MachineBody, MachineDisk } from "./virtual-machine-body";

export const diskId = ({ subscription, group }: ArmId, name: string): string =>
  `/subscriptions/${subscription}/resourceGroups/${group}/providers/${diskType}/${name}`;

export function checkDataDisks(
  disks: readonly MachineDisk[],
  id: ArmId,
  body: MachineBody,
  view: View,
): void {
  const luns = disks.map(({ lun }) => lun);
  const twice = luns.find((lun, position) => luns.indexOf(lun) !== position);
  if (twice !== undefined) {
    throw invalidParameter(`A disk at LUN ${twice} already exists.`, "dataDisk.lun");
  }
  for (const { managedDisk } of disks) {
    const disk = managedDisk?.id === undefined ? undefined : view.find(managedDisk.id);
    if (disk === undefined) continue;
    const { managedBy, zones } = disk.body as DiskBody;
    const name = disk.id.split("/").at(-1);
    if (managedBy !== undefined && keyOf(managedBy) !== id.key) {
      throw conflict(
        "ConflictingUserInput",
        `Disk '${name}' cannot be attached as the disk is already owned by VM '${managedBy}'.`,
      );
    }
    const zone = body.zones?.[0];
    if (zone !== undefined && zones !== undefined && !zones.includes(zone)) {
      throw refuse(
        "BadRequest",
        `Disk ${name} cannot be attached to the VM because it is not in zone '${zone}'.`,
      );
    }
  }
}

/** The disk that comes into being with a machine. */
export function createOsDisk({ id, body }: Resource<MachineBody>, ledger: Ledger, now: Date): void {
  const { managedDisk, diskSizeGB, osType } = body.storageProfile!.osDisk!;
  const sku = managedDisk!.storageAccountType!;
  ledger.put({
    id: managedDisk!.id!,
    type: diskType,
    hidden: {},
    changed: now.toISOString(),
    body: present({
      location: body.location,
      zones: body.zones,
      sku: { name: sku, tier: sku.split("_")[0] },
      creationData: { createOption: "FromImage" },
      diskSizeGB,
      osType,
      timeCreated: now.toISOString(),
      uniqueId: randomUUID(),
      provisioningState: "Succeeded",
      managedBy: id,
      diskState: "Attached",
    }),
  });
}

export function moveDataDisks(
  { id, body }: Resource<MachineBody>,
  old: Resource<MachineBody> | undefined,
  ledger: Ledger,
): void {
  const idsOf = (one: MachineBody | undefined) =>
    (one?.storageProfile?.dataDisks ?? []).flatMap(({ managedDisk }) => managedDisk?.id ?? []);
  const wanted = idsOf(body).map(keyOf);
  for (const disk of idsOf(old?.body).flatMap((one) => ledger.find(one) ?? [])) {
    if (!wanted.includes(keyOf(disk.id))) detach(disk);
  }
  for (const disk of wanted.flatMap((one) => ledger.find(one) ?? [])) attach(disk, id);
}

/** What becomes of the disks of a machine that was deleted. */
export function leaveDisks({ storageProfile }: MachineBody, ledger: Ledger): void {
  const { osDisk, dataDisks = [] } = storageProfile ?? {};
  for (const { managedDisk, deleteOption } of [...(osDisk ? [osDisk] : []), ...dataDisks]) {
    const disk = managedDisk?.id === undefined ? undefined : ledger.find(managedDisk.id);
    if (disk === undefined) continue;
    if (deleteOption === "Delete") ledger.remove(disk.id);
    else detach(disk);
  }
}
