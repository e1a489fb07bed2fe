import { AzureError, refuse } from "../azure-error";
import { ResourceManager } from "../resource-manager";
import {
  account,
  Body,
  groupType,
  type Resource,
  subscriptionPath,
  type View,
} from "../resources/resource";
import { versionsOf as apiVersionsOf, featureAt, featureBody } from "../subscription/providers";
import { imageFeatures, skusIn, versionsOf } from "../subscription/offers";
import { checkedLocation, displayName, normalLocation, regions } from "../subscription/regions";
import { builtInRole } from "../types/authorization/role";
import { freeAddresses, parseRange, type Range } from "../types/network/common";
import { checkLabel, isFreeLabel } from "../types/network/public-ip-address";
import { subnet, type SubnetBody, subnetRanges } from "../types/network/virtual-network";
import { schemaOf } from "../types/resource-type";
import { resourceTypes } from "../types/types";
import { invalidFilter } from "./lists";

export const subscriptionBody = {
  id: subscriptionPath,
  subscriptionId: account.subscriptionId,
  tenantId: account.tenantId,
  displayName: "Local Azure",
  state: "Enabled",
  authorizationSource: "RoleBased",
  subscriptionPolicies: {
    locationPlacementId: "Public_2014-09-01",
    quotaId: "PayAsYouGo_2014-09-01",
    spendingLimit: "Off",
  },
};

/** What a subscription has besides resources, at a path below it; undefined for other paths. */
export function subscriptionAnswer(
  arm: ResourceManager,
  path: string,
  query: URLSearchParams,
): { readonly list: readonly unknown[] } | { readonly body: unknown } | undefined {
  const at = path.slice(subscriptionPath.length + 1);
  if (/^locations$/i.test(at)) return { list: Object.keys(regions).map(locationBody) };
  if (/^providers$/i.test(at)) return { list: namespaces.map(providerBody) };
  const [, role = ""] =
    /^providers\/Microsoft\.Authorization\/roleDefinitions\/([^/]+)$/i.exec(at) ?? [];
  const properties = builtInRole(role);
  if (properties !== undefined) return { body: { id: path, name: role, properties } };
  const feature = featureAt(path);
  if (feature !== undefined && feature.action === undefined) {
    return { body: featureBody(feature.feature, arm.view) };
  }
  const [, namespace] = /^providers\/([^/]+)$/i.exec(at) ?? [];
  if (namespace !== undefined) return { body: providerBody(knownNamespace(namespace)) };
  if (/^providers\/Microsoft\.Compute\/skus$/i.test(at)) {
    return { list: skus(query.get("$filter") ?? "") };
  }
  const [, dnsRegion] =
    /^providers\/Microsoft\.Network\/locations\/([^/]+)\/CheckDnsNameAvailability$/i.exec(at) ?? [];
  if (dnsRegion !== undefined) {
    return { body: { available: isFree(arm, dnsRegion, query.get("domainNameLabel") ?? "") } };
  }
  const [, provider, location = "", rest] =
    /^providers\/Microsoft\.(Compute|Network)\/locations\/([^/]+)\/(usages|publishers\/.+)$/i.exec(
      at,
    ) ?? [];
  if (rest === undefined) return undefined;
  const region = checkedLocation(normalLocation(location), "locations");
  const isCompute = provider!.toLowerCase() === "compute";
  if (/^usages$/i.test(rest)) {
    return { list: arm.usagesIn(region, isCompute ? "compute" : "network") };
  }
  return isCompute ? { body: imageVersions(region, rest) } : undefined;
}

function isFree(arm: ResourceManager, region: string, label: string): boolean {
  checkLabel(label);
  const location = checkedLocation(normalLocation(region), "locations");
  return isFreeLabel(label, location, arm.list(subscriptionPath));
}

function skus(filter: string): object[] {
  if (filter === "") return Object.keys(regions).flatMap((region) => skusIn(region));
  const [, location] = /^\s*location\s+eq\s+'([^']*)'\s*$/i.exec(filter) ?? [];
  if (location === undefined) throw invalidFilter(filter);
  return skusIn(normalLocation(location));
}

/** Unlike other lists, that of an image's versions is a bare array. */
function imageVersions(location: string, path: string): unknown {
  const [, publisher, offer, sku, version] =
    /^publishers\/([^/]+)\/artifacttypes\/vmimage\/offers\/([^/]+)\/skus\/([^/]+)\/versions(?:\/([^/]+))?$/i.exec(
      path,
    ) ?? [];
  const urn = [publisher, offer, sku].join(":");
  const known = versionsOf(urn);
  if (known === undefined || (version !== undefined && !known.includes(version))) {
    throw new AzureError(404, "NotFound", "Artifact: VMImage was not found.");
  }
  const id = `${subscriptionPath}/Providers/Microsoft.Compute/Locations/${location}/Publishers/${publisher}/ArtifactTypes/VMImage/Offers/${offer}/Skus/${sku}/Versions`;
  const entry = (name: string) => ({ location, name, id: `${id}/${name}` });
  return version === undefined
    ? known.map(entry)
    : { ...entry(version), properties: { features: imageFeatures(urn) } };
}

const locationBody = (name: string) => ({
  id: `${subscriptionPath}/locations/${name}`,
  name,
  type: "Region",
  displayName: displayName(name),
  regionalDisplayName: displayName(name),
  metadata: { regionType: "Physical" },
  availabilityZoneMappings: regions[name]?.map((zone) => ({
    logicalZone: zone,
    physicalZone: `${name}-az${zone}`,
  })),
});

const namespaces = [...new Set(resourceTypes.map(({ type }) => type.split("/")[0]!))];

function knownNamespace(namespace: string): string {
  const known = namespaces.find((one) => one.toLowerCase() === namespace.toLowerCase());
  if (known !== undefined) return known;
  throw new AzureError(
    404,
    "InvalidResourceNamespace",
    `The resource namespace '${namespace}' is invalid.`,
  );
}

/** Regions are named for people here, also in the mappings of zones. */
const providerBody = (namespace: string): Body => ({
  id: `${subscriptionPath}/providers/${namespace}`,
  namespace,
  registrationState: "Registered",
  registrationPolicy: "RegistrationRequired",
  resourceTypes: resourceTypes
    .filter(({ type }) => type.startsWith(`${namespace}/`) && type !== groupType)
    .map((one) => ({ ...one, ...schemaOf(one) }))
    .map(({ type, zones, inputs }) => ({
      resourceType: type.slice(namespace.length + 1),
      locations: inputs.includes("location") ? Object.keys(regions).map(displayName) : [],
      apiVersions: apiVersionsOf(type).toReversed(),
      ...(zones && {
        zoneMappings: Object.entries(regions).flatMap(([name, ofRegion]) =>
          ofRegion.length === 0 ? [] : [{ location: displayName(name), zones: ofRegion }],
        ),
      }),
      capabilities: inputs.includes("tags") ? "SupportsTags, SupportsLocation" : "None",
    })),
});

/** Azure keeps the first four addresses of a range, and its last. */
const kept = 5;

/** What a virtual network says of its addresses; undefined for other paths. */
export async function networkAnswer(
  arm: ResourceManager,
  path: string,
  query: URLSearchParams,
): Promise<Body | undefined> {
  const [, id = "", question = ""] =
    /^(.+\/virtualNetworks\/[^/]+)\/(usages|CheckIPAddressAvailability)$/i.exec(path) ?? [];
  if (question === "") return undefined;
  await arm.get(id);
  const { view } = arm;
  const subnets = view.children(id, subnet.type);
  return /^usages$/i.test(question)
    ? { value: subnets.map((one) => usageOf(one, view)) }
    : availability(query.get("ipAddress") ?? "", subnets, view, id);
}

function usageOf(one: Resource, view: View): Body {
  const sizes = rangesOf(one).map(({ first, last }) => Number(last - first) + 1 - kept);
  return {
    id: one.id,
    currentValue: takenIn(one, view).size,
    limit: sizes.reduce((sum, size) => sum + size, 0),
    name: { value: "SubnetSpace", localizedValue: "Subnet size and usage" },
    unit: "Count",
  };
}

function availability(
  address: string,
  subnets: readonly Resource[],
  view: View,
  network: string,
): Body {
  const { first } = parseRange(`${address}/32`, network);
  const holder = subnets.find((one) =>
    rangesOf(one).some((range) => range.first <= first && first <= range.last),
  );
  if (holder === undefined) {
    throw refuse(
      "PrivateIPAddressNotInAnySubnet",
      `Private static IP address ${address} does not belong to the range of any subnet of virtual network ${network}.`,
    );
  }
  const free = freeAddresses(rangesOf(holder), takenIn(holder, view));
  return free.includes(address)
    ? { available: true, availableIPAddresses: [], isPlatformReserved: false }
    : { available: false, availableIPAddresses: free.slice(0, 5), isPlatformReserved: false };
}

const rangesOf = ({ id, body }: Resource): Range[] => subnetRanges(body as SubnetBody, id);

const takenIn = ({ id }: Resource, view: View): Set<string> =>
  new Set(view.referrers(id).flatMap(({ address }) => address ?? []));
