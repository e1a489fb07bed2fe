import { isDeepStrictEqual } from "node:util";

import {
  badRequest,
  conflict,
  invalidParameter,
  missingParameter,
  operationNotAllowed,
  propertyChangeNotAllowed,
  refuse,
} from "../../azure-error";
import { ArmId, keyOf, Resource, View } from "../../resources/resource";
import { isRegistered } from "../../subscription/providers";
import {
  diskControllersOf,
  findSize,
  type ImageReference,
  isInEveryZone,
  isOffered,
  mostDataDisks,
  sizesOf,
} from "../../subscription/offers";
import { NetworkInterfaceBody } from "../network/network-interface";
import { PublicIpBody } from "../network/public-ip-address";
import { DiskBody } from "./disk";
import { imageOf, type MachineImage, marketplaceGb } from "./gallery";
import { powerOf } from "./power";

interface MachineDisk {
  readonly name?: string;
  readonly lun?: number;
  readonly caching?: string;
  readonly createOption?: string;
  readonly deleteOption?: string;
  readonly diskSizeGB?: number;
  readonly osType?: string;
  readonly diffDiskSettings?: { readonly option?: string; readonly placement?: string };
  readonly managedDisk?: {
    readonly id?: string;
    readonly storageAccountType?: string;
    readonly diskEncryptionSet?: { readonly id?: string };
  };
  /** Of a data disk: the request detaches it. */
  readonly toBeDetached?: boolean;
}

interface OsProfile {
  readonly computerName?: string;
  readonly adminUsername?: string;
  readonly adminPassword?: string;
  readonly customData?: string;
  readonly allowExtensionOperations?: boolean;
  readonly linuxConfiguration?: {
    readonly provisionVMAgent?: boolean;
    readonly disablePasswordAuthentication?: boolean;
    readonly ssh?: {
      readonly publicKeys?: readonly { readonly path?: string; readonly keyData?: string }[];
    };
  };
}

export type MachineBody = {
  location: string;
  tags?: Record<string, string>;
  zones?: string[];
  hardwareProfile?: { vmSize?: string };
  storageProfile?: {
    imageReference?: ImageReference;
    osDisk?: MachineDisk;
    diskControllerType?: string;
    dataDisks?: MachineDisk[];
  };
  osProfile?: OsProfile;
  networkProfile?: {
    networkInterfaces?: { id?: string; primary?: boolean; deleteOption?: string }[];
  };
  identity?: { type?: string; userAssignedIdentities?: string[] | Record<string, object | null> };
  securityProfile?: { securityType?: string; encryptionAtHost?: boolean };
  availabilitySet?: { id?: string };
  priority?: string;
  evictionPolicy?: string;
  billingProfile?: { maxPrice?: number };
  scheduledEventsProfile?: {
    terminateNotificationProfile?: { enable?: boolean; notBeforeTimeout?: string };
  };
  provisioningState?: string;
  vmId?: string;
  timeCreated?: string;
};

export const nicsOf = ({ networkProfile }: MachineBody) =>
  (networkProfile?.networkInterfaces ?? []).flatMap(({ id, ...rest }) =>
    id === undefined ? [] : [{ id, ...rest }],
  );

/** 64 KiB in base64. */
const maxCustomData = 87_380;

/**
 * Validates the body of a new or changed machine. The size comes first, as on Azure.
 */
export function checkMachine(
  body: MachineBody,
  old: Resource<MachineBody> | undefined,
  id: ArmId,
  view: View,
  isResized: boolean,
): void {
  if (body.hardwareProfile?.vmSize === undefined) throw missingParameter("hardwareProfile.vmSize");
  if (isResized) checkSize(body.hardwareProfile.vmSize, body, id);
  const { storageProfile, osProfile } = body;
  if (storageProfile?.imageReference === undefined)
    throw missingParameter("storageProfile.imageReference");
  if (storageProfile.osDisk === undefined) throw missingParameter("storageProfile.osDisk");
  if (storageProfile.osDisk.createOption === undefined)
    throw missingParameter("storageProfile.osDisk.createOption");
  if (nicsOf(body).length === 0) throw missingParameter("networkProfile.networkInterfaces");
  if (osProfile === undefined) throw missingParameter("osProfile");
  checkOsProfile(body, id);
  const image = imageOf(storageProfile.imageReference, body.location, view, old);
  checkImageFits(body, image);
  if (old === undefined) {
    checkDiskHolds(body, image);
    checkAgent(osProfile);
  }
  if (isResized) checkDiskController(body, image);
  noticeOfEnd(body);
}

/** hashicorp/terraform-provider-azurerm #8001; of a machine that exists, somebody may have installed the agent. */
function checkAgent({ allowExtensionOperations, linuxConfiguration }: OsProfile): void {
  if (!allowExtensionOperations || linuxConfiguration?.provisionVMAgent !== false) return;
  throw invalidParameter(
    "The value of parameter allowExtensionOperations is invalid.",
    "allowExtensionOperations",
  );
}

/** Azure/avdaccelerator #523 has the refusal. */
function checkDiskHolds(
  { storageProfile }: MachineBody,
  { sizeGb = marketplaceGb }: MachineImage,
): void {
  const { diskSizeGB = sizeGb } = storageProfile!.osDisk!;
  if (diskSizeGB >= sizeGb) return;
  throw operationNotAllowed(
    `The specified disk size ${diskSizeGB} GB is smaller than the size of the corresponding disk in the VM image: ${sizeGb} GB. ` +
      "This is not allowed. Please choose equal or greater size or do not specify an explicit size.",
    "osDisk.diskSizeGB",
  );
}

const skuApi =
  "Please query sku api at https://aka.ms/azure-compute-skus  to determine supported disk controller types for the VM size.";

/** Where a request names none, that is SCSI (kubermatic/machine-controller #1980). */
function checkDiskController(
  { hardwareProfile, storageProfile }: MachineBody,
  image: MachineImage,
): void {
  const size = findSize(hardwareProfile?.vmSize ?? "")!;
  const ofSize = size.diskControllers ?? "SCSI";
  const ofImage = diskControllersOf(image);
  if (!ofImage.includes(ofSize)) {
    throw invalidParameter(
      `The VM size '${size.name}' cannot boot with OS image or disk. Please check that disk controller types supported by the OS image ` +
        `or disk is one of the supported disk controller types for the VM size '${size.name}'. ${skuApi}`,
      "vmSize",
    );
  }
  const wanted = storageProfile?.diskControllerType ?? "SCSI";
  if (wanted === ofSize) return;
  throw invalidParameter(
    `The VM size '${size.name}' cannot boot with DiskControllerType '${wanted}'. Please check that the disk controller type provided is one ` +
      `of the supported disk controller types for the VM size '${size.name}'. ${skuApi}`,
    "storageProfile.diskControllerType",
  );
}

/** Seconds before its end of which a machine is told; undefined where it is told nothing. */
export function noticeOfEnd({ scheduledEventsProfile }: MachineBody): number | undefined {
  const { enable, notBeforeTimeout = "PT5M" } =
    scheduledEventsProfile?.terminateNotificationProfile ?? {};
  const [, minutes] = /^PT(\d+)M$/.exec(notBeforeTimeout) ?? [];
  if (minutes === undefined || Number(minutes) < 5 || Number(minutes) > 15) {
    throw invalidParameter(
      `The value '${notBeforeTimeout}' of parameter 'terminateNotificationProfile.notBeforeTimeout' is invalid: it has to be from PT5M to PT15M.`,
      "terminateNotificationProfile.notBeforeTimeout",
    );
  }
  return enable === true ? Number(minutes) * 60 : undefined;
}

function checkSize(size: string, { location, zones }: MachineBody, id: ArmId): void {
  if (findSize(size) === undefined) {
    throw invalidParameter(
      `The value ${size} provided for the VM size is not valid. The valid sizes in the current region are listed by Microsoft.Compute/skus.`,
      "vmSize",
    );
  }
  const zone = zones?.[0];
  if (isOffered(size, location, zone)) return;
  throw conflict(
    "SkuNotAvailable",
    `The requested VM size for resource '${id.id}' is currently not available in location '${location}'` +
      `${zone === undefined ? "" : ` zones '${zone}'`} for subscription '${id.subscription}'. ` +
      "Please try another size or deploy to a different location or zones. See https://aka.ms/azureskunotavailable for details.",
  );
}

function checkOsProfile({ osProfile = {} }: MachineBody, id: ArmId): void {
  const {
    customData,
    adminUsername,
    adminPassword,
    linuxConfiguration,
    computerName = id.name,
  } = osProfile;
  if (customData !== undefined) {
    const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(customData) && customData.length % 4 === 0;
    if (!isBase64 || customData.length > maxCustomData) {
      throw invalidParameter(
        `Custom data in OSProfile must be in Base64 encoding and with a maximum length of ${maxCustomData} characters.`,
        "osProfile.customData",
      );
    }
  }
  if (!adminUsername) throw missingParameter("osProfile.adminUsername");
  if (
    ["admin", "administrator", "root", "user", "test", "guest"].includes(
      adminUsername.toLowerCase(),
    )
  ) {
    throw invalidParameter(
      "The Admin Username specified is not allowed. For more information about disallowed usernames, see https://aka.ms/vmosprofile",
      "adminUsername",
    );
  }
  const keys = linuxConfiguration?.ssh?.publicKeys ?? [];
  if (
    keys.length === 0 &&
    (adminPassword === undefined || linuxConfiguration?.disablePasswordAuthentication)
  ) {
    throw invalidParameter(
      "Authentication using either SSH or by user name and password must be enabled in Linux profile.",
      "linuxConfiguration",
    );
  }
  const authorizedKeys = `/home/${adminUsername}/.ssh/authorized_keys`;
  for (const { path, keyData } of keys) {
    if (path !== authorizedKeys) {
      throw invalidParameter(
        `Destination path for Ssh public keys is currently limited to its default value ${authorizedKeys} due to a known issue in Linux provisioning agent.`,
        "linuxConfiguration.ssh.publicKeys.path",
      );
    }
    if (!/^(ssh-rsa|ssh-ed25519) [A-Za-z0-9+/=]+/.test(keyData ?? "")) {
      throw invalidParameter(
        "The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.",
        "linuxConfiguration.ssh.publicKeys.keyData",
      );
    }
  }
  if (computerName.length > 64 || !/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(computerName)) {
    throw invalidParameter(
      "Linux host name cannot exceed 64 characters in length or contain the following characters: " +
        "` ~ ! @ # $ % ^ & * ( ) = + _ [ ] { } \\ | ; : ' \" , < > / ?.",
      "osProfile.computerName",
    );
  }
}

function checkImageFits(
  { hardwareProfile, storageProfile, securityProfile }: MachineBody,
  image: MachineImage,
): void {
  const size = findSize(hardwareProfile?.vmSize ?? "")!;
  const architecture = size.architecture ?? "x64";
  if (image.architecture !== architecture) {
    throw badRequest(
      `Cannot create a VM of size '${size.name}' because this VM size only supports a CPU Architecture of '${architecture}', ` +
        `but an image or disk with CPU Architecture '${image.architecture}' was given. Please check that the CPU Architecture of the image ` +
        "or disk is compatible with that of the VM size.",
    );
  }
  if (!(size.generations ?? "V1,V2").includes(image.generation)) {
    throw badRequest(
      `The selected VM size '${size.name}' cannot boot Hypervisor Generation '${image.generation.slice(1)}'. ` +
        "If this was a Create operation please check that the Hypervisor Generation of the Image matches the Hypervisor Generation of the selected VM Size.",
    );
  }
  checkSecurityFits(image, securityProfile?.securityType);
  const isTrustedLaunch = securityProfile?.securityType === "TrustedLaunch";
  if (isTrustedLaunch && (image.generation !== "V2" || size.trustedLaunch === false)) {
    throw badRequest(
      "Use of TrustedLaunch setting is not supported for the provided image or VM size. Please use Gen2 ones.",
    );
  }
  // The words are those for a machine that is to be confidential, and whose size is not (cloud-api-adaptor#1742).
  if (isTrustedLaunch && size.confidential) {
    throw badRequest(
      `The VM size '${size.name}' is not supported for creation of VMs and Virtual Machine Scale Set with 'TrustedLaunch' security type.`,
    );
  }
  const { managedDisk, name = "osDisk" } = storageProfile!.osDisk!;
  if (managedDisk?.storageAccountType?.startsWith("Premium") && size.premium === false) {
    throw invalidParameter(
      `Requested operation cannot be performed because the VM size ${size.name} does not support the storage account type ` +
        `${managedDisk.storageAccountType} of disk '${name}'. Consider updating the VM to a size that supports Premium storage.`,
    );
  }
}

/** hashicorp/terraform-provider-azurerm #23148; a platform image says nothing of it. */
function checkSecurityFits({ securityType: ofImage }: MachineImage, wanted: string | undefined) {
  if (ofImage === "TrustedLaunch" && wanted !== "TrustedLaunch") {
    throw badRequest(
      "The provided gallery image only supports creation of VMs and VM Scale Sets with 'TrustedLaunch' security type.",
    );
  }
  if (ofImage === undefined || ofImage.startsWith("TrustedLaunch")) return;
  if (wanted !== "TrustedLaunch") return;
  throw badRequest(
    "Use of TrustedLaunch setting is not supported for the provided image. Please select Trusted Launch Supported Gen2 OS Image.",
  );
}

/**
 * Throws when hosts cannot encrypt this machine. Without the feature Azure refuses a false one, too
 * (Azure/ResourceModules#1242). The message of sizes is that of AKS, which knows the refusal by a code of its
 * own; that of running machines is in terraform-provider-azurerm.
 */
export function checkEncryptionAtHost(
  body: MachineBody,
  old: Resource<MachineBody> | undefined,
  view: View,
): void {
  const target = "securityProfile.encryptionAtHost";
  const wanted = body.securityProfile?.encryptionAtHost;
  if (wanted === undefined) return;
  if (!isRegistered("Microsoft.Compute/EncryptionAtHost", view)) {
    throw invalidParameter(
      `The property '${target}' is not valid because the 'Microsoft.Compute/EncryptionAtHost' feature is not enabled for this subscription.`,
      target,
    );
  }
  const size = findSize(body.hardwareProfile?.vmSize ?? "");
  if (wanted && size?.encryptionAtHost === false) {
    throw invalidParameter(
      `The Virtual Machine size ${size.name} does not support EncryptionAtHost.`,
      target,
    );
  }
  const before = old?.body.securityProfile?.encryptionAtHost ?? false;
  if (old !== undefined && wanted !== before && powerOf(old) !== "deallocated") {
    throw operationNotAllowed(
      `'${target}' can be updated only when VM is in deallocated state.`,
      target,
    );
  }
}

/** The sets that the disks of a machine name. */
export const setsOf = ({ storageProfile: { osDisk, dataDisks = [] } = {} }: MachineBody) =>
  [osDisk, ...dataDisks].flatMap((disk) => disk?.managedDisk?.diskEncryptionSet?.id ?? []);

export function checkNics(body: MachineBody, id: ArmId, view: View): void {
  const nics = nicsOf(body);
  if (nics.length > 1 && nics.filter(({ primary }) => primary).length !== 1) {
    throw refuse(
      "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
      `Virtual machine ${id.id} must have one network interface set as the primary.`,
    );
  }
  for (const { id: nic } of nics) {
    const other = view.referrers(nic).find(({ owner }) => keyOf(owner) !== id.key);
    if (other) {
      throw refuse(
        "NicInUse",
        `Network Interface ${nic} is used by existing resource ${other.owner}. In order to use the network interface, it must be dissociated from the resource.`,
      );
    }
    const found = view.find(nic)?.body as NetworkInterfaceBody | undefined;
    const size = body.hardwareProfile?.vmSize ?? "";
    if (found?.enableAcceleratedNetworking && findSize(size)?.acceleratedNetworking === false) {
      throw refuse(
        "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
        `Virtual Machine size ${size} is not in the allowed list of VM sizes for accelerated networking to be enabled on Network Interface ${id.id}.`,
      );
    }
    const configurations = found?.ipConfigurations ?? [];
    for (const { publicIPAddress } of configurations) {
      if (publicIPAddress?.id === undefined || body.zones === undefined) continue;
      const zones = (view.find(publicIPAddress.id)?.body as PublicIpBody | undefined)?.zones ?? [];
      if (zones.includes(body.zones[0] ?? "")) continue;
      throw refuse(
        "ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint",
        `Compute resource ${id.id} has a zone constraint ${body.zones[0]} but the PublicIPAddress ${publicIPAddress.id} used by the compute resource ` +
          `via NetworkInterface or LoadBalancer has a different zone constraint ${zones.length > 0 ? zones.join(", ") : "Regional"}.`,
      );
    }
  }
}

/** Throws when a machine that has hardware would get a size of other hardware. */
export function checkHardware(body: MachineBody, old: MachineBody, { name }: ArmId): void {
  const wanted = body.hardwareProfile!.vmSize!;
  const sizes = sizesOf(old.hardwareProfile?.vmSize ?? "", true).map((one) => one.name);
  if (sizes.some((one) => one.toLowerCase() === wanted.toLowerCase())) return;
  throw operationNotAllowed(
    `Unable to resize the VM '${name}' because the requested size ${wanted} is not available in the current hardware cluster. ` +
      `The available sizes are: ${sizes.join(",")}. Read more on VM resizing strategy at https://aka.ms/azure-resizevm.`,
    "vmSize",
  );
}

/** Throws when a PUT changes an immutable property. A property that is left out is unchanged. */
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
  const immutable: [string, unknown, unknown][] = [
    ["zones", body.zones ?? [], old.zones ?? []],
    ["osProfile.customData", wanted.customData, hidden["customData"]],
    ["osProfile.computerName", wanted.computerName, old.osProfile?.computerName],
    ["osProfile.adminUsername", wanted.adminUsername, old.osProfile?.adminUsername],
    ["linuxConfiguration.ssh.publicKeys", keys(body), keys(old)],
    ["imageReference", image(body), image(old)],
    ["osDisk.name", disk?.name, oldDisk?.name],
    ["osDisk.createOption", disk?.createOption, oldDisk?.createOption],
    ...(
      [
        ["disablePasswordAuthentication", false],
        ["provisionVMAgent", true],
      ] as const
    ).map(([property, byDefault]): [string, unknown, unknown] => [
      `linuxConfiguration.${property}`,
      wanted.linuxConfiguration?.[property],
      old.osProfile?.linuxConfiguration?.[property] ?? byDefault,
    ]),
    [
      "osDisk.managedDisk.storageAccountType",
      disk?.managedDisk?.storageAccountType,
      oldDisk?.managedDisk?.storageAccountType,
    ],
    [
      "osDisk.managedDisk.diskEncryptionSet.id",
      disk?.managedDisk?.diskEncryptionSet?.id?.toLowerCase(),
      oldDisk?.managedDisk?.diskEncryptionSet?.id?.toLowerCase(),
    ],
    [
      "securityProfile.securityType",
      body.securityProfile?.securityType,
      old.securityProfile?.securityType,
    ],
    ["availabilitySet", body.availabilitySet, old.availabilitySet],
    ["priority", body.priority, old.priority],
  ];
  for (const [path, next, before] of immutable) {
    if (next !== undefined && !isDeepStrictEqual(next, before))
      throw propertyChangeNotAllowed(path);
  }
  if (disk?.diskSizeGB !== undefined && disk.diskSizeGB !== oldDisk?.diskSizeGB) {
    throw operationNotAllowed(
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

export function checkDataDisks(
  disks: readonly MachineDisk[],
  id: ArmId,
  body: MachineBody,
  view: View,
): void {
  const luns = disks.map(({ lun }) => lun);
  const duplicate = luns.find((lun, position) => luns.indexOf(lun) !== position);
  if (duplicate !== undefined) {
    throw invalidParameter(`A disk at LUN ${duplicate} already exists.`, "dataDisk.lun");
  }
  for (const lun of luns) {
    if (lun === undefined) throw missingParameter("dataDisk.lun");
    if (lun >= 0 && lun <= 63) continue;
    throw invalidParameter(
      `The value '${lun}' of parameter 'dataDisk.lun' is out of range. Value '${lun}' must be between '0' and '63', inclusive.`,
      "dataDisk.lun",
    );
  }
  const ids = disks.flatMap(({ managedDisk }) => managedDisk?.id ?? []);
  const twice = ids.find((one, index) => ids.map(keyOf).indexOf(keyOf(one)) < index);
  if (twice !== undefined) {
    throw invalidParameter(`Disk '${twice}' is specified twice.`, "dataDisk.managedDisk.id");
  }
  const most = mostDataDisks(findSize(body.hardwareProfile?.vmSize ?? "")!);
  if (disks.filter(({ toBeDetached }) => !toBeDetached).length > most) {
    throw operationNotAllowed(
      `The maximum number of data disks allowed to be attached to a VM of this size is ${most}.`,
    );
  }
  for (const { managedDisk } of disks) {
    const disk = managedDisk?.id === undefined ? undefined : view.find(managedDisk.id);
    if (disk === undefined) continue;
    const { managedBy } = disk.body as DiskBody;
    const name = disk.id.split("/").at(-1);
    if (managedBy !== undefined && keyOf(managedBy) !== id.key) {
      throw conflict(
        "ConflictingUserInput",
        `Disk '${name}' cannot be attached as the disk is already owned by VM '${managedBy}'.`,
      );
    }
    checkZone(body.zones?.[0], disk as Resource<DiskBody>);
  }
}

/** A disk that is in every zone says so by its sku alone; any other goes to machines of its zone. */
function checkZone(machine: string | undefined, { id, body }: Resource<DiskBody>): void {
  const [zone] = body.zones ?? [];
  if (machine === undefined || machine === zone || isInEveryZone(body.sku?.name)) return;
  throw badRequest(
    `Disk ${id} cannot be attached to the VM because it is not in ` +
      (zone === undefined
        ? `zone '${machine}'.`
        : `the same zone as the VM. VM zone: '${machine}'. Disk zone: '${zone}'.`),
  );
}
