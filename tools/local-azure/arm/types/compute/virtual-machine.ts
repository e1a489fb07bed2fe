import { createHash, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { VirtualMachine } from "../../../machines/machines";
import { isInFlight } from "../../admission";
import { AzureError, missingResource, OperationFailed, refuse } from "../../azure-error";
import {
  account,
  ArmId,
  Body,
  keyOf,
  Ledger,
  parseId,
  Reference,
  Resource,
  View,
  withoutUndefined,
} from "../../resources/resource";
import { imageName } from "../../subscription/offers";
import { checkNotReserved, NetworkInterfaceBody, reserve } from "../network/network-interface";
import { Accepted, Put, ResourceType } from "../resource-type";
import {
  attach,
  detach,
  diskType,
  encryptionBy,
  referenceToSet,
  rightToSet,
  withPlatformKey,
} from "./disk";
import { checkEphemeralDisk } from "./ephemeral-disk";
import { imageOf, marketplaceGb, rightToImage } from "./gallery";
import { checkNotGeneralized, powerOf } from "./power";
import { checkSpot, spotDefaults } from "./spot";
import {
  checkDataDisks,
  checkEncryptionAtHost,
  checkHardware,
  checkMachine,
  checkMachineChange,
  checkNics,
  MachineBody,
  nicsOf,
  setsOf,
} from "./virtual-machine-validation";

const machineType = "Microsoft.Compute/virtualMachines";

export const virtualMachine: ResourceType<MachineBody> = {
  token: "azure-native:compute:VirtualMachine",
  type: machineType,
  identifiers: {
    "applicationProfile.galleryApplications": "packageReferenceId",
    "networkProfile.networkInterfaceConfigurations": "name",
    "osProfile.linuxConfiguration.ssh.publicKeys": "path",
    "storageProfile.dataDisks": "lun",
  },
  nested: ["networkProfile.networkInterfaces[]"],
  mergesOnPut: true,
  patches: "inputs",
  readOnly: [
    "storageProfile.imageReference.exactVersion",
    "identity.principalId",
    "identity.tenantId",
  ],
  zones: { most: 1 },
  name: /^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?$/,

  references(body, id) {
    const to = (target: string, missing: AzureError): Reference => ({
      from: id,
      owner: id,
      to: target,
      missing,
    });
    return [
      ...nicsOf(body).map((nic) => to(nic.id, missingResource(nic.id))),
      ...(body.storageProfile?.dataDisks ?? []).flatMap(({ managedDisk: { id: disk } = {} }) =>
        disk === undefined ? [] : [to(disk, missingResource(disk))],
      ),
      ...setsOf(body).flatMap((set) => referenceToSet(id, set)),
      ...identitiesOf(body).map((identity) => ({
        ...to(
          identity,
          refuse(
            "FailedIdentityOperation",
            `Identity operation for resource '${id}' failed with error 'Failed to perform resource identity operation. ` +
              `Status: 'BadRequest'. Response: 'Resource '${identity}' was not found.'.`,
          ),
        ),
        crossesRegions: true,
      })),
    ];
  },

  linkedRights: (body) => [
    ...setsOf(body).flatMap(rightToSet),
    ...rightToImage(body.storageProfile?.imageReference),
  ],

  accept(put, view) {
    const { id, body, old, now } = put;
    if (old) checkNotGeneralized("update", old);
    checkEncryptionAtHost(body, old, view);
    checkMachine(body, old, id, view, sizeOf(old?.body) !== sizeOf(body));
    checkSpot(body, old, id);
    checkEphemeralDisk(body, old);
    checkNics(body, id, view);
    for (const diskEncryptionSetId of setsOf(body)) encryptionBy({ diskEncryptionSetId }, view);
    const set = old === undefined ? body.availabilitySet?.id : undefined;
    if (set !== undefined && !view.exists(set)) throw missingResource(set);
    if (old) checkMachineChange(body, old);
    if (old && powerOf(old) !== "deallocated") checkHardware(body, old.body, id);
    for (const nic of nicsOf(body)) {
      checkNotReserved(view.find(nic.id)?.hidden ?? {}, id.id, now);
    }
    const { dataDisks = old?.body.storageProfile?.dataDisks ?? [] } = body.storageProfile ?? {};
    checkDataDisks(dataDisks, id, body, view);
    const diskName = body.storageProfile?.osDisk?.name;
    if (!old && diskName !== undefined && view.find(diskId(id, diskName)) !== undefined) {
      throw refuse(
        "ConflictingUserInput",
        `Disk ${diskName} already exists in resource group ${id.group?.toUpperCase()}. Only CreateOption.Attach is supported.`,
      );
    }
    return completeMachine(put, view);
  },

  commit(resource, ledger, now, old) {
    if (old === undefined) createOsDisk(resource, ledger, now);
    attachDataDisks(resource, old, ledger);
  },

  async run({ resource, old, ledger, machines }) {
    if (old !== undefined) await untilExtensionsEnd(resource, ledger);
    const machine = machineOf(resource, ledger);
    if (old !== undefined && old.body.provisioningState !== "Failed") {
      const isResized = sizeOf(old.body) !== sizeOf(resource.body);
      if (isResized && !machine.isOff) await machines.restart(machine);
      return;
    }
    try {
      await machines.create(machine);
    } catch (error) {
      throw new OperationFailed(
        200,
        "OSProvisioningInternalError",
        `OS Provisioning failed for VM '${machine.name}' due to an internal error: ${(error as Error).message}`,
      );
    }
  },

  failed(resource, ledger, now) {
    for (const nic of nicsOf(resource.body).flatMap(({ id }) => ledger.find(id) ?? [])) {
      reserve(nic, resource.id, now);
    }
  },

  // azure-powershell #13213 and arm-template-whatif #359
  shown(machine) {
    const { storageProfile } = machine.body;
    if (powerOf(machine) !== "deallocated" || storageProfile?.osDisk === undefined) return {};
    const { diskSizeGB: _, managedDisk, ...osDisk } = storageProfile.osDisk;
    const { storageAccountType: __, ...shownDisk } = managedDisk ?? {};
    return { storageProfile: { ...storageProfile, osDisk: { ...osDisk, managedDisk: shownDisk } } };
  },

  patched: ({ body }, sent) => {
    const { identity } = sent as MachineBody;
    return identity === undefined ? sent : { ...sent, identity: patchedIdentity(body, identity) };
  },

  toInputs(body) {
    const { identity } = body as MachineBody;
    if (identity?.userAssignedIdentities === undefined) return body;
    const userAssignedIdentities = identitiesOf(body as MachineBody);
    return { ...body, identity: { ...identity, userAssignedIdentities } };
  },

  deleted({ body }, ledger) {
    releaseDisks(body, ledger);
    for (const { id, deleteOption } of nicsOf(body)) {
      if (deleteOption === "Delete") ledger.remove(id);
    }
  },
};

/** Its agent reports to Azure what it makes of an update when it is done with an extension (custom-script-extension-linux #141). */
async function untilExtensionsEnd({ id }: Resource, view: View): Promise<void> {
  const extensions = () => view.children(id, `${machineType}/extensions`);
  while (extensions().some(isInFlight)) await pause(50);
}

const sizeOf = (body: MachineBody | undefined): string | undefined =>
  body?.hardwareProfile?.vmSize?.toLowerCase();

/** The VM as the implementation of machines gets it. */
export function machineOf(machine: Resource<MachineBody>, view: View): VirtualMachine {
  const { id, body, hidden } = machine;
  const nics = nicsOf(body);
  const primary = nics.find((nic) => nic.primary) ?? nics[0];
  const nic = (primary && view.find(primary.id)?.body) as NetworkInterfaceBody | undefined;
  const configurations = nic?.ipConfigurations ?? [];
  const { name, group = "", subscription } = parseId(id)!;
  return {
    id,
    name,
    vmId: body.vmId!,
    zone: body.zones?.[0],
    location: body.location,
    size: body.hardwareProfile?.vmSize ?? "",
    isOff: powerOf(machine) !== "running",
    resourceGroup: group,
    subscriptionId: subscription,
    customData: hidden["customData"] as string | undefined,
    privateAddress:
      (configurations.find((one) => one.primary) ?? configurations[0])?.privateIPAddress ?? "",
    image: imageName(body.storageProfile?.imageReference ?? {}),
    identities: (body.identity?.type === "None" ? [] : identitiesOf(body)).map((resourceId) => {
      const { principalId, clientId } = view.find(resourceId)?.body ?? {};
      return { resourceId, principalId: String(principalId), clientId: String(clientId) };
    }),
  };
}

export const isMachine = (resource: Resource): resource is Resource<MachineBody> =>
  resource.type === machineType;

/** Azure's name for an OS disk that the request does not name. */
const generatedDiskName = ({ name }: ArmId) =>
  `${name}_OsDisk_1_${randomUUID().replaceAll("-", "")}`;

/** The body with defaults, and the values that GET does not return. */
function completeMachine(
  { id, body, old, now }: Put<MachineBody>,
  view: View,
): Accepted<MachineBody> {
  const storage = body.storageProfile!;
  const before = old?.body.storageProfile;
  const diskName = storage.osDisk?.name ?? before?.osDisk?.name ?? generatedDiskName(id);
  // The password is not stored. customData is, since machines boot with it.
  const { customData, adminPassword: _, ...osProfile } = body.osProfile ?? {};
  const image = imageOf(storage.imageReference!, body.location, view, old);
  const filled: Body = withoutUndefined({
    ...body,
    ...spotDefaults(body, old?.body),
    vmId: old?.body.vmId ?? randomUUID(),
    timeCreated: old?.body.timeCreated ?? now.toISOString(),
    // A PUT without an identity leaves it unchanged.
    identity: body.identity === undefined ? old?.body.identity : shownIdentity(id.id, body, view),
    osProfile: {
      allowExtensionOperations: osProfile.linuxConfiguration?.provisionVMAgent !== false,
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
      imageReference: { ...storage.imageReference, exactVersion: image.exactVersion },
      osDisk: {
        caching: "ReadWrite",
        diskSizeGB: before?.osDisk?.diskSizeGB ?? image.sizeGb ?? marketplaceGb,
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
      // A PUT without dataDisks leaves them unchanged.
      dataDisks: (storage.dataDisks ?? before?.dataDisks ?? []).filter(
        ({ toBeDetached }) => !toBeDetached,
      ),
    },
  });
  return {
    body: filled as MachineBody,
    hidden: { ...old?.hidden, image, ...(customData !== undefined && { customData }) },
  };
}

const diskId = ({ subscription, group }: ArmId, name: string): string =>
  `/subscriptions/${subscription}/resourceGroups/${group}/providers/${diskType}/${name}`;

/** Creates the OS disk resource of a new machine, whose tags it gets once (terraform-provider-azurerm #8162). */
function createOsDisk({ id, body }: Resource<MachineBody>, ledger: Ledger, now: Date): void {
  const { managedDisk, diskSizeGB, osType } = body.storageProfile!.osDisk!;
  const sku = managedDisk!.storageAccountType!;
  const diskEncryptionSetId = managedDisk!.diskEncryptionSet?.id;
  ledger.put({
    id: managedDisk!.id!,
    type: diskType,
    hidden: {},
    changed: now.toISOString(),
    body: withoutUndefined({
      location: body.location,
      tags: body.tags,
      zones: body.zones,
      sku: { name: sku, tier: sku.split("_")[0] },
      creationData: { createOption: "FromImage" },
      encryption: encryptionBy({ diskEncryptionSetId }, ledger) ?? withPlatformKey,
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

function attachDataDisks(
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

/** Deletes or detaches the disks of a deleted machine. */
function releaseDisks({ storageProfile }: MachineBody, ledger: Ledger): void {
  const { osDisk, dataDisks = [] } = storageProfile ?? {};
  for (const { managedDisk, deleteOption } of [...(osDisk ? [osDisk] : []), ...dataDisks]) {
    const disk = managedDisk?.id === undefined ? undefined : ledger.find(managedDisk.id);
    if (disk === undefined) continue;
    if (deleteOption === "Delete") ledger.remove(disk.id);
    else detach(disk);
  }
}

type Identity = NonNullable<MachineBody["identity"]>;

const isSystemAssigned = ({ type = "" }: Identity): boolean => /SystemAssigned/i.test(type);
const isUserAssigned = ({ type = "" }: Identity): boolean => /UserAssigned/i.test(type);

/** The SDK sends a list of ids; Azure returns a map from id to principal and client id. */
function identitiesOf({ identity }: MachineBody): string[] {
  const identities = identity?.userAssignedIdentities ?? [];
  return Array.isArray(identities) ? identities : Object.keys(identities);
}

/** An identity as Azure shows it; its own of the machine has the same principal for ever. */
function shownIdentity(id: string, body: MachineBody, view: View): Identity | undefined {
  const { identity } = body;
  if (identity === undefined || identity.type === "None") return undefined;
  const ids = identitiesOf(body);
  return withoutUndefined({
    type: identity.type,
    ...(isSystemAssigned(identity) && {
      principalId: principalOf(id),
      tenantId: account.tenantId,
    }),
    userAssignedIdentities: ids.length === 0 ? undefined : identityMap(ids, view),
  });
}

/**
 * What a PATCH makes of an identity: user-assigned ones are added to those that the machine has, null
 * takes one away, and a type without `UserAssigned` takes all away.
 */
function patchedIdentity(before: MachineBody, sent: Identity): Identity {
  if (!isUserAssigned(sent)) return { type: sent.type };
  const given = sent.userAssignedIdentities ?? {};
  const changes = Array.isArray(given)
    ? given.map((id) => [id, {}] as const)
    : Object.entries(given);
  const isNamed = (id: string) => changes.some(([other]) => keyOf(other) === keyOf(id));
  return {
    type: sent.type,
    userAssignedIdentities: [
      ...identitiesOf(before).filter((id) => !isNamed(id)),
      ...changes.filter(([, value]) => value !== null).map(([id]) => id),
    ],
  };
}

const identityMap = (ids: readonly string[], view: View): Record<string, object> =>
  Object.fromEntries(
    ids.map((id) => {
      const { principalId, clientId } = view.find(id)?.body ?? {};
      return [id, { principalId, clientId }];
    }),
  );

const principalOf = (id: string): string =>
  createHash("sha256")
    .update(keyOf(id))
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-4$3-8$4-$5");
