import { poolPath, sizeCommand } from "./size-offers";
import { toRemove } from "../settings/problem";
import { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";

interface Refusal {
  /** Azure's codes for it, wherever they stand in the provider's text. */
  readonly pattern: RegExp;
  readonly means: (machine: MachinePlan, settings: Settings) => string;
  /** Whether it means this of spot machines alone. */
  readonly isOfSpot?: boolean;
}

const place = ({ zone }: MachinePlan, { location }: Settings) => `zone ${zone} of ${location}`;

const otherSize = (machine: MachinePlan, settings: Settings) =>
  `${sizeCommand(settings, machine)} SIZE (az vm list-skus -l ${settings.location} --zone -o table)`;

const regularMachines = (machine: MachinePlan, settings: Settings) =>
  `take regular machines: ${toRemove(`${poolPath(settings, machine)}.spot`)}`;

const refusals: readonly Refusal[] = [
  {
    isOfSpot: true,
    pattern: /\bSpotPriceGreaterThanProvidedMaxPrice\b|lower than the current spot price/,
    means: (machine, settings) =>
      `a spot machine of size ${machine.size} in ${place(machine, settings)} costs more than its pool's maxPrice now.\n` +
      "  Wait and run pulumi up again: it goes on where it stopped. Or raise it, or pay up to the regular price: " +
      toRemove(`${poolPath(settings, machine)}.spot.maxPrice`),
  },
  {
    isOfSpot: true,
    pattern: /\bSkuNotAvailable\b|AllocationFailed\b|\bOverconstrained(Zonal)?AllocationRequest\b/,
    means: (machine, settings) =>
      `Azure has no capacity to spare for a spot machine of size ${machine.size} in ${place(machine, settings)} at the moment, ` +
      "and promises none.\n" +
      "  Wait and run pulumi up again: it goes on where it stopped. " +
      `If it stays so, take another size: ${otherSize(machine, settings)}, or ${regularMachines(machine, settings)}`,
  },
  {
    pattern: /\b(Zonal)?AllocationFailed\b|\bOverconstrained(Zonal)?AllocationRequest\b/,
    means: (machine, settings) =>
      `Azure has no room for another ${machine.size} in ${place(machine, settings)} at the moment.\n` +
      "  Wait and run pulumi up again: it goes on where it stopped. " +
      `If it stays so, take another size: ${otherSize(machine, settings)}`,
  },
  {
    pattern: /\bSkuNotAvailable\b|\bNotAvailableForSubscription\b/,
    means: (machine, settings) =>
      `this subscription cannot have size ${machine.size} in ${place(machine, settings)}, ` +
      "or it is sold out there.\n" +
      `  Take another size, then run pulumi up again: ${otherSize(machine, settings)}`,
  },
  {
    pattern: /\bQuotaExceeded\b|\bOperationNotAllowed\b.*\b(quota|cores)\b/is,
    means: (machine, settings) =>
      `the vCPU quota of this subscription has no room for another ${machine.size} in ${place(machine, settings)}.\n` +
      `  See what is used: az vm list-usage -l ${settings.location} -o table. Ask for more in the Azure portal ` +
      "(Quotas, Compute), then run pulumi up again. " +
      `Or take a size of another family: ${otherSize(machine, settings)}`,
  },
];

/**
 * What a machine's refusal means and how to go on; undefined where Azure's own words have to do.
 */
export function explained(
  machine: MachinePlan,
  settings: Settings,
  errors: readonly string[],
): string | undefined {
  const refusal = refusals.find(
    ({ pattern, isOfSpot }) =>
      (!isOfSpot || machine.spot !== undefined) && errors.some((error) => pattern.test(error)),
  );
  return refusal && `${machine.name}: ${refusal.means(machine, settings)}`;
}
