import { toSet } from "../settings/problem";
import type { Sku } from "./size-offers";

/**
 * Microsoft's own way to list them: a region knows its zones only since this version of the API.
 */
const listRegions =
  "az rest --method get --uri '/subscriptions/{subscriptionId}/locations?api-version=2022-12-01' " +
  "--query 'value[?availabilityZoneMappings != `null`].name' --output table";

/**
 * Whether the region can hold a cluster over zones, by the sizes that it offers. A region that does
 * not exist, or that this subscription may not use, offers none.
 */
export function regionProblems(location: string, skus: readonly Sku[]): string[] {
  const sizes = skus.filter(({ resourceType }) => resourceType === "virtualMachines");
  const refused = (is: string, expected: string) => [
    `location ${is}, expected ${expected}; list them: ${listRegions} (${toSet("location", "REGION")})`,
  ];
  if (sizes.length === 0) {
    return refused(
      `is ${JSON.stringify(location)}, where Azure offers this subscription no machines at all`,
      "the short name of a region that exists, with availability zones",
    );
  }
  const hasZones = sizes.some(({ locationInfo }) =>
    locationInfo?.some(({ zones }) => zones !== undefined && zones.length > 0),
  );
  if (hasZones) return [];
  return refused(
    `is ${JSON.stringify(location)}, which has no availability zones`,
    "a region that has them, since each machine is put into one",
  );
}
