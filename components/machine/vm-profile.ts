import type * as compute from "@pulumi/azure-native/compute";

import type { Settings } from "../settings/settings";

/** How a machine is called, and who may log in to it. */
export const osProfileOf = (
  { adminUsername, sshPublicKey }: Pick<Settings, "adminUsername" | "sshPublicKey">,
  computerName: string,
  customData: string,
) => ({
  computerName,
  adminUsername,
  customData,
  linuxConfiguration: {
    disablePasswordAuthentication: true,
    provisionVMAgent: true,
    ssh: {
      publicKeys: [{ path: `/home/${adminUsername}/.ssh/authorized_keys`, keyData: sshPublicKey }],
    },
  },
});

/** The extension by which Azure has a machine run a script, once. */
export const customScript = {
  publisher: "Microsoft.Azure.Extensions",
  type: "CustomScript",
  typeHandlerVersion: "2.1",
  autoUpgradeMinorVersion: true,
} as const;

/** Secure boot lets only the distribution's signed kernel modules in; ip_vs is one of them. */
export const securityProfileOf = ({ encryptionAtHost }: Pick<Settings, "encryptionAtHost">) =>
  ({
    securityType: "TrustedLaunch",
    uefiSettings: { secureBootEnabled: true, vTpmEnabled: true },
    // Without the feature Azure refuses a false one, too (Azure/ResourceModules#1242).
    ...(encryptionAtHost && { encryptionAtHost }),
  }) as const satisfies compute.VirtualMachineArgs["securityProfile"];
