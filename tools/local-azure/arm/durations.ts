type Operation = "create" | "update" | "delete";

type Seconds = Readonly<Record<Operation, number>>;

/**
 * How long Azure takes, in seconds, from published measurements. An extension is what the agent
 * needs besides the script. An image version is what its copy to another region is
 * said to take. There are no figures for rules, peerings, federated credentials, role definitions, storage, registries, disk encryption sets and
 * private DNS: they have those of similar types.
 */
const measured: Readonly<Record<string, Seconds>> = {
  "microsoft.resources/resourcegroups": { create: 2, update: 1, delete: 60 },
  "microsoft.network/virtualnetworks": { create: 7, update: 5, delete: 11 },
  "microsoft.network/virtualnetworks/subnets": { create: 5, update: 5, delete: 9 },
  "microsoft.network/virtualnetworks/virtualnetworkpeerings": { create: 5, update: 5, delete: 9 },
  "microsoft.network/networksecuritygroups": { create: 5, update: 3, delete: 11 },
  "microsoft.network/networksecuritygroups/securityrules": { create: 4, update: 4, delete: 5 },
  "microsoft.network/routetables": { create: 5, update: 3, delete: 11 },
  "microsoft.network/publicipaddresses": { create: 4, update: 3, delete: 15 },
  "microsoft.network/natgateways": { create: 13, update: 7, delete: 15 },
  "microsoft.network/loadbalancers": { create: 6, update: 5, delete: 12 },
  "microsoft.network/privatednszones": { create: 30, update: 5, delete: 30 },
  "microsoft.network/privatednszones/a": { create: 2, update: 2, delete: 2 },
  "microsoft.network/privatednszones/virtualnetworklinks": { create: 30, update: 5, delete: 30 },
  "microsoft.network/networkinterfaces": { create: 3, update: 3, delete: 9 },
  "microsoft.compute/disks": { create: 6, update: 4, delete: 11 },
  "microsoft.compute/diskencryptionsets": { create: 6, update: 4, delete: 11 },
  "microsoft.compute/galleries": { create: 6, update: 4, delete: 11 },
  "microsoft.compute/galleries/images": { create: 6, update: 4, delete: 11 },
  "microsoft.compute/galleries/images/versions": { create: 600, update: 60, delete: 30 },
  "microsoft.compute/snapshots": { create: 6, update: 4, delete: 11 },
  "microsoft.compute/virtualmachines": { create: 40, update: 30, delete: 35 },
  "microsoft.compute/virtualmachines/extensions": { create: 20, update: 10, delete: 5 },
  "microsoft.storage/storageaccounts": { create: 20, update: 3, delete: 5 },
  "microsoft.storage/storageaccounts/blobservices": { create: 1, update: 1, delete: 1 },
  "microsoft.storage/storageaccounts/blobservices/containers": { create: 1, update: 1, delete: 1 },
  "microsoft.containerregistry/registries": { create: 10, update: 3, delete: 5 },
  "microsoft.managedidentity/userassignedidentities": { create: 3, update: 2, delete: 2 },
  "microsoft.managedidentity/userassignedidentities/federatedidentitycredentials": {
    create: 2,
    update: 2,
    delete: 2,
  },
  "microsoft.authorization/roleassignments": { create: 2, update: 2, delete: 4 },
  "microsoft.authorization/roledefinitions": { create: 2, update: 2, delete: 4 },
};

export interface Pace {
  /** Operations take this share of Azure's time; 0 is off. */
  readonly factor: number;
  /** Seconds by ARM type, instead of the measured ones. */
  readonly seconds?: Readonly<Record<string, Partial<Seconds>>>;
}

export class Durations {
  private pace: Pace;

  constructor(pace: Pace = { factor: 0 }) {
    this.pace = checked(pace);
  }

  set(pace: Pace): void {
    this.pace = checked(pace);
  }

  get factor(): number {
    return this.pace.factor;
  }

  milliseconds(type: string, operation: Operation): number {
    const own = Object.entries(this.pace.seconds ?? {}).find(
      ([name]) => name.toLowerCase() === type.toLowerCase(),
    )?.[1];
    const seconds = own?.[operation] ?? measured[type.toLowerCase()]?.[operation] ?? 0;
    return seconds * 1000 * this.pace.factor;
  }
}

function checked(pace: Pace): Pace {
  if (!Number.isFinite(pace.factor) || pace.factor < 0) {
    throw new Error(
      `durations have the factor ${String(pace.factor)}; expected a number from 0 (off) to 1 (as long as on Azure), or more`,
    );
  }
  return pace;
}

export interface Clock {
  now(): Date;
  sleep(milliseconds: number): Promise<void>;
}

export const wallClock: Clock = {
  now: () => new Date(),
  sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};
