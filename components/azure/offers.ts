import { toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import {
  AddressOffers,
  addressQuotaProblems,
  getAddressQuotas,
  getQuotas,
  Quota,
  quotaProblems,
} from "./quotas";
import { AzureConnection } from "./resource-manager";
import { hardwareOf } from "./hardware";
import { getGalleryImage, getImage, ImageOffer, imageProblems, isOfGallery } from "./image-offers";
import {
  Architecture,
  architectureOf,
  isSameSize,
  resizeProblems,
  sizeCommand,
  sizesIn,
  Sku,
  skuProblems,
} from "./size-offers";
import { AzureAnswer } from "./state";

/** What a region has for this subscription. */
export interface Offers {
  readonly skus: readonly Sku[];
  readonly quotas: readonly Quota[];
  readonly addresses: AddressOffers;
  /** Of each architecture that the settings' sizes have. */
  readonly images: ReadonlyMap<Architecture, ImageOffer>;
}

/** Asks Azure for the sizes of the region. */
export const getSkus = (
  { location }: Pick<Settings, "location">,
  { arm, subscriptionId }: AzureConnection,
): Promise<Sku[]> =>
  arm.list<Sku>(
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/skus`,
    { $filter: `location eq '${location}'`, "api-version": "2021-07-01" },
    { name: "", resourceType: "" },
  );

/** Asks Azure for sizes, and in a region that is one for quotas and the images. */
export async function getOffers(settings: Settings, connection: AzureConnection): Promise<Offers> {
  const { location } = settings;
  const { arm, subscriptionId } = connection;
  const skus = await getSkus(settings, connection);
  // Of another region Azure would refuse to speak.
  if (regionProblems(location, skus).length > 0) {
    const addresses = { quotas: [], existing: [] };
    return { skus, quotas: [], addresses, images: new Map() };
  }
  const [quotas, addresses, images] = await Promise.all([
    getQuotas(arm, subscriptionId, location),
    getAddressQuotas(arm, subscriptionId, settings),
    Promise.all(architecturesOf(settings, skus).map(imageOf)),
  ]);
  return { skus, quotas, addresses, images: new Map(images) };

  async function imageOf(architecture: Architecture): Promise<[Architecture, ImageOffer]> {
    const offer = isOfGallery(settings, architecture)
      ? getGalleryImage(arm, settings)
      : getImage(arm, subscriptionId, settings, architecture);
    return [architecture, await offer];
  }
}

/** The architectures of the sizes that the settings name. */
function architecturesOf(
  { controlPlaneSize, workerPools }: Settings,
  skus: readonly Sku[],
): Architecture[] {
  const sizes = sizesIn(skus);
  const named = [controlPlaneSize, ...workerPools.map(({ size }) => size)];
  return [...new Set(named.map((size) => architectureOf(sizes.get(size.toLowerCase()))))];
}

/**
 * All that Azure would refuse of these machines, as far as it can be asked beforehand. One that stays as it is, it
 * does not refuse.
 *
 * @param created those of them that are created or replaced
 */
export function offerProblems(
  machines: readonly MachinePlan[],
  created: readonly MachinePlan[],
  { machines: existing, shown }: Pick<AzureAnswer, "machines" | "shown">,
  { skus, quotas, addresses, images }: Offers,
  settings: Settings,
  { subscriptionId }: AzureConnection,
): string[] {
  const { location, encryptionAtHost } = settings;
  const region = regionProblems(location, skus);
  if (region.length > 0) return region;
  const command = (machine: MachinePlan) => sizeCommand(settings, machine);
  const sizesNow = new Map([...existing].map(([name, { size }]) => [name, size]));
  // Azure closes sizes to subscriptions, and machines that have them go on.
  const placed = machines.filter(
    (machine) =>
      created.includes(machine) ||
      !isSameSize(sizesNow.get(machine.name) ?? machine.size, machine.size),
  );
  return [
    ...skuProblems(placed, skus, { location, encryptionAtHost, command }),
    ...resizeProblems(machines, { skus, existing, created, shown, command }),
    ...quotaProblems(machines, quotas, { subscriptionId, location, skus, existing, command }),
    ...addressQuotaProblems(settings, addresses, subscriptionId),
    ...imageProblems(created, images, hardwareOf(created, { skus }), settings),
  ];
}

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
