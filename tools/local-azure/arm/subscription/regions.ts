import { refuse } from "../azure-error";

/** Some regions, by Azure's names of them for people: with availability zones, and without. */
const zonal = `Australia East,Brazil South,Canada Central,Central US,East US,East US 2,
  France Central,Germany West Central,Japan East,North Europe,South Africa North,South Central US,
  Southeast Asia,Sweden Central,Switzerland North,UK South,West Europe,West US 2,West US 3`;
const withoutZones = "Germany North,North Central US,South India,UK West,West Central US,West US";
const namesIn = (text: string): string[] => text.split(/,\s*/);
const displayNames = namesIn(`${zonal},${withoutZones}`);

/** `West US 2` and `westus2` are the same region. */
export const normalLocation = (location: string): string =>
  location.toLowerCase().replaceAll(" ", "");

/** The zones of each region. */
export const regions: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  displayNames.map((name) => [
    normalLocation(name),
    namesIn(withoutZones).includes(name) ? [] : ["1", "2", "3"],
  ]),
);

export const displayName = (location: string): string =>
  displayNames.find((name) => normalLocation(name) === location) ?? location;

export function checkedLocation(location: unknown, what: string): string {
  if (typeof location !== "string" || location === "") {
    throw refuse("LocationRequired", "The location property is required for this definition.");
  }
  const normalized = normalLocation(location);
  if (regions[normalized] !== undefined) return normalized;
  const available = Object.keys(regions).sort().join(",");
  throw what === "resource group"
    ? refuse(
        "LocationNotAvailableForResourceGroup",
        `The provided location '${location}' is not available for resource group. List of available regions is '${available}'.`,
      )
    : refuse(
        "LocationNotAvailableForResourceType",
        `The provided location '${location}' is not available for resource type '${what}'. ` +
          `List of available regions for the resource type is '${available}'.`,
      );
}

/** The location of what is in no region. */
export function checkedGlobal(location: unknown, type: string): string {
  if (typeof location === "string" && normalLocation(location) === "global") return "global";
  throw refuse(
    "LocationNotAvailableForResourceType",
    `The provided location '${String(location)}' is not available for resource type '${type}'. ` +
      "List of available regions for the resource type is 'global'.",
  );
}

/** Throws when the region does not have a zone, or when there are more than `most`. */
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
  const zoneText = (zones: readonly string[]) =>
    zones.length === 0 ? "NoZone" : [...zones].sort().join(", ");
  if (zoneText(old) === zoneText(wanted)) return;
  throw refuse(
    "ResourceAvailabilityZonesCannotBeModified",
    `Resource ${id} has an existing availability zone constraint ${zoneText(old)} and the request has availability zone ` +
      `constraint ${zoneText(wanted)}, which do not match. Zones cannot be added/updated/removed once the resource is created.`,
  );
}
