import { conflict, invalidParameter, refuse } from "../azure-error";
import { findImage } from "../images";
import { ArmId } from "../ids";
import { findSize, isOffered } from "../skus";
import { MachineBody, nicsOf } from "./virtual-machine-body";

/** 64 KiB, in base64. */
const maxCustomData = 87_380;

const missing = (parameter: string) =>
  invalidParameter(`Required parameter '${parameter}' is missing (null).`, parameter);

/** What Azure minds about a machine, whether new or not. Sizes come first, as Azure checks them first. */
export function checkMachine(body: MachineBody, id: ArmId, isResized: boolean): void {
  if (body.hardwareProfile?.vmSize === undefined) throw missing("hardwareProfile.vmSize");
  if (isResized) checkSize(body.hardwareProfile.vmSize, body, id);
  const { storageProfile, osProfile } = body;
  if (storageProfile?.imageReference === undefined) throw missing("storageProfile.imageReference");
  if (storageProfile.osDisk === undefined) throw missing("storageProfile.osDisk");
  if (storageProfile.osDisk.createOption === undefined)
    throw missing("storageProfile.osDisk.createOption");
  if (nicsOf(body).length === 0) throw missing("networkProfile.networkInterfaces");
  if (osProfile === undefined) throw missing("osProfile");
  checkOsProfile(body, id);
  checkImageFits(body);
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
  if (!adminUsername) throw missing("osProfile.adminUsername");
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
  const home = `/home/${adminUsername}/.ssh/authorized_keys`;
  for (const { path, keyData } of keys) {
    if (path !== home) {
      throw invalidParameter(
        `Destination path for Ssh public keys is currently limited to its default value ${home} due to a known issue in Linux provisioning agent.`,
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

function checkImageFits({ hardwareProfile, storageProfile, securityProfile }: MachineBody): void {
  const size = findSize(hardwareProfile?.vmSize ?? "")!;
  const image = findImage(storageProfile!.imageReference!);
  const architecture = size.architecture ?? "x64";
  if (image.architecture !== architecture) {
    throw refuse(
      "BadRequest",
      `Cannot create a VM of size '${size.name}' because this VM size only supports a CPU Architecture of '${architecture}', ` +
        `but an image or disk with CPU Architecture '${image.architecture}' was given. Please check that the CPU Architecture of the image ` +
        "or disk is compatible with that of the VM size.",
    );
  }
  if (!(size.generations ?? "V1,V2").includes(image.generation)) {
    throw refuse(
      "BadRequest",
      `The selected VM size '${size.name}' cannot boot Hypervisor Generation '${image.generation.slice(1)}'. ` +
        "If this was a Create operation please check that the Hypervisor Generation of the Image matches the Hypervisor Generation of the selected VM Size.",
    );
  }
  const trusted = securityProfile?.securityType === "TrustedLaunch";
  if (trusted && (image.generation !== "V2" || size.trustedLaunch === false)) {
    throw refuse(
      "BadRequest",
      "Use of TrustedLaunch setting is not supported for the provided image or VM size. Please use Gen2 ones.",
    );
  }
  if (securityProfile?.encryptionAtHost) {
    throw invalidParameter(
      "The property 'securityProfile.encryptionAtHost' is not valid because the 'Microsoft.Compute/EncryptionAtHost' feature is not enabled for this subscription.",
      "securityProfile.encryptionAtHost",
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
