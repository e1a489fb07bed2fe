import { Offers } from "./offers";
import { Settings } from "../settings/settings";
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
