import { Address4 } from "ip-address";

import type { Settings } from "../settings/settings";
import { parseSubnet } from "../settings/azure-ids";
import type { AzureConnection, Example } from "./resource-manager";
import { type Permission, permissionsAt } from "./rights";
import type { Route } from "./routes";
import type { SecurityRule } from "./security-rules";

/** A subnet that is not this stack's, and what belongs to it. */
export interface ExistingSubnet {
  readonly id: string;
  readonly name: string;
  readonly ranges: readonly string[];
  /** Services that the subnet is kept for. */
  readonly delegations: readonly string[];
  /** Azure's ids. */
  readonly securityGroup?: string;
  readonly routeTable?: string;
  readonly gateway?: string;
  /** How many addresses nothing has; undefined where the login may not read it. */
  readonly free?: number;
  /** What the login may do in it; empty where Azure does not say. */
  readonly permissions: readonly Permission[];
}

interface Gateway {
  /** Public ranges that it sends from. */
  readonly ranges: readonly string[];
  /** The only zone that it is in; undefined where Azure has chosen one, or it is in several. */
  readonly zone?: string;
}

/** A virtual network that is not this stack's, as far as the machines' subnets need it. */
export interface ExistingNetwork {
  readonly id: string;
  readonly location: string;
  /** Its own, and those of networks it is peered with. */
  readonly ranges: readonly string[];
  /** Its own DNS servers, which its machines ask in place of Azure's. */
  readonly dnsServers: readonly string[];
  /** Those of its subnets that the settings name, by lower-case id. */
  readonly subnets: ReadonlyMap<string, ExistingSubnet>;
  /** By lower-case id of the security group, Azure's own rules included. */
  readonly rules: ReadonlyMap<string, readonly SecurityRule[]>;
  /** By the same. */
  readonly groupTags: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** By lower-case id of the route table. */
  readonly routes: ReadonlyMap<string, readonly Route[]>;
  /** What the login may do in it; empty where Azure does not say. */
  readonly permissions: readonly Permission[];
  /** By lower-case id of the NAT gateway. */
  readonly egress: ReadonlyMap<string, Gateway>;
  /** Ids of what belongs to the subnets and the login may not read. */
  readonly unreadable: readonly string[];
}

/** A network may have IPv6 as well, and a cluster has none. */
const onlyIPv4 = (ranges: readonly string[]): string[] =>
  ranges.filter((range) => Address4.isValid(range));

export interface Ref {
  readonly id: string;
}

interface Subnet {
  readonly id: string;
  readonly name: string;
  readonly properties: {
    readonly addressPrefix?: string;
    readonly addressPrefixes?: readonly string[];
    readonly delegations?: readonly { readonly properties?: { readonly serviceName?: string } }[];
    readonly networkSecurityGroup?: Ref;
    readonly routeTable?: Ref;
    readonly natGateway?: Ref;
  };
}

interface VirtualNetwork {
  readonly location: string;
  readonly properties: {
    readonly addressSpace: { readonly addressPrefixes: readonly string[] };
    readonly dhcpOptions?: { readonly dnsServers?: readonly string[] };
    readonly subnets: readonly Subnet[];
    /** Of SKU StandardV2: it serves each subnet that has none of its own. */
    readonly defaultPublicNatGateway?: Ref;
    readonly virtualNetworkPeerings?: readonly {
      readonly properties?: {
        readonly remoteAddressSpace?: { readonly addressPrefixes?: readonly string[] };
      };
    }[];
  };
}

/** The first that shows a network's own NAT gateway. */
export const networkVersion = { "api-version": "2024-07-01" };

/** By which Azure's ids are compared. */
export const keyOf = (id: string): string => id.toLowerCase();

/** The subnet of a zone, of one for all or one for each. */
export const subnetIdOf = (
  { nodeSubnets, zones }: Pick<Settings, "nodeSubnets" | "zones">,
  zone: string,
): string => nodeSubnets[zones.indexOf(zone)] ?? nodeSubnets[0]!;

/** The routes of a subnet's table. */
export const tableOf = (
  { routeTable }: Pick<ExistingSubnet, "routeTable">,
  { routes }: Pick<ExistingNetwork, "routes">,
): readonly Route[] => routes.get(keyOf(routeTable ?? "")) ?? [];

/** What the cloud provider has rights on in a network of others, each its own. */
export type NetworkPart = "network" | "subnet" | "security-group";

export const networkParts = (
  { cloudProvider }: Pick<Settings, "cloudProvider">,
  network: ExistingNetwork | undefined,
): { readonly scope: string; readonly part: NetworkPart }[] =>
  !cloudProvider || network === undefined
    ? []
    : [
        { scope: network.id, part: "network" },
        // Azure may show an id in another case the next time, and the name of an assignment follows from its scope.
        ...[...network.subnets.keys()].map((scope) => ({ scope, part: "subnet" as const })),
        ...[...network.rules.keys()].map((scope) => ({ scope, part: "security-group" as const })),
      ];

/**
 * Asks for the network that the settings name; undefined where they name none, or Azure has none, or none that
 * the login may read.
 */
export async function getExistingNetwork(
  { nodeSubnets }: Pick<Settings, "nodeSubnets">,
  { arm }: AzureConnection,
): Promise<ExistingNetwork | undefined> {
  const id = parseSubnet(nodeSubnets[0] ?? "")?.networkId;
  if (id === undefined) return undefined;
  const network = await arm.getIfReadable<VirtualNetwork>(id, networkVersion, {
    location: "",
    properties: { addressSpace: {} },
  });
  if (network === undefined || network === "unreadable") return undefined;
  const [usages, permissions] = await Promise.all([
    arm.listIfReadable<Usage>(`${id}/usages`, networkVersion, {
      id: "",
      currentValue: 0,
      limit: 0,
    }),
    permissionsAt(arm, id),
  ]);
  const {
    addressSpace,
    defaultPublicNatGateway,
    dhcpOptions,
    subnets: all = [],
    virtualNetworkPeerings = [],
  } = network.properties;
  const wanted = new Set(nodeSubnets.map(keyOf));
  const found = all.filter((one) => wanted.has(keyOf(one.id)));
  const subnets = await Promise.all(
    found.map(async ({ id: subnetId, name, properties }): Promise<ExistingSubnet> => {
      return {
        id: subnetId,
        name,
        ranges: onlyIPv4(properties.addressPrefixes ?? [properties.addressPrefix!]),
        delegations: (properties.delegations ?? []).map((one) => one.properties?.serviceName ?? ""),
        securityGroup: properties.networkSecurityGroup?.id,
        routeTable: properties.routeTable?.id,
        gateway: (properties.natGateway ?? defaultPublicNatGateway)?.id,
        free: usages === "unreadable" ? undefined : freeIn(usages, subnetId),
        // A right at the subnet does not show at the network.
        permissions: await permissionsAt(arm, subnetId),
      };
    }),
  );
  const unreadable: string[] = [];
  const read: Read = async (one, example) => {
    const answer = await arm.getIfReadable(one, networkVersion, example);
    if (answer !== "unreadable") return answer;
    unreadable.push(one);
    return undefined;
  };
  const [groups, routes, egress] = await Promise.all([
    ofEach(
      subnets.map(({ securityGroup }) => securityGroup),
      (one) => groupOf(read, one),
    ),
    ofEach(
      subnets.map(({ routeTable }) => routeTable),
      (one) => routesOf(read, one),
    ),
    ofEach(
      subnets.map(({ gateway }) => gateway),
      (one) => gatewayOf(read, one),
    ),
  ]);
  return {
    id,
    permissions,
    location: network.location,
    ranges: onlyIPv4([
      ...addressSpace.addressPrefixes,
      ...virtualNetworkPeerings.flatMap(
        ({ properties }) => properties?.remoteAddressSpace?.addressPrefixes ?? [],
      ),
    ]),
    dnsServers: dhcpOptions?.dnsServers ?? [],
    subnets: new Map(subnets.map((one) => [keyOf(one.id), one])),
    rules: new Map([...groups].map(([key, { rules }]) => [key, rules])),
    groupTags: new Map([...groups].map(([key, { tags }]) => [key, tags])),
    routes,
    egress,
    unreadable,
  };
}

interface Usage {
  readonly id: string;
  readonly currentValue: number;
  readonly limit: number;
}

function freeIn(usages: readonly Usage[], subnetId: string): number {
  const usage = usages.find(({ id }) => keyOf(id) === keyOf(subnetId));
  return usage === undefined ? 0 : usage.limit - usage.currentValue;
}

/** Asks for a resource; undefined where there is none, or none that the login may read. */
export type Read = <T>(id: string, example: Example<T>) => Promise<T | undefined>;

async function ofEach<T>(
  ids: readonly (string | undefined)[],
  ask: (id: string) => Promise<T>,
): Promise<Map<string, T>> {
  const distinct = [...new Set(ids.flatMap((id) => (id === undefined ? [] : [keyOf(id)])))];
  return new Map(await Promise.all(distinct.map(async (id) => [id, await ask(id)] as const)));
}

async function groupOf(read: Read, id: string) {
  const group = await read<{
    tags?: Record<string, string>;
    properties: { securityRules?: SecurityRule[]; defaultSecurityRules?: SecurityRule[] };
  }>(id, { properties: {} });
  const { securityRules = [], defaultSecurityRules = [] } = group?.properties ?? {};
  return { rules: [...securityRules, ...defaultSecurityRules], tags: group?.tags ?? {} };
}

async function routesOf(read: Read, id: string): Promise<readonly Route[]> {
  const table = await read<{ properties: { routes?: Route[] } }>(id, { properties: {} });
  return table?.properties.routes ?? [];
}

async function gatewayOf(read: Read, id: string): Promise<Gateway> {
  const gateway = await read<{
    zones?: string[];
    properties: { publicIpAddresses?: Ref[]; publicIpPrefixes?: Ref[] };
  }>(id, { properties: {} });
  const { publicIpAddresses = [], publicIpPrefixes = [] } = gateway?.properties ?? {};
  const [zone, ...others] = gateway?.zones ?? [];
  return {
    zone: others.length === 0 ? zone : undefined,
    ranges: await rangesOf(read, [...publicIpAddresses, ...publicIpPrefixes]),
  };
}

/** Of public addresses and prefixes. */
export async function rangesOf(read: Read, refs: readonly Ref[]): Promise<string[]> {
  const found = await Promise.all(
    refs.map(({ id }) =>
      read<{ properties: { ipAddress?: string; ipPrefix?: string } }>(id, { properties: {} }),
    ),
  );
  return found.flatMap((one) => {
    const { ipAddress, ipPrefix } = one?.properties ?? {};
    return ipPrefix ?? (ipAddress === undefined ? [] : `${ipAddress}/32`);
  });
}
