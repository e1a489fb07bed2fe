import { versions } from "../../../../components/versions";
import { AzureError } from "../azure-error";
import { regions } from "./regions";

interface Size {
  readonly name: string;
  readonly family: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** Size of the temporary disk. @default none */
  readonly temporaryGb?: number;
  /** Size of the cache that an OS disk can lie on. @default none */
  readonly cacheGb?: number;
  /** Size of all local NVMe disks together. @default none */
  readonly nvmeGb?: number;
  readonly diskControllers?: "NVMe";
  readonly architecture?: "Arm64";
  readonly premium?: false;
  readonly generations?: string;
  readonly trustedLaunch?: false;
  /** How its machines are confidential; then they are nothing else. */
  readonly confidential?: "SNP";
  readonly encryptionAtHost?: false;
  readonly acceleratedNetworking?: false;
  /** Whether it is to be had as a spot machine. @default true */
  readonly spot?: false;
}

const size = (
  name: string,
  family: string,
  cores: number,
  memoryGb: number,
  more: Partial<Size> = {},
): Size => ({ name, family, cores, memoryGb, ...more });

const basicNetwork = { acceleratedNetworking: false } as const;
const neverSpot = { spot: false } as const;
const arm = { architecture: "Arm64", generations: "V2" } as const;
const withoutPremium = { premium: false } as const;

/**
 * VM sizes with their real figures: those that clusters use, and some that cannot be used.
 */
const sizes: readonly Size[] = [
  size("Standard_B1s", "standardBSFamily", 1, 1, { temporaryGb: 4, ...basicNetwork, ...neverSpot }),
  size("Standard_B2s", "standardBSFamily", 2, 4, {
    temporaryGb: 8,
    ...basicNetwork,
    ...neverSpot,
  }),
  size("Standard_B2ms", "standardBSFamily", 2, 8, {
    temporaryGb: 16,
    ...basicNetwork,
    ...neverSpot,
  }),
  size("Standard_B4ms", "standardBSFamily", 4, 16, {
    temporaryGb: 32,
    ...basicNetwork,
    ...neverSpot,
  }),
  size("Standard_B2s_v2", "standardBsv2Family", 2, 8),
  size("Standard_B4s_v2", "standardBsv2Family", 4, 16),
  size("Standard_B2as_v2", "standardBasv2Family", 2, 8),
  size("Standard_A2_v2", "standardAv2Family", 2, 4, {
    temporaryGb: 20,
    ...withoutPremium,
    ...basicNetwork,
    generations: "V1",
    trustedLaunch: false,
    encryptionAtHost: false,
  }),
  size("Standard_DS2_v2", "standardDSv2Family", 2, 7, { temporaryGb: 14, cacheGb: 86 }),
  size("Standard_D2_v3", "standardDv3Family", 2, 8, {
    temporaryGb: 50,
    ...withoutPremium,
    generations: "V1",
    trustedLaunch: false,
  }),
  size("Standard_D2s_v3", "standardDSv3Family", 2, 8, { temporaryGb: 16, cacheGb: 50 }),
  size("Standard_D4s_v3", "standardDSv3Family", 4, 16, { temporaryGb: 32, cacheGb: 100 }),
  size("Standard_D2s_v4", "standardDSv4Family", 2, 8),
  size("Standard_D2_v5", "standardDv5Family", 2, 8, withoutPremium),
  size("Standard_D2s_v5", "standardDSv5Family", 2, 8),
  size("Standard_D4s_v5", "standardDSv5Family", 4, 16),
  size("Standard_D8s_v5", "standardDSv5Family", 8, 32),
  size("Standard_D2ds_v5", "standardDDSv5Family", 2, 8, { temporaryGb: 75 }),
  size("Standard_D4ds_v5", "standardDDSv5Family", 4, 16, { temporaryGb: 150 }),
  size("Standard_D2as_v5", "standardDASv5Family", 2, 8),
  size("Standard_D4as_v5", "standardDASv5Family", 4, 16),
  size("Standard_D2ps_v5", "standardDPSv5Family", 2, 8, { ...arm, trustedLaunch: false }),
  size("Standard_D4ps_v5", "standardDPSv5Family", 4, 16, { ...arm, trustedLaunch: false }),
  size("Standard_D2ps_v6", "standardDPSv6Family", 2, 8, { ...arm, diskControllers: "NVMe" }),
  size("Standard_D4ps_v6", "standardDPSv6Family", 4, 16, { ...arm, diskControllers: "NVMe" }),
  size("Standard_D2s_v6", "standardDSv6Family", 2, 8, {
    generations: "V2",
    diskControllers: "NVMe",
  }),
  size("Standard_D2ds_v6", "standardDDSv6Family", 2, 8, {
    generations: "V2",
    diskControllers: "NVMe",
    nvmeGb: 110,
  }),
  size("Standard_DC2as_v5", "standardDCASv5Family", 2, 8, {
    generations: "V2",
    confidential: "SNP",
  }),
  size("Standard_E2s_v5", "standardESv5Family", 2, 16),
  size("Standard_E4s_v5", "standardESv5Family", 4, 32),
  size("Standard_F2s_v2", "standardFSv2Family", 2, 4, { temporaryGb: 16 }),
  size("Standard_F4s_v2", "standardFSv2Family", 4, 8, { temporaryGb: 32 }),
];

/** Names of the quotas, one for each family of sizes. */
export const families = [...new Set(sizes.map(({ family }) => family))];

interface Restriction {
  readonly size: string;
  readonly location: string;
  /** @default the whole region */
  readonly zones?: readonly string[];
}

/** Sizes that are not available to this subscription, in each form that Azure reports. */
const restrictions: readonly Restriction[] = [
  { size: "Standard_B2s_v2", location: "westus2", zones: ["1", "2", "3"] },
  { size: "Standard_D2s_v6", location: "northeurope", zones: ["1"] },
  { size: "Standard_D2as_v5", location: "westeurope", zones: ["3"] },
  { size: "Standard_B2s", location: "eastus" },
  { size: "Standard_DS2_v2", location: "uksouth" },
  { size: "Standard_DS2_v2", location: "uksouth", zones: ["1", "2", "3"] },
  { size: "Standard_D2s_v4", location: "southeastasia", zones: ["2"] },
];

const equalsIgnoringCase = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

export const findSize = (name: string): Size | undefined =>
  sizes.find((one) => equalsIgnoringCase(one.name, name));

/**
 * The sizes that a machine can get where it is. While it has hardware, those are the sizes of that
 * hardware; here, each family has its own.
 */
export const sizesOf = (size: string, hasHardware: boolean): readonly Size[] =>
  hasHardware ? sizes.filter(({ family }) => family === findSize(size)?.family) : sizes;

/** An entry of a machine's list of sizes. */
export const sizeEntry = (one: Size): object => ({
  name: one.name,
  numberOfCores: one.cores,
  osDiskSizeInMB: 1_047_552,
  resourceDiskSizeInMB: (one.temporaryGb ?? 0) * 1024,
  memoryInMB: one.memoryGb * 1024,
  maxDataDiskCount: mostDataDisks(one),
});

/** The disks of a host that an OS disk can lie on, and their GiB. */
export const localDisksOf = ({ cacheGb, temporaryGb, nvmeGb }: Size): [string, number][] =>
  Object.entries({ ResourceDisk: temporaryGb, CacheDisk: cacheGb, NvmeDisk: nvmeGb }).flatMap(
    ([placement, gib]) => (gib === undefined ? [] : [[placement, gib] satisfies [string, number]]),
  );

/** Of a spot machine of this size now, in US dollars an hour; Azure's changes all the time. */
export const spotPrice = ({ cores }: Size): number => cores / 100;

export const mostDataDisks = ({ cores }: Size): number => cores * 2;

const restrictionsOf = (name: string, location: string) =>
  restrictions.filter(
    (restriction) =>
      equalsIgnoringCase(restriction.size, name) && restriction.location === location,
  );

/** Whether the size is available in the zone or, without a zone, in the region. */
export function isOffered(name: string, location: string, zone?: string): boolean {
  return !restrictionsOf(name, location).some(
    ({ zones }) => zones === undefined || (zone !== undefined && zones.includes(zone)),
  );
}

/** Kinds of managed disks, with two of their sizes: Azure lists each size of each kind. */
const disks: readonly (readonly [name: string, sizes: readonly string[]])[] = [
  ["Standard_LRS", ["S4", "S10"]],
  ["StandardSSD_LRS", ["E1", "E10"]],
  ["StandardSSD_ZRS", ["E1", "E10"]],
  ["Premium_LRS", ["P1", "P10"]],
  ["Premium_ZRS", ["P1", "P10"]],
];

/**
 * Regions with zones whose disks live in one zone each. Azure's are fewer every year, and no list of
 * them was found; these stand for them.
 */
const withoutRedundantDisks = ["centralus", "southafricanorth"];

export const isInEveryZone = (disk: string | undefined): boolean => disk?.endsWith("_ZRS") === true;

/** Whether a region has disks of this kind, by the name of their SKU. */
export const hasDisks = (disk: string, location: string): boolean =>
  !isInEveryZone(disk) ||
  (regions[location]?.length !== 0 && !withoutRedundantDisks.includes(location));

/** The response of Microsoft.Compute/skus for one region: disks and VM sizes. */
export const skusIn = (location: string): object[] => [...disksIn(location), ...sizesIn(location)];

function disksIn(location: string): object[] {
  const zones = regions[location];
  if (zones === undefined) return [];
  return disks
    .filter(([name]) => hasDisks(name, location))
    .flatMap(([name, sizes]) =>
      sizes.map((size) => ({
        resourceType: "disks",
        name,
        tier: name.split("_")[0],
        size,
        locations: [location],
        locationInfo: [
          { location, zones: isInEveryZone(name) ? [] : [...zones].reverse(), zoneDetails: [] },
        ],
        capabilities: [],
        restrictions: [],
      })),
    );
}

function sizesIn(location: string): object[] {
  const zones = regions[location];
  if (zones === undefined) return [];
  return sizes.map((one) => ({
    resourceType: "virtualMachines",
    name: one.name,
    tier: "Standard",
    size: one.name.replace("Standard_", ""),
    family: one.family,
    locations: [location],
    // Azure does not sort zones.
    locationInfo: [{ location, zones: [...zones].reverse(), zoneDetails: [] }],
    capabilities: Object.entries({
      vCPUs: one.cores,
      vCPUsAvailable: one.cores,
      MemoryGB: one.memoryGb,
      CpuArchitectureType: one.architecture ?? "x64",
      PremiumIO: capitalized(one.premium ?? true),
      AcceleratedNetworkingEnabled: capitalized(one.acceleratedNetworking ?? true),
      HyperVGenerations: one.generations ?? "V1,V2",
      EncryptionAtHostSupported: capitalized(one.encryptionAtHost ?? true),
      MaxResourceVolumeMB: (one.temporaryGb ?? 0) * 1024,
      CachedDiskBytes: (one.cacheGb ?? 0) * 1024 ** 3,
      NvmeDiskSizeInMiB: (one.nvmeGb ?? 0) * 1024,
      EphemeralOSDiskSupported: capitalized(localDisksOf(one).length > 0),
      ...(localDisksOf(one).length > 0 && {
        SupportedEphemeralOSDiskPlacements: localDisksOf(one)
          .map(([placement]) => placement)
          .join(","),
      }),
      // Azure's list has none of sizes before v6, which are SCSI (SAP-on-Azure-Scripts-and-Utilities, PR 131).
      ...(one.diskControllers && { DiskControllerTypes: one.diskControllers }),
      MaxDataDiskCount: mostDataDisks(one),
      LowPriorityCapable: capitalized(one.spot ?? true),
      ...(one.trustedLaunch === false ? { TrustedLaunchDisabled: "True" } : {}),
      // Such a size has no TrustedLaunchDisabled beside it (openshift/installer, validateSecurityType).
      ...(one.confidential && { ConfidentialComputingType: one.confidential }),
    }).map(([name, value]) => ({ name, value: String(value) })),
    restrictions: restrictionsOf(one.name, location).map((restriction) => ({
      type: restriction.zones === undefined ? "Location" : "Zone",
      // Also for restricted zones, which are in restrictionInfo.
      values: [location],
      restrictionInfo: {
        locations: [location],
        ...(restriction.zones && { zones: restriction.zones }),
      },
      reasonCode: "NotAvailableForSubscription",
    })),
  }));
}

const capitalized = (value: boolean) => (value ? "True" : "False");

export interface ImageReference {
  readonly id?: string;
  readonly publisher?: string;
  readonly offer?: string;
  readonly sku?: string;
  readonly version?: string;
  readonly exactVersion?: string;
}

interface Image {
  readonly urn: string;
  readonly generation: "V1" | "V2";
  readonly architecture: "x64" | "Arm64";
  /** @default SCSI and NVMe */
  readonly diskControllers?: "SCSI";
}

const images: readonly Image[] = [
  { urn: "Canonical:ubuntu-24_04-lts:server", generation: "V2", architecture: "x64" },
  {
    urn: "Canonical:ubuntu-24_04-lts:server-gen1",
    generation: "V1",
    architecture: "x64",
    diskControllers: "SCSI",
  },
  { urn: "Canonical:ubuntu-24_04-lts:server-arm64", generation: "V2", architecture: "Arm64" },
  { urn: "Canonical:ubuntu-24_04-lts:minimal", generation: "V2", architecture: "x64" },
  {
    urn: "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2",
    generation: "V2",
    architecture: "x64",
    diskControllers: "SCSI",
  },
  { urn: "Debian:debian-13:13-gen2", generation: "V2", architecture: "x64" },
];

export const imageName = ({ id, publisher, offer, sku, version }: ImageReference): string =>
  id ?? [publisher, offer, sku, version].join(":");

/** Versions in the order of the marketplace, oldest first. */
const published = ["24.04.202604160", versions.ubuntuImage, "24.04.202608110"];

export const diskControllersOf = ({
  diskControllers,
}: {
  readonly diskControllers?: string;
}): string => diskControllers ?? "SCSI, NVMe";

/** What the marketplace says of an image that it has. */
export const imageFeatures = (urn: string): object[] => {
  const image = images.find((one) => one.urn.toLowerCase() === urn.toLowerCase());
  return image === undefined
    ? []
    : [{ name: "DiskControllerTypes", value: diskControllersOf(image) }];
};

/** Versions of an image; undefined when the image does not exist. */
export const versionsOf = (urn: string): readonly string[] | undefined =>
  images.some((one) => one.urn.toLowerCase() === urn.toLowerCase()) ? published : undefined;

/** The image, with `latest` resolved. Throws when it is not in the marketplace. */
export function findImage(reference: ImageReference): Image & { readonly exactVersion: string } {
  const { publisher, offer, sku, version = "" } = reference;
  const urn = [publisher, offer, sku].join(":").toLowerCase();
  const image = images.find((one) => one.urn.toLowerCase() === urn);
  const isLatest = version === "latest";
  if (image !== undefined && (isLatest || published.includes(version))) {
    return { ...image, exactVersion: isLatest ? published.at(-1)! : version };
  }
  throw new AzureError(
    404,
    "PlatformImageNotFound",
    `The platform image '${imageName(reference)}' is not available. Verify that all fields in the storage profile are correct. ` +
      "For more details about storage profile information, please refer to https://aka.ms/storageprofile",
  );
}
