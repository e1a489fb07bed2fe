import type { LocalDisk, Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import type { AzureConnection } from "./resource-manager";
import { groupId } from "./resource-names";
import { type Shown, shownAs } from "./shown";
import { AzureState, computeVersion, MachineState } from "./state";

/** One entry of Azure's Microsoft.Compute/skus, as far as it is read here. */
export interface Sku {
  readonly resourceType: string;
  readonly name: string;
  /** Name of the vCPU quota that it counts against. */
  readonly family?: string;
  readonly locationInfo?: readonly {
    readonly location: string;
    readonly zones?: readonly string[];
  }[];
  readonly capabilities?: readonly { readonly name: string; readonly value: string }[];
  readonly restrictions?: readonly {
    readonly type: string;
    readonly reasonCode?: string;
    readonly restrictionInfo?: { readonly zones?: readonly string[] };
  }[];
}

interface Wanted {
  readonly location: string;
  readonly encryptionAtHost: boolean;
  /** What tells the operator to change the machine's size, without the value. */
  readonly command: (machine: MachinePlan) => string;
}

/**
 * What is wrong with the sizes of these machines, one sentence each, by what Azure offers this
 * subscription.
 *
 * Azure tells it only when the VM is created, which is after everything else was. It does not tell
 * quotas, policies or what is sold out at the moment.
 */
export function skuProblems(
  machines: readonly MachinePlan[],
  skus: readonly Sku[],
  { location, command, encryptionAtHost }: Wanted,
): string[] {
  const sizes = sizesIn(skus);
  return machines.flatMap((machine) => {
    const { name, size, zone } = machine;
    const sku = sizes.get(size.toLowerCase());
    const misfitsOf = (other: Sku) => misfits(other, machine, encryptionAtHost);
    const fix = () => {
      const fitting = [...sizes.values()].filter(
        (other) =>
          architectureOf(other) === architectureOf(sku) &&
          usableZones(other, location).includes(zone) &&
          misfitsOf(other).length === 0,
      );
      return `(${command(machine)} ${closest(size, fitting) ?? "SIZE"})`;
    };

    if (sku === undefined) {
      return [
        `${name}: size ${size} is not offered in ${location}; list what is: az vm list-skus -l ${location} ${fix()}`,
      ];
    }
    const zones = usableZones(sku, location);
    if (!zones.includes(zone)) {
      const reason = sku.restrictions?.find(({ reasonCode }) => reasonCode)?.reasonCode;
      return [
        `${name}: size ${size} is not available in zone ${zone} of ${location} for this subscription` +
          (reason === undefined ? "" : ` (${reason})`) +
          (zones.length > 0 ? `, only in zone ${zones.join(", ")}` : ", in no zone") +
          ` ${fix()}`,
      ];
    }
    return misfitsOf(sku).map((misfit) => `${name}: size ${size} ${misfit} ${fix()}`);
  });
}

/** Sizes by their name in lower case, which is how Azure compares them. */
export const sizesIn = (skus: readonly Sku[]): Map<string, Sku> =>
  new Map(
    skus
      .filter(({ resourceType }) => resourceType === "virtualMachines")
      .map((sku) => [sku.name.toLowerCase(), sku]),
  );

/** What Azure says of a size under this name, in lower case. */
export const capability = ({ capabilities }: Sku, key: string): string | undefined =>
  capabilities?.find(({ name }) => name === key)?.value.toLowerCase();

/** Azure takes a size in any case, and shows it as it was given. */
export const isSameSize = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase();

export const hasAcceleratedNetworking = (sku: Sku): boolean =>
  capability(sku, "AcceleratedNetworkingEnabled") === "true";

/** No setting names it: it is that of the size. */
export type Architecture = "x64" | "arm64";

/** x64 too of a size that Azure does not have. */
export const architectureOf = (sku: Sku | undefined): Architecture =>
  sku !== undefined && capability(sku, "CpuArchitectureType") === "arm64" ? "arm64" : "x64";

/** Whether disks are attached by NVMe, and by nothing else. */
export const isNvmeOnly = (sku: Sku): boolean => capability(sku, "DiskControllerTypes") === "nvme";

/**
 * Processors that a machine of this size has and its quota is charged with, 0 where Azure does not
 * say.
 */
export const processors = (sku: Sku | undefined): number =>
  Number((sku && capability(sku, "vCPUs")) ?? 0);

/**
 * kubeadm wants 1700 MB of a control plane; kubelet, runtime and add-ons leave a worker of 1 GB
 * nothing.
 */
const leastMemoryGb = 2;
const leastProcessors = { "control-plane": 2, worker: 1 } as const;

/** What keeps a machine of this program from running on a size, wherever it is offered. */
function misfits(sku: Sku, machine: MachinePlan, encryptionAtHost: boolean): string[] {
  const { role, osDiskSku, spot } = machine;
  const memory = Number(capability(sku, "MemoryGB") ?? leastMemoryGb);
  const available = capability(sku, "vCPUsAvailable") ?? capability(sku, "vCPUs");
  const least = leastProcessors[role];
  const isGeneration1 = capability(sku, "HyperVGenerations")?.includes("v2") === false;
  // Those of SGX, which protect parts of a program, boot as all others do.
  const isConfidential = /^(snp|tdx)$/.test(capability(sku, "ConfidentialComputingType") ?? "");
  const flaws: [boolean, string][] = [
    [isGeneration1, "boots no image of generation 2, which the machine image is"],
    [
      (capability(sku, "TrustedLaunchDisabled") === "true" || isConfidential) && !isGeneration1,
      "has no Trusted Launch, with which the machines are made",
    ],
    [
      osDiskSku.startsWith("Premium") && capability(sku, "PremiumIO") === "false",
      `takes no Premium disks, and osDiskSku is ${osDiskSku}`,
    ],
    [
      encryptionAtHost && capability(sku, "EncryptionAtHostSupported") !== "true",
      "has no encryption at host, and encryptionAtHost is true",
    ],
    [
      spot !== undefined && capability(sku, "LowPriorityCapable") === "false",
      "is not to be had as a spot machine, and its pool is spot",
    ],
    [
      memory < leastMemoryGb,
      `has ${memory} GB of memory, and a ${role === "worker" ? "worker" : "control plane"} needs ${leastMemoryGb}`,
    ],
    [
      available !== undefined && Number(available) < least,
      `has ${available} processor, and kubeadm wants ${least} of a control plane`,
    ],
  ];
  return [
    ...flaws.filter(([holds]) => holds).map(([, flaw]) => flaw),
    ...localDiskMisfits(sku, machine),
  ];
}

/** Of each local disk, what Azure says of its size, and how many of that make a GiB. */
const localDiskSizes: Readonly<Record<LocalDisk, readonly [name: string, perGib: number]>> = {
  CacheDisk: ["CachedDiskBytes", 1024 ** 3],
  ResourceDisk: ["MaxResourceVolumeMB", 1024],
  NvmeDisk: ["NvmeDiskSizeInMiB", 1024],
};

/** What a machine with Trusted Launch keeps there for the state of its firmware. */
const firmwareGib = 1;

/**
 * Of an OS disk of the host's own, whatever the host has.
 *
 * @see https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks
 */
const mostGib = 2040;

/** How many GiB an OS disk can have on this one. */
function localRoom(sku: Sku, disk: LocalDisk): number {
  const [name, perGib] = localDiskSizes[disk];
  const placements = capability(sku, "SupportedEphemeralOSDiskPlacements")?.split(",") ?? [];
  const isSupported = placements.some((one) => one.trim() === disk.toLowerCase());
  const size = Math.floor(Number(capability(sku, name) ?? 0) / perGib);
  return isSupported ? Math.min(mostGib, Math.max(0, size - firmwareGib)) : 0;
}

function localDiskMisfits(
  sku: Sku,
  { ephemeralOsDisk, osDiskSizeGb }: Pick<MachinePlan, "ephemeralOsDisk" | "osDiskSizeGb">,
): string[] {
  if (ephemeralOsDisk === undefined) return [];
  const room = localRoom(sku, ephemeralOsDisk);
  if (room >= osDiskSizeGb) return [];
  const others = (Object.keys(localDiskSizes) as LocalDisk[])
    .map((disk) => [disk, localRoom(sku, disk)] as const)
    .filter(([disk, gib]) => disk !== ephemeralOsDisk && gib > 0)
    .map(([disk, gib]) => `${disk} of ${gib} GiB`);
  return [
    (room === 0
      ? `has no ${ephemeralOsDisk} for an OS disk`
      : `has ${room} GiB of ${ephemeralOsDisk} for an OS disk of ${osDiskSizeGb}`) +
      ` (ephemeralOsDisk, osDiskSizeGb)${others.length > 0 ? `, but ${others.join(" and ")}` : ""}`,
  ];
}

/**
 * Zone numbers where the size can be had; a restriction of type Location closes the whole region.
 */
function usableZones(sku: Sku, location: string): string[] {
  const restrictions = sku.restrictions ?? [];
  if (restrictions.some(({ type }) => type === "Location")) return [];
  const barred = restrictions.flatMap(({ restrictionInfo }) => restrictionInfo?.zones ?? []);
  const offered =
    sku.locationInfo?.find((info) => info.location.toLowerCase() === location)?.zones ?? [];
  return offered.filter((zone) => !barred.includes(zone)).sort();
}

/** The size whose name starts most like the wanted one. */
function closest(size: string, skus: readonly Sku[]): string | undefined {
  const likeness = ({ name }: Sku) => {
    let length = 0;
    while (length < name.length && name[length] === size[length]) length++;
    return length;
  };
  return [...skus].sort((a, b) => likeness(b) - likeness(a) || a.name.localeCompare(b.name))[0]
    ?.name;
}

/** The path of a machine's pool in the settings. */
export const poolPath = ({ workerPools }: Settings, { pool }: MachinePlan): string =>
  `workerPools[${workerPools.findIndex(({ name }) => name === pool)}]`;

/** What changes a machine's size, without the value. */
export const sizeCommand = (settings: Settings, machine: MachinePlan): string =>
  machine.pool === undefined
    ? "pulumi config set controlPlaneSize"
    : `pulumi config set --path '${poolPath(settings, machine)}.size'`;

interface WantedResize {
  readonly skus: readonly Sku[];
  /** The machines that there are, by their name. */
  readonly existing: ReadonlyMap<string, Pick<MachineState, "size" | "diskController">>;
  /** Those of the machines that are made anew. */
  readonly created: readonly MachinePlan[];
  readonly shown: Shown;
  /** What changes a machine's size, without the value. */
  readonly command: (machine: MachinePlan) => string;
}

/**
 * Which machines Azure would not resize, though it makes new ones of that size: the kind of the disk
 * controller cannot change. One that is made anew, also in place of a VM that is gone, keeps its
 * interface, which cannot belong to a machine without accelerated networking when it has that.
 */
export function resizeProblems(
  machines: readonly MachinePlan[],
  { skus, existing, created, shown, command }: WantedResize,
): string[] {
  const sizes = sizesIn(skus);
  return machines.flatMap((machine) => {
    const { name, size } = machine;
    const { size: before, diskController } = existing.get(name) ?? {};
    const [now, next] = [before ?? size, size].map((one) => sizes.get(one.toLowerCase()));
    const isResized = !created.includes(machine);
    if (now === undefined || next === undefined || (now === next && isResized)) return [];
    const hasNvme = diskController === undefined ? isNvmeOnly(now) : diskController === "NVMe";
    const nic = shown.get(shownAs("azure-native:network:NetworkInterface", `${name}-nic`));
    const fixed: [boolean, string][] = [
      [
        isResized && isNvmeOnly(next) && !hasNvme,
        `has NVMe disk controllers only, and the machine was made with SCSI`,
      ],
      [
        isResized && hasScsiOnly(next) && hasNvme,
        `has SCSI disk controllers only, and the machine was made with NVMe`,
      ],
      [
        nic?.properties?.["enableAcceleratedNetworking"] === true &&
          !hasAcceleratedNetworking(next),
        `has no accelerated networking, and the machine's interface was made with it`,
      ],
    ];
    return fixed
      .filter(([holds]) => holds)
      .map(
        ([, difference]) =>
          `${name}: size ${size} ${difference}, which Azure changes on no machine; take another size` +
          (before === undefined
            ? ` (${command(machine)} SIZE)`
            : `, or keep this one (${command(machine)} ${before})`),
      );
  });
}

/**
 * Names of those of these machines that have to be deallocated for their new size: Azure keeps a
 * machine that has hardware on hardware of that kind, and says which sizes that has. Where it does
 * not say, a machine is deallocated: the size may be refused else, after the drain. So is one whose
 * temporary disk comes or goes, which Azure supports for Linux without saying whether while it runs.
 *
 * @param resized machines that exist and get another size
 */
export async function getDeallocations(
  resized: readonly MachinePlan[],
  machines: AzureState["machines"],
  skus: readonly Sku[],
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  { arm, subscriptionId }: AzureConnection,
): Promise<Set<string>> {
  const group = groupId(settings, subscriptionId);
  const isBound = ({ name, size }: MachinePlan): Promise<boolean> =>
    arm
      .list<{ name: string }>(
        `${group}/providers/Microsoft.Compute/virtualMachines/${name}/vmSizes`,
        computeVersion,
        { name: "" },
      )
      .then(
        (sizes) => !sizes.some((one) => isSameSize(one.name, size)),
        () => true,
      );
  const sizes = sizesIn(skus);
  const hasTemporaryDisk = (size = ""): boolean => {
    const sku = sizes.get(size.toLowerCase());
    return Number((sku && capability(sku, "MaxResourceVolumeMB")) ?? 0) > 0;
  };
  const asked = resized.filter(({ name }) => machines.get(name)?.power !== "deallocated");
  const bound = await Promise.all(
    asked.map(
      async (machine) =>
        hasTemporaryDisk(machines.get(machine.name)?.size) !== hasTemporaryDisk(machine.size) ||
        isBound(machine),
    ),
  );
  return new Set(asked.filter((_, index) => bound[index]).map(({ name }) => name));
}

/** Azure's list says nothing of sizes from before there was NVMe. */
const hasScsiOnly = (sku: Sku): boolean =>
  (capability(sku, "DiskControllerTypes") ?? "scsi") === "scsi";
