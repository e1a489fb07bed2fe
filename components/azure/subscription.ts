import { dnsLabel } from "../api-server";
import { hasOwnIdentity } from "../settings/own-identity";
import type { Settings } from "../settings/settings";
import { AzureConnection } from "./connection";
import { rightsProblems } from "./rights";

interface Provider {
  readonly namespace: string;
  readonly registrationState: string;
}

/** The last one is only for the program's own managed identity. */
const namespacesOf = (settings: Settings): string[] => [
  "Microsoft.Compute",
  "Microsoft.Network",
  ...(hasOwnIdentity(settings) ? ["Microsoft.ManagedIdentity"] : []),
];

/**
 * What a subscription lacks for its first cluster of this stack, as far as Azure says it beforehand:
 * that it is in use, the login's rights, resource providers, and the API's public address' name.
 */
export async function subscriptionProblems(
  settings: Settings,
  connection: AzureConnection,
): Promise<string[]> {
  const problems = await Promise.all([
    stateProblems(connection),
    rightsProblems(settings, connection),
    providerProblems(settings, connection),
  ]);
  return problems.flat();
}

/** A subscription that is disabled can be read, and changed in nothing. */
async function stateProblems({ arm, subscriptionId }: AzureConnection): Promise<string[]> {
  const subscription = await arm.get<{ state: string }>(
    `/subscriptions/${subscriptionId}`,
    { "api-version": "2022-12-01" },
    { state: "" },
  );
  if (subscription === undefined || /^(Enabled|Warned|PastDue)$/.test(subscription.state))
    return [];
  return [
    `subscription ${subscriptionId} is ${subscription.state}, and Azure changes nothing in it: ` +
      "have it enabled, or take another (az account list --output table; az account set --subscription SUBSCRIPTION)",
  ];
}

async function providerProblems(
  settings: Settings,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const { clusterName, location } = settings;
  const subscription = `/subscriptions/${subscriptionId}`;
  const providers = await Promise.all(
    namespacesOf(settings).map((namespace) =>
      arm.get<Provider>(
        `${subscription}/providers/${namespace}`,
        { "api-version": "2021-04-01" },
        { namespace: "", registrationState: "" },
      ),
    ),
  );
  const missing = providers.flatMap((provider) =>
    provider === undefined || provider.registrationState === "Registered" ? [] : [provider],
  );
  const unregistered = missing.map(
    ({ namespace, registrationState }) =>
      `the resource provider ${namespace} is ${registrationState} in subscription ${subscriptionId}, and Azure refuses what is made of it: ` +
      `az provider register --namespace ${namespace} --wait`,
  );
  const cannotAsk = missing.some(({ namespace }) => namespace === "Microsoft.Network");
  if (cannotAsk || settings.apiAccess === "private") return unregistered;
  const label = dnsLabel(clusterName, subscriptionId);
  const name = await arm.get<{ available: boolean }>(
    `${subscription}/providers/Microsoft.Network/locations/${location}/CheckDnsNameAvailability`,
    { domainNameLabel: label, "api-version": "2024-05-01" },
    { available: true },
  );
  if (name === undefined || name.available) return unregistered;
  return [
    ...unregistered,
    `the API's public address would be ${label} in ${location}, which another address is called already, perhaps of another stack with this name: ` +
      "delete that one, or take another (pulumi config set clusterName NAME)",
  ];
}
