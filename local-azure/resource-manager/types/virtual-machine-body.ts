import { ImageReference } from "../images";

export interface MachineDisk {
  readonly name?: string;
  readonly lun?: number;
  readonly caching?: string;
  readonly createOption?: string;
  readonly deleteOption?: string;
  readonly diskSizeGB?: number;
  readonly osType?: string;
  readonly managedDisk?: { readonly id?: string; readonly storageAccountType?: string };
}

interface OsProfile {
  readonly computerName?: string;
  readonly adminUsername?: string;
  readonly adminPassword?: string;
  readonly customData?: string;
  readonly linuxConfiguration?: {
    readonly disablePasswordAuthentication?: boolean;
    readonly ssh?: {
      readonly publicKeys?: readonly { readonly path?: string; readonly keyData?: string }[];
    };
  };
}

export type MachineBody = {
  location: string;
  zones?: string[];
  hardwareProfile?: { vmSize?: string };
  storageProfile?: {
    imageReference?: ImageReference;
    osDisk?: MachineDisk;
    dataDisks?: MachineDisk[];
  };
  osProfile?: OsProfile;
  networkProfile?: {
    networkInterfaces?: { id?: string; primary?: boolean; deleteOption?: string }[];
  };
  identity?: { type?: string; userAssignedIdentities?: string[] | Record<string, object> };
  securityProfile?: { securityType?: string; encryptionAtHost?: boolean };
  availabilitySet?: { id?: string };
  priority?: string;
  provisioningState?: string;
  vmId?: string;
  timeCreated?: string;
};

export const nicsOf = ({ networkProfile }: MachineBody) =>
  (networkProfile?.networkInterfaces ?? []).flatMap(({ id, ...rest }) =>
    id === undefined ? [] : [{ id, ...rest }],
  );
