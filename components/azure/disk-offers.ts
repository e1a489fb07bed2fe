import type { Sku } from "./size-offers";

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
export const isDiskOffered = (
  skus: readonly Sku[],
  { location, skuName, zone }: WantedDisk,
): boolean =>
  skus.some(({ resourceType, name, locationInfo, restrictions = [] }) => {
    if (resourceType !== "disks" || name !== skuName) return false;
    const here = locationInfo?.find((info) => info.location.toLowerCase() === location);
    if (here === undefined || restrictions.some(({ type }) => type === "Location")) return false;
    if (zone === undefined) return true;
    const barred = restrictions.flatMap(({ restrictionInfo }) => restrictionInfo?.zones ?? []);
    return here.zones?.includes(zone) === true && !barred.includes(zone);
  });
