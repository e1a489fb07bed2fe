import { parseDiskEncryptionSet } from "../settings/azure-ids";
import { toRemove, toSet } from "../settings/problem";
import { Settings } from "../settings/settings";
import type { AzureConnection } from "./resource-manager";
import { Offers } from "./offers";
import { letOwnerGrant } from "./rights";
import type { Sku } from "./size-offers";

/** A StorageClass of this cluster, before it is one. */
export interface DiskClass {
  readonly name: string;
  readonly skuName: string;
  /** Where alone it makes disks. */
  readonly zone?: string;
  readonly isDefault: boolean;
}

/** Disks that live in one zone, with their machine's, and disks that are kept in all of them. */
const kinds = [
  // Every size of machine takes this one, which is why it is the default.
  { name: "standard-ssd", skuName: "StandardSSD_LRS", zonal: true, isDefault: true },
  { name: "premium-ssd", skuName: "Premium_LRS", zonal: true, isDefault: false },
  { name: "standard-ssd-zrs", skuName: "StandardSSD_ZRS", zonal: false, isDefault: false },
  { name: "premium-ssd-zrs", skuName: "Premium_ZRS", zonal: false, isDefault: false },
];

/** Per zonal kind of disk, a class for wherever the pod goes and one for each zone. */
export const diskClasses = (zones: readonly string[]): DiskClass[] =>
  kinds.flatMap(({ name, skuName, zonal, isDefault }) => [
    { name, skuName, isDefault },
    ...(zonal ? zones : []).map((zone) => ({
      name: `${name}-zone-${zone}`,
      skuName,
      zone,
      isDefault: false,
    })),
  ]);

/**
 * The StorageClasses of the settings whose disks Azure offers this subscription, and those that the
 * cluster has already: claims name them, and what Azure restricts for a time would take them away.
 *
 * @param previous outputs of this cluster
 */
export function planDiskClasses(
  { storageClasses, zones, location }: Pick<Settings, "storageClasses" | "zones" | "location">,
  { skus }: Pick<Offers, "skus">,
  previous: { readonly storageClasses: readonly string[] } | undefined,
): { readonly made: readonly DiskClass[]; readonly leftOut: readonly DiskClass[] } {
  const all = storageClasses ? diskClasses(zones) : [];
  const isMade = ({ name, skuName, zone }: DiskClass): boolean =>
    previous?.storageClasses.includes(name) === true ||
    isDiskOffered(skus, { location, skuName, zone });
  return { made: all.filter(isMade), leftOut: all.filter((one) => !isMade(one)) };
}

interface WantedDisk {
  readonly location: string;
  readonly skuName: string;
  /** @default any, which is what zone-redundant disks are in */
  readonly zone?: string;
}

/**
 * Whether this subscription can have managed disks of a kind, such as Premium_ZRS, in a region, and in
 * a zone of it. Azure's list has an entry for each kind and size.
 */
const isDiskOffered = (skus: readonly Sku[], { location, skuName, zone }: WantedDisk): boolean =>
  skus.some(({ resourceType, name, locationInfo, restrictions = [] }) => {
    if (resourceType !== "disks" || name !== skuName) return false;
    const here = locationInfo?.find((info) => info.location.toLowerCase() === location);
    if (here === undefined || restrictions.some(({ type }) => type === "Location")) return false;
    if (zone === undefined) return true;
    const barred = restrictions.flatMap(({ restrictionInfo }) => restrictionInfo?.zones ?? []);
    return here.zones?.includes(zone) === true && !barred.includes(zone);
  });

/** A disk encryption set that is not this stack's. */
export interface DiskEncryptionSet {
  readonly id: string;
  /** With whose keys: the customer's, or Azure's as well. */
  readonly encryptionType: string;
}

/** What Azure says of the encryption that the settings want. */
export interface DiskEncryptionAnswer {
  /** Only where the settings name one. */
  readonly set?: DiskEncryptionSet;
  readonly problems: readonly string[];
}

type Asked = Pick<Settings, "diskEncryptionSetId" | "encryptionAtHost" | "location">;

/** Asks for the feature of the subscription and for the set, each where the settings want it. */
export async function getDiskEncryption(
  settings: Asked,
  connection: AzureConnection,
): Promise<DiskEncryptionAnswer> {
  const [feature, { set, problems }] = await Promise.all([
    featureProblems(settings, connection),
    getSet(settings, connection),
  ]);
  return { set, problems: [...feature, ...problems] };
}

/** Azure refuses a machine with the property, whatever its value, before the feature is registered. */
async function featureProblems(
  { encryptionAtHost }: Asked,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  if (!encryptionAtHost) return [];
  const feature = await arm.get<{ readonly properties: { readonly state: string } }>(
    `/subscriptions/${subscriptionId}/providers/Microsoft.Features/providers/Microsoft.Compute/features/EncryptionAtHost`,
    { "api-version": "2021-07-01" },
    { properties: { state: "" } },
  );
  const state = feature?.properties.state ?? "unknown";
  if (state === "Registered") return [];
  return [
    `encryptionAtHost is true, and the feature EncryptionAtHost is ${state} in subscription ${subscriptionId}, without which Azure refuses the machines: ` +
      "az feature register --namespace Microsoft.Compute --name EncryptionAtHost; some minutes later, when az feature show with the same options says Registered, " +
      `az provider register --namespace Microsoft.Compute. Or go without (${toRemove("encryptionAtHost")})`,
  ];
}

interface ShownSet {
  readonly location: string;
  readonly properties: { readonly encryptionType?: string };
}

/**
 * Most of what belongs to one key has to be in one subscription and region.
 *
 * @see https://learn.microsoft.com/azure/virtual-machines/disk-encryption#customer-managed-key-restrictions
 */
async function getSet(
  { diskEncryptionSetId: id, location }: Asked,
  { arm, subscriptionId }: AzureConnection,
): Promise<DiskEncryptionAnswer> {
  if (id === "") return { problems: [] };
  const refused = (expected: string): DiskEncryptionAnswer => ({
    problems: [
      `diskEncryptionSetId is ${id}, expected ${expected} (${toSet("diskEncryptionSetId", "ID")})`,
    ],
  });
  const ofSet = parseDiskEncryptionSet(id)?.subscriptionId;
  if (ofSet?.toLowerCase() !== subscriptionId.toLowerCase()) {
    return refused(
      `a set of subscription ${subscriptionId}, since Azure has disks and their set in one subscription`,
    );
  }
  const found = await arm.getIfReadable<ShownSet>(
    id,
    { "api-version": "2024-03-02" },
    { location: "", properties: {} },
  );
  if (found === "unreadable") {
    return {
      problems: [
        `the login may not read the disk encryption set ${id}, which Azure asks of whoever makes disks with it: ` +
          letOwnerGrant("Reader", id),
      ],
    };
  }
  if (found === undefined) {
    return refused("a set that Azure has: see az disk-encryption-set list --query '[].id'");
  }
  const { encryptionType = "EncryptionAtRestWithCustomerKey" } = found.properties;
  if (found.location.toLowerCase() !== location) {
    return refused(
      `a set in ${location}, since Azure has disks and their set in one region, and this one is in ${found.location}`,
    );
  }
  if (encryptionType.startsWith("ConfidentialVm")) {
    return refused(
      `a set for ordinary machines, and its encryptionType is ${encryptionType}: make one with az disk-encryption-set create --encryption-type EncryptionAtRestWithCustomerKey`,
    );
  }
  return { set: { id, encryptionType }, problems: [] };
}
