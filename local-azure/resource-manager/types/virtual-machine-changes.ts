import { isDeepStrictEqual } from "node:util";

import { conflict, propertyChangeNotAllowed } from "../azure-error";
import { keyOf } from "../ids";
import { Resource } from "../resource-type";
import { MachineBody, nicsOf } from "./virtual-machine-body";

/** What a PUT may not change on a machine that exists. A property left out is left alone. */
export function checkMachineChange(
  body: MachineBody,
  { body: old, hidden }: Resource<MachineBody>,
): void {
  const image = (one: MachineBody) => {
    const { id, publisher, offer, sku, version } = one.storageProfile?.imageReference ?? {};
    return [id, publisher, offer, sku, version];
  };
  const keys = (one: MachineBody) => one.osProfile?.linuxConfiguration?.ssh?.publicKeys;
  const wanted = body.osProfile ?? {};
  const disk = body.storageProfile?.osDisk;
  const oldDisk = old.storageProfile?.osDisk;
  const fixed: [string, unknown, unknown][] = [
    ["zones", body.zones ?? [], old.zones ?? []],
    ["osProfile.customData", wanted.customData, hidden["customData"]],
    ["osProfile.computerName", wanted.computerName, old.osProfile?.computerName],
    ["osProfile.adminUsername", wanted.adminUsername, old.osProfile?.adminUsername],
    ["linuxConfiguration.ssh.publicKeys", keys(body), keys(old)],
    ["imageReference", image(body), image(old)],
    ["osDisk.name", disk?.name, oldDisk?.name],
    [
      "osDisk.managedDisk.storageAccountType",
      disk?.managedDisk?.storageAccountType,
      oldDisk?.managedDisk?.storageAccountType,
    ],
    [
      "securityProfile.securityType",
      body.securityProfile?.securityType,
      old.securityProfile?.securityType,
    ],
    ["availabilitySet", body.availabilitySet, old.availabilitySet],
    ["priority", body.priority, old.priority],
  ];
  for (const [path, next, before] of fixed) {
    if (next !== undefined && !isDeepStrictEqual(next, before))
      throw propertyChangeNotAllowed(path);
  }
  if (disk?.diskSizeGB !== undefined && disk.diskSizeGB !== oldDisk?.diskSizeGB) {
    throw conflict(
      "OperationNotAllowed",
      "Disk resizing is allowed only when creating a VM or when the VM is deallocated.",
    );
  }
  const nics = (one: MachineBody) =>
    nicsOf(one)
      .map(({ id }) => keyOf(id))
      .sort();
  if (!isDeepStrictEqual(nics(body), nics(old))) {
    throw conflict(
      "AddingOrDeletingNetworkInterfacesOnARunningVirtualMachineNotSupported",
      "Secondary network interfaces cannot be added or deleted from a running virtual machine.",
    );
  }
}
