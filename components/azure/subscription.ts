import { hasIssuer } from "../settings/logins";
import { toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { AzureConnection } from "./resource-manager";
import type { PlannedResource } from "./policy-restrictions";
import {
  apiBalancerName,
  dnsLabel,
  groupId,
  groupWord,
  issuerAccount,
  issuerContainer,
} from "./resource-names";
import { rightsProblems } from "./rights";
import { type Shown, shownAs, type ShownResource } from "./shown";
import type { AzureAnswer } from "./state";

interface Provider {
  readonly namespace: string;
  readonly registrationState: string;
}

/**
 * What a subscription lacks for its first cluster of this stack, as far as Azure says it beforehand:
 * that it is in use, the login's rights, and the names that a region or all of Azure has once.
 */
export async function subscriptionProblems(
  settings: Settings,
  shown: Shown,
  connection: AzureConnection,
): Promise<string[]> {
  const address = shownAs(
    "azure-native:network:PublicIPAddress",
    apiBalancerName(settings.clusterName),
  );
  // An update that was interrupted may have made the address already.
  const needsLabel = settings.apiAccess === "public" && !shown.has(address);
  const problems = await Promise.all([
    stateProblems(connection),
    rightsProblems(settings, connection),
    needsLabel ? labelProblems(settings, connection) : [],
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

/** Where Azure does not say it, as before Microsoft.Network is registered, nothing is known. */
async function labelProblems(
  { clusterName, location }: Settings,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const label = dnsLabel(clusterName, subscriptionId);
  const answer = await arm
    .get<{ available: boolean }>(
      `/subscriptions/${subscriptionId}/providers/Microsoft.Network/locations/${location}/CheckDnsNameAvailability`,
      { domainNameLabel: label, "api-version": "2024-05-01" },
      { available: true },
    )
    .catch(() => undefined);
  if (answer === undefined || answer.available) return [];
  return [
    `the API's public address would be ${label} in ${location}, which another address is called already, perhaps of another stack with this name: ` +
      "delete that one, or take another (pulumi config set clusterName NAME)",
  ];
}

/**
 * Properties of an account by which Entra reads its documents and this program writes them, each with the option of
 * `az storage account update`. They are so where Azure does not show them.
 */
const accountNeeds: readonly [path: string, needed: unknown, option: string][] = [
  ["allowBlobPublicAccess", true, "--allow-blob-public-access"],
  ["publicNetworkAccess", "Enabled", "--public-network-access"],
  ["networkAcls.defaultAction", "Allow", "--default-action"],
  ["allowSharedKeyAccess", true, "--allow-shared-key-access"],
];

/** What others have changed of the issuer's account: Azure shows it as well, and nobody logs in any more. */
function changedAccount(settings: Settings, { name, properties = {} }: ShownResource): string[] {
  const { networkAcls } = properties as { networkAcls?: { defaultAction?: unknown } };
  const values: Readonly<Record<string, unknown>> = {
    ...properties,
    "networkAcls.defaultAction": networkAcls?.defaultAction,
  };
  const changed = accountNeeds.filter(([path, needed]) => (values[path] ?? needed) !== needed);
  if (changed.length === 0) return [];
  const found = changed.map(([path]) => `${path} ${String(values[path])}`).join(", ");
  const remedies = changed.map(([, needed, option]) => `${option} ${String(needed)}`).join(" ");
  return [
    `the storage account ${name} of the token issuer has ${found}. Entra has to read its documents as anybody does, or no service account logs in at Azure, and this program writes them by the account's key: ` +
      "have a policy that changes it back leave it alone (az policy exemption create), then " +
      `az storage account update --name ${name} --resource-group ${groupWord(settings)} ${remedies}`,
  ];
}

/** The same of its container. One that is not there is still to be made. */
async function closedContainer(
  settings: Settings,
  name: string,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const account = `${groupId(settings, subscriptionId)}/providers/Microsoft.Storage/storageAccounts/${name}`;
  const container = await arm
    .get<{ readonly properties: { readonly publicAccess?: string } }>(
      `${account}/blobServices/default/containers/${issuerContainer}`,
      { "api-version": "2024-01-01" },
      { properties: {} },
    )
    .catch(() => undefined);
  if (container?.properties.publicAccess !== "None") return [];
  return [
    `the container ${issuerContainer} of the storage account ${name} has publicAccess None. Entra has to read the token issuer's documents there as anybody does, ` +
      "or no service account logs in at Azure: have whatever closes it leave it alone, then " +
      `az storage container-rm update --storage-account ${name} --resource-group ${groupWord(settings)} --name ${issuerContainer} --public-access blob`,
  ];
}

/**
 * Likewise of the token issuer's storage account, of whose names all of Azure has each once. A living cluster may want
 * it for the first time, or find it changed.
 */
export async function accountProblems(
  settings: Settings,
  { isBegun, shown }: Pick<AzureAnswer, "isBegun" | "shown">,
  connection: AzureConnection,
): Promise<string[]> {
  if (!hasIssuer(settings)) return [];
  const { arm, subscriptionId } = connection;
  const name = issuerAccount(settings.clusterName, subscriptionId);
  const own = shown.get(shownAs("azure-native:storage:StorageAccount", name));
  if (own !== undefined) {
    return [
      ...changedAccount(settings, own),
      ...(await closedContainer(settings, name, connection)),
    ];
  }
  const answer = await arm
    .query<{ nameAvailable: boolean }>(
      `/subscriptions/${subscriptionId}/providers/Microsoft.Storage/checkNameAvailability`,
      { "api-version": "2024-01-01" },
      { name, type: "Microsoft.Storage/storageAccounts" },
      { nameAvailable: true },
    )
    .catch(() => undefined);
  if (answer === undefined || answer.nameAvailable) return [];
  return [
    `the storage account of the token issuer would be ${name}, which another one is called already, perhaps that of another cluster with this name: ` +
      (isBegun
        ? "its name follows from clusterName, which stays, so have that one deleted, or take away what wants an issuer (workloadIdentities, machineIdentity false)"
        : `take another (${toSet("clusterName", "NAME")})`),
  ];
}

/**
 * Which resource providers a subscription has yet to register for these resources. Those of what is there
 * already are.
 */
export async function providerProblems(
  resources: readonly PlannedResource[],
  shown: Shown,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const there = new Set([...shown.values()].map(({ type }) => namespaceOf(type)));
  const namespaces = new Set(resources.map(({ content }) => namespaceOf(content.type)));
  const providers = await Promise.all(
    [...namespaces]
      .filter((namespace) => !there.has(namespace) && namespace !== "Microsoft.Resources")
      .map((namespace) =>
        arm.get<Provider>(
          `/subscriptions/${subscriptionId}/providers/${namespace}`,
          { "api-version": "2021-04-01" },
          { namespace: "", registrationState: "" },
        ),
      ),
  );
  return providers.flatMap((provider) =>
    provider === undefined || provider.registrationState === "Registered"
      ? []
      : [
          `the resource provider ${provider.namespace} is ${provider.registrationState} in subscription ${subscriptionId}, and Azure refuses what is made of it: ` +
            `az provider register --namespace ${provider.namespace} --wait`,
        ],
  );
}

const namespaceOf = (type: unknown): string => String(type).split("/")[0]!;
