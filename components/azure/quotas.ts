import type { Settings } from "../settings/settings";
import { MachinePlan } from "../settings/topology";
import { spotCores } from "./hardware";
import { ArmClient } from "./resource-manager";
import { apiBalancerName, egressNames, groupId } from "./resource-names";
import { processors, sizesIn, Sku } from "./size-offers";
import type { AzureState } from "./state";

/** One quota of Azure's Microsoft.Compute/locations/usages, as far as it is read here. */
export interface Quota {
  readonly name: { readonly value: string; readonly localizedValue?: string };
  readonly currentValue: number;
  readonly limit: number;
}

/** How many processors this subscription has in a region, and may have. */
export const getQuotas = (
  arm: ArmClient,
  subscriptionId: string,
  location: string,
): Promise<Quota[]> =>
  arm.list<Quota>(
    `/subscriptions/${subscriptionId}/providers/Microsoft.Compute/locations/${location}/usages`,
    { "api-version": "2024-07-01" },
    { name: { value: "" }, currentValue: 0, limit: 0 },
  );

/** Azure's name for all families of regular machines together. */
const total = "cores";

interface Wanted {
  readonly subscriptionId: string;
  readonly location: string;
  readonly skus: readonly Sku[];
  /** The machines that there are, by their name. */
  readonly existing: AzureState["machines"];
  /** What changes a machine's size, without the value. */
  readonly command: (machine: MachinePlan) => string;
}

/**
 * Which quotas do not hold what is to be made or resized. A machine that is replaced frees its own
 * processors first; one that leaves the cluster does so only after the others were made.
 */
export function quotaProblems(
  machines: readonly MachinePlan[],
  quotas: readonly Quota[],
  { subscriptionId, location, skus, existing, command }: Wanted,
): string[] {
  const sizes = sizesIn(skus);
  return quotas.flatMap(({ name: { value, localizedValue = value }, currentValue, limit }) => {
    const isFor = (sku: Sku | undefined, isSpot: boolean): boolean =>
      isSpot
        ? value === spotCores
        : value === total || sku?.family?.toLowerCase() === value.toLowerCase();
    const charged = (size = "", isSpot = false): number => {
      const sku = sizes.get(size.toLowerCase());
      return isFor(sku, isSpot) ? processors(sku) : 0;
    };
    const growing = machines
      .map((machine) => {
        const now = existing.get(machine.name);
        const { size, spot } = machine;
        return {
          machine,
          more: charged(size, spot !== undefined) - charged(now?.size, now?.isSpot),
        };
      })
      .filter(({ more }) => more !== 0);
    const needed = growing.reduce((sum, { more }) => sum + more, 0);
    const free = Math.max(0, limit - currentValue);
    const [first] = growing;
    if (needed <= free || limit < 0 || first === undefined) return [];
    const isSpotQuota = value === spotCores;
    const names = growing.map(({ machine }) => `${machine.name} ${machine.size}`).join(", ");
    return [
      `the quota ${localizedValue} (${value}) in ${location} has room for ${free} more, ${currentValue} of ${limit} being used, ` +
        `and this change needs ${needed} (${names}); see az vm list-usage -l ${location} -o table, and ask for more in the ` +
        "Azure portal (Quotas, Compute) or by " +
        `az quota update --resource-name ${value} --resource-type ${isSpotQuota ? "lowPriority" : "dedicated"} --limit-object value=${currentValue + needed} ` +
        `--scope /subscriptions/${subscriptionId}/providers/Microsoft.Compute/locations/${location}, ` +
        `or take fewer or ${value === total || isSpotQuota ? "smaller machines" : "other sizes"} (${command(first.machine)} SIZE)`,
    ];
  });
}

type AddressSettings = Pick<
  Settings,
  "apiAccess" | "clusterName" | "egress" | "location" | "nodeSubnets" | "resourceGroup" | "zones"
>;

/** What a region has room for in public addresses, and which of them the cluster has. */
export interface AddressOffers {
  readonly quotas: readonly Quota[];
  /** Names of all in the cluster's resource group. */
  readonly existing: readonly string[];
}

const networkVersion = { "api-version": "2024-05-01" };

/** Names of the quotas that a Standard IPv4 address counts against; Azure has renamed one of them. */
const counting = /^(PublicIPAddresses|(IPv4)?StandardSkuPublicIpAddresses)$/i;

/** How many public addresses this subscription has in a region, and may have. */
export async function getAddressQuotas(
  arm: ArmClient,
  subscriptionId: string,
  settings: AddressSettings,
): Promise<AddressOffers> {
  const [usages, addresses] = await Promise.all([
    arm.list<Quota>(
      `/subscriptions/${subscriptionId}/providers/Microsoft.Network/locations/${settings.location}/usages`,
      networkVersion,
      { name: { value: "" }, currentValue: 0, limit: 0 },
    ),
    arm.listOnce<{ name: string }>(
      `${groupId(settings, subscriptionId)}/providers/Microsoft.Network/publicIPAddresses`,
      networkVersion,
      { name: "" },
    ),
  ]);
  return {
    quotas: usages.filter(({ name }) => counting.test(name.value)),
    existing: addresses.map(({ name }) => name),
  };
}

/**
 * Which quotas do not hold the public addresses that are to be made. While the egress changes, those
 * of both are there.
 */
export function addressQuotaProblems(
  settings: AddressSettings,
  { quotas, existing }: AddressOffers,
  subscriptionId: string,
): string[] {
  const { clusterName, egress, location, zones } = settings;
  const has = new Set(existing.map((name) => name.toLowerCase()));
  const ofApi = settings.apiAccess === "public" ? [apiBalancerName(clusterName)] : [];
  const made = [...ofApi, ...egressNames(settings)].filter((name) => !has.has(name.toLowerCase()));
  return quotas.flatMap(({ name: { value, localizedValue = value }, currentValue, limit }) => {
    const free = Math.max(0, limit - currentValue);
    if (made.length <= free || limit < 0) return [];
    const fewer = egress === "zonal" && zones.length > 1;
    return [
      `the quota ${localizedValue} (${value}) in ${location} has room for ${free} more, ${currentValue} of ${limit} being used, ` +
        `and this change needs ${made.length} (${made.join(", ")}); see az network list-usages -l ${location} -o table, ` +
        "delete addresses that nobody uses, or ask for more in the Azure portal (Quotas, Networking) or by " +
        `az quota update --resource-name ${value} --resource-type PublicIpAddresses --limit-object value=${currentValue + made.length} ` +
        `--scope /subscriptions/${subscriptionId}/providers/Microsoft.Network/locations/${location}` +
        (fewer ? ", or take one for all zones (pulumi config set egress single)" : ""),
    ];
  });
}
