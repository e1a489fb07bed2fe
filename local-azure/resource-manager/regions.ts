import { refuse } from "./azure-error";

const three = ["1", "2", "3"];

/** Regions and their availability zones. A few of each kind, so that both kinds of mistake can be made. */
export const regions: Readonly<Record<string, readonly string[]>> = {
  australiaeast: three,
  brazilsouth: three,
  canadacentral: three,
  centralus: three,
  eastus: three,
  eastus2: three,
  francecentral: three,
  germanywestcentral: three,
  japaneast: three,
  northeurope: three,
  southafricanorth: three,
  southcentralus: three,
  southeastasia: three,
  swedencentral: three,
  switzerlandnorth: three,
  uksouth: three,
  westeurope: three,
  westus2: three,
  westus3: three,
  germanynorth: [],
  northcentralus: [],
  southindia: [],
  ukwest: [],
  westcentralus: [],
  westus: [],
};

/** `West US 2` and `westus2` are the same region. */
export const normalLocation = (location: string): string =>
  location.toLowerCase().replaceAll(" ", "");

export function checkedLocation(location: unknown, what: string): string {
  if (typeof location !== "string" || location === "") {
    throw refuse("LocationRequired", "The location property is required for this definition.");
  }
  const normal = normalLocation(location);
  if (regions[normal] !== undefined) return normal;
  const known = Object.keys(regions).sort().join(",");
  throw what === "resource group"
    ? refuse(
        "LocationNotAvailableForResourceGroup",
        `The provided location '${location}' is not available for resource group. List of available regions is '${known}'.`,
      )
    : refuse(
        "LocationNotAvailableForResourceType",
        `The provided location '${location}' is not available for resource type '${what}'. ` +
          `List of available regions for the resource type is '${known}'.`,
      );
}

/** Refuses zones that the region lacks, and more than `most` of them. */
export function checkZones(zones: readonly string[], location: string, id: string, most = 3): void {
  if (zones.length === 0) return;
  const supported = regions[location] ?? [];
  if (supported.length === 0) {
    throw refuse(
      "LocationNotSupportAvailabilityZones",
      `The resource '${id}' does not support availability zones at location '${location}'.`,
    );
  }
  if (zones.length > most) {
    throw refuse(
      "ResourceCannotHaveMultipleZonesSpecified",
      `Resource ${id} has ${zones.length} zones specified. Only one zone can be specified for this resource.`,
    );
  }
  if (zones.some((zone) => !supported.includes(zone))) {
    throw refuse(
      "InvalidAvailabilityZone",
      `The zone(s) '${zones.join(",")}' for resource '${id}' is not supported. ` +
        `The supported zones for location '${location}' are '${supported.join(",")}'`,
    );
  }
}

export function checkZonesUnchanged(
  id: string,
  old: readonly string[],
  wanted: readonly string[],
): void {
  const told = (zones: readonly string[]) =>
    zones.length === 0 ? "NoZone" : [...zones].sort().join(", ");
  if (told(old) === told(wanted)) return;
  throw refuse(
    "ResourceAvailabilityZonesCannotBeModified",
    `Resource ${id} has an existing availability zone constraint ${told(old)} and the request has availability zone ` +
      `constraint ${told(wanted)}, which do not match. Zones cannot be added/updated/removed once the resource is created.`,
  );
}
