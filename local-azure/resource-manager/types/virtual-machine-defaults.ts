import { randomUUID } from "node:crypto";

import { findImage } from "../images";
import { ArmId } from "../ids";
import { Accepted, Body, Put, View } from "../resource-type";
import { present } from "./common";
import { MachineBody } from "./virtual-machine-body";
import { diskId } from "./virtual-machine-disks";

/** Azure's own name for a disk that was given none. */
const inventedDiskName = ({ name }: ArmId) =>
  `${name}_OsDisk_1_${randomUUID().replaceAll("-", "")}`;

/** A machine with what Azure fills in, and beside it what Azure keeps to itself. */
export function completeMachine(
  { id, body, old, now }: Put<MachineBody>,
  view: View,
): Accepted<MachineBody> {
  const storage = body.storageProfile!;
  const before = old?.body.storageProfile;
  const diskName = storage.osDisk?.name ?? before?.osDisk?.name ?? inventedDiskName(id);
  // A password is kept nowhere; customData is what machines boot from.
  const { customData, adminPassword: _, ...osProfile } = body.osProfile ?? {};
  const { exactVersion } = findImage(storage.imageReference!);
  const filled: Body = present({
    ...body,
    vmId: old?.body.vmId ?? randomUUID(),
    timeCreated: old?.body.timeCreated ?? now.toISOString(),
    identity: body.identity && {
      ...body.identity,
      userAssignedIdentities: identityMap(body, view),
    },
    osProfile: {
      allowExtensionOperations: true,
      requireGuestProvisionSignal: true,
      secrets: [],
      computerName: id.name,
      ...osProfile,
      linuxConfiguration: {
        provisionVMAgent: true,
        patchSettings: { patchMode: "ImageDefault", assessmentMode: "ImageDefault" },
        ...osProfile.linuxConfiguration,
      },
    },
    storageProfile: {
      ...storage,
      imageReference: { ...storage.imageReference, exactVersion },
      osDisk: {
        caching: "ReadWrite",
        diskSizeGB: before?.osDisk?.diskSizeGB ?? 30,
        deleteOption: "Detach",
        osType: "Linux",
        ...storage.osDisk,
        name: diskName,
        managedDisk: {
          storageAccountType: "Standard_LRS",
          ...storage.osDisk?.managedDisk,
          id: diskId(id, diskName),
        },
      },
      // Compute leaves the disks of a machine alone when a PUT does not name them.
      dataDisks: storage.dataDisks ?? before?.dataDisks ?? [],
    },
  });
  return {
    body: filled as MachineBody,
    hidden: { ...old?.hidden, ...(customData !== undefined && { customData }) },
  };
}

/** The SDK sends a list of ids, and Azure returns a map of what each stands for. */
export function identitiesOf({ identity }: MachineBody): string[] {
  const identities = identity?.userAssignedIdentities ?? [];
  return Array.isArray(identities) ? identities : Object.keys(identities);
}

const identityMap = (body: MachineBody, view: View): Record<string, object> =>
  Object.fromEntries(
    identitiesOf(body).map((id) => {
      const { principalId, clientId } = view.find(id)?.body ?? {};
      return [id, { principalId, clientId }];
    }),
  );
