import { apiBalancerName, egressNames, groupId } from "./resource-names";
import type { Settings } from "../settings/settings";
import { Quota } from "./quotas";
import { ArmClient } from "./resource-manager";

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
    arm.list<{ name: string }>(
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
