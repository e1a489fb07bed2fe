import { AzureConnection } from "./azure-connection";
import { askImage, ImageOffer, imageProblems } from "./image-offers";
import { askQuotas, Quota, quotaProblems } from "./quotas";
import { regionProblems } from "./region-offers";
import { resizeProblems } from "./resize-offers";
import type { Settings } from "./settings";
import { Sku, sizeCommand, sizeProblems } from "./size-offers";
import { Machine } from "./topology";

/** What a region has for this subscription. */
export interface Offers {
  readonly skus: readonly Sku[];
  readonly quotas: readonly Quota[];
  readonly image: ImageOffer;
}

/** Asks Azure for sizes, and in a region that is one for quotas and the image. */
export async function askOffers(
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
    return { skus, quotas: [], image: { isDeployable: true } };
  }
  const [quotas, image] = await Promise.all([
    askQuotas(arm, subscriptionId, location),
    askImage(arm, subscriptionId, settings),
  ]);
  return { skus, quotas, image };
}

interface Wanted {
  readonly plan: Machine;
  readonly generation: string;
}

/** Machines that there are, by their name. */
type Existing = ReadonlyMap<string, { readonly size?: string; readonly generation?: string }>;

/** All that Azure would refuse of these machines, as far as it can be asked beforehand. */
export function offerProblems(
  wanted: readonly Wanted[],
  existing: Existing,
  { skus, quotas, image }: Offers,
  settings: Settings,
  { subscriptionId }: AzureConnection,
): string[] {
  const { location, osDiskSku } = settings;
  const plans = wanted.map(({ plan }) => plan);
  const command = (machine: Machine) => sizeCommand(settings, machine);
  const sizesNow = new Map([...existing].map(([name, { size = "" }]) => [name, size]));
  const made = wanted
    .filter(({ plan: { name }, generation }) => {
      const machine = existing.get(name);
      return machine === undefined || (machine.generation ?? generation) !== generation;
    })
    .map(({ plan }) => plan);
  return [
    ...sizeProblems(plans, skus, { location, osDiskSku, command }),
    ...resizeProblems(plans, { skus, sizesNow, command }),
    ...quotaProblems(plans, quotas, { subscriptionId, location, skus, sizesNow, command }),
    ...imageProblems(made, image, settings),
  ];
}
