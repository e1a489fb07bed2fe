import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import { AddressOffers, addressQuotaProblems, getAddressQuotas } from "./address-quotas";
import { AzureConnection } from "./connection";
import { getGalleryImage } from "./gallery-image";
import { getImage, ImageOffer, imageProblems } from "./image-offers";
import { getQuotas, Quota, quotaProblems } from "./quotas";
import { regionProblems } from "./region-offers";
import { resizeProblems } from "./resize-offers";
import { hasAcceleratedNetworking, Sku, sizeCommand, sizesIn, skuProblems } from "./size-offers";
import { AzureState } from "./state";

/** What a region has for this subscription. */
export interface Offers {
  readonly skus: readonly Sku[];
  readonly quotas: readonly Quota[];
  readonly addresses: AddressOffers;
  readonly image: ImageOffer;
}

/** Asks Azure for sizes, and in a region that is one for quotas and the image. */
export async function getOffers(
  settings: Settings,
  { arm, subscriptionId }: AzureConnection,
): Promise<Offers> {
  const { location } = settings;
  const skus = await arm.list<Sku>(
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/skus`,
    { $filter: `location eq '${location}'`, "api-version": "2021-07-01" },
    { name: "", resourceType: "" },
  );
  // Of another region Azure would refuse to speak.
  if (regionProblems(location, skus).length > 0) {
    const addresses = { quotas: [], existing: [] };
    return { skus, quotas: [], addresses, image: { isDeployable: true } };
  }
  const [quotas, addresses, image] = await Promise.all([
    getQuotas(arm, subscriptionId, location),
    getAddressQuotas(arm, subscriptionId, settings),
    settings.image === ""
      ? getImage(arm, subscriptionId, settings)
      : getGalleryImage(arm, settings),
  ]);
  return { skus, quotas, addresses, image };
}

/** Names of the machines whose size has accelerated networking. */
export function acceleratedMachines(
  machines: readonly MachinePlan[],
  { skus }: Pick<Offers, "skus">,
): Set<string> {
  const sizes = sizesIn(skus);
  const accelerated = machines.filter(({ size }) => {
    const sku = sizes.get(size.toLowerCase());
    return sku !== undefined && hasAcceleratedNetworking(sku);
  });
  return new Set(accelerated.map(({ name }) => name));
}

/**
 * All that Azure would refuse of these machines, as far as it can be asked beforehand.
 *
 * @param created those of them that are created or replaced
 */
export function offerProblems(
  machines: readonly MachinePlan[],
  created: readonly MachinePlan[],
  existing: AzureState["machines"],
  { skus, quotas, addresses, image }: Offers,
  settings: Settings,
  { subscriptionId }: AzureConnection,
): string[] {
  const { location, osDiskSku, encryptionAtHost } = settings;
  const region = regionProblems(location, skus);
  if (region.length > 0) return region;
  const command = (machine: MachinePlan) => sizeCommand(settings, machine);
  const sizesNow = new Map([...existing].map(([name, { size }]) => [name, size]));
  return [
    ...skuProblems(machines, skus, { location, osDiskSku, encryptionAtHost, command }),
    ...resizeProblems(machines, { skus, sizesNow, command }),
    ...quotaProblems(machines, quotas, { subscriptionId, location, skus, sizesNow, command }),
    ...addressQuotaProblems(settings, addresses, subscriptionId),
    ...imageProblems(created, image, settings),
  ];
}
