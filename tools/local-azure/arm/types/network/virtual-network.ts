import { AzureError, refuse, subResourceNotFound } from "../../azure-error";
import {
  Body,
  isWithin,
  keyOf,
  parseId,
  Reference,
  View,
  withoutUndefined,
} from "../../resources/resource";
import { ResourceType } from "../resource-type";
import {
  checkNames,
  checkStatic,
  ChildList,
  firstFree,
  guidOf,
  networkName,
  overlap,
  parseRange,
  Range,
  Ref,
  referencesTo,
  within,
} from "./common";

export type SubnetBody = {
  addressPrefix?: string;
  addressPrefixes?: string[];
  networkSecurityGroup?: Ref;
  routeTable?: Ref;
  natGateway?: Ref;
  defaultOutboundAccess?: boolean;
  delegations?: unknown[];
};

export const subnet: ResourceType<SubnetBody> = {
  token: "azure-native:network:Subnet",
  type: "Microsoft.Network/virtualNetworks/subnets",
  nested: ["delegations[]"],
  name: networkName,
  lock: ({ parent }) => parent,
  notFound: subResourceNotFound,

  references: referencesOf,

  accept({ id, body, old }, view) {
    checkNat(body, id.parent, view);
    const ranges = subnetRanges(body, id.id);
    const network = view.find(id.parent);
    const virtualNetworkName = id.names[0]!;
    const space = (network?.body["addressSpace"] as { addressPrefixes: string[] }).addressPrefixes;
    checkFits(
      id.name,
      ranges,
      space.map((prefix) => parseRange(prefix, id.parent)),
      virtualNetworkName,
    );
    const siblings = view
      .children(id.parent, subnet.type)
      .filter((sibling) => keyOf(sibling.id) !== id.key);
    const taken = siblings.flatMap((sibling) => subnetRanges(sibling.body, sibling.id));
    checkApart(id.name, ranges, taken, virtualNetworkName);
    if (old) checkChange(body, old.body, id.id, view);
    return { body: completeSubnet(body) };
  },

  shown: ({ id }, view) => withoutUndefined({ ipConfigurations: usersOf(id, view) }),

  inUse: subnetInUse,
};

function referencesOf(
  { networkSecurityGroup, routeTable, natGateway }: SubnetBody,
  id: string,
): Reference[] {
  return referencesTo(id, [networkSecurityGroup, routeTable, natGateway]);
}

/** A NAT gateway is of subnets of one network (microsoft/azure_arc #3288). */
function checkNat({ natGateway }: SubnetBody, network: string, view: View): void {
  const other = view.referrers(natGateway?.id ?? "").find(({ owner }) => !isWithin(owner, network));
  if (other === undefined) return;
  throw refuse(
    "NatGatewayCannotBeUsedBySubnetsBelongingToDifferentVirtualNetworks",
    `NAT Gateway cannot be configured on multiple virtual networks. NAT Gateway ${natGateway!.id} is already used by ${other.owner}.`,
  );
}

/** Adds defaults. */
const completeSubnet = (body: SubnetBody): SubnetBody & Body => ({
  delegations: [],
  privateEndpointNetworkPolicies: "Disabled",
  privateLinkServiceNetworkPolicies: "Enabled",
  ...body,
});

export function subnetRanges({ addressPrefix, addressPrefixes }: SubnetBody, id: string): Range[] {
  const prefixes = addressPrefixes ?? (addressPrefix === undefined ? [] : [addressPrefix]);
  if (prefixes.length === 0) {
    throw refuse(
      "InvalidRequestFormat",
      `Subnet ${id} has neither addressPrefix nor addressPrefixes.`,
    );
  }
  return prefixes.map((prefix) => parseRange(prefix, id));
}

/** Of a /29. */
const leastAddresses = 8n;

/**
 * Loopback, link-local, multicast and broadcast addresses, and Azure's own service.
 *
 * @see https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq
 */
const reservedRanges = [
  "127.0.0.0/8",
  "169.254.0.0/16",
  "168.63.129.16/32",
  "224.0.0.0/4",
  "255.255.255.255/32",
].map((prefix) => parseRange(prefix, "Azure"));

function checkSpace(space: readonly Range[], network: string): void {
  for (const [index, range] of space.entries()) {
    const reserved = reservedRanges.find((one) => overlap(one, range));
    if (reserved !== undefined) {
      throw refuse(
        "NetcfgInvalidIPAddressPrefix",
        `IP address prefix ${range.prefix} of virtual network '${network}' overlaps with the reserved range ${reserved.prefix}.`,
      );
    }
    const other = space.slice(0, index).find((before) => overlap(before, range));
    if (other === undefined) continue;
    throw refuse(
      "NetcfgInvalidVirtualNetworkSite",
      `Address prefixes ${other.prefix} and ${range.prefix} of virtual network '${network}' overlap.`,
    );
  }
}

function checkFits(
  name: string,
  ranges: readonly Range[],
  space: readonly Range[],
  network: string,
): void {
  if (ranges.some(({ first, last }) => last - first + 1n < leastAddresses)) {
    throw refuse(
      "NetcfgInvalidSubnet",
      `Subnet '${name}' is not valid in virtual network '${network}'.`,
    );
  }
  if (ranges.every((range) => space.some((outer) => within(range, outer)))) return;
  throw refuse(
    "NetcfgSubnetRangeOutsideVnet",
    `Subnet '${name}' is not valid because its IP address range is outside the IP address range of virtual network '${network}'.`,
  );
}

function checkApart(
  name: string,
  ranges: readonly Range[],
  taken: readonly Range[],
  network: string,
): void {
  if (!taken.some((other) => ranges.some((range) => overlap(range, other)))) return;
  throw refuse(
    "NetcfgSubnetRangesOverlap",
    `Subnet '${name}' is not valid because its IP address range overlaps with that of an existing subnet in virtual network '${network}'.`,
  );
}

function usersOf(id: string, view: View): Ref[] | undefined {
  const users = view.referrers(id);
  return users.length === 0 ? undefined : users.map(({ from }) => ({ id: from }));
}

function subnetInUse(id: string, users: readonly Reference[]): AzureError {
  return refuse(
    "InUseSubnetCannotBeDeleted",
    `Subnet ${id.split("/").at(-1)} is in use by ${users.map(({ from }) => from).join(", ")} and cannot be deleted. ` +
      "In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.",
  );
}

function checkSubnetUnused(id: string, view: View): void {
  const users = view.referrers(id);
  if (users.length > 0) throw subnetInUse(id, users);
}

/** Address range and default outbound access can change only while the subnet is unused. */
function checkChange(body: SubnetBody, old: SubnetBody, id: string, view: View): void {
  const users = usersOf(id, view);
  if (users === undefined) return;
  const ranges = (one: SubnetBody) =>
    subnetRanges(one, id)
      .map(({ prefix }) => prefix)
      .join();
  if (ranges(body) !== ranges(old)) {
    throw refuse(
      "InUsePrefixCannotBeDeleted",
      `IpPrefix ${ranges(old)} on Subnet ${id.split("/").at(-1)} has active allocations and cannot be deleted.`,
    );
  }
  if ((body.defaultOutboundAccess ?? true) !== (old.defaultOutboundAccess ?? true)) {
    throw refuse(
      "SubnetDefaultOutboundAccessCannotBeChanged",
      `Default outbound access of subnet ${id} cannot be changed while it is in use by ${users[0]?.id}.`,
    );
  }
}

interface Wanted {
  readonly privateIPAddress?: string;
  readonly privateIPAllocationMethod?: string;
}

/**
 * The private IP address for one reference to a subnet: the requested static one, the previous one,
 * or the lowest free one.
 */
export function assignAddress(
  wanted: Wanted,
  before: Wanted | undefined,
  subnet: string,
  from: string,
  view: View,
) {
  const resource = view.find(subnet);
  if (resource === undefined)
    throw new Error(`the subnet ${subnet} of ${from} was not checked to exist`);
  const ranges = subnetRanges(resource.body as SubnetBody, resource.id);
  const holders = new Map<string, string>();
  for (const { from: holder, address } of view.referrers(subnet)) {
    if (address !== undefined && keyOf(holder) !== keyOf(from)) holders.set(address, holder);
  }

  const isStatic = wanted.privateIPAllocationMethod?.toLowerCase() === "static";
  if (isStatic) {
    const address = wanted.privateIPAddress ?? "";
    checkStatic(address, ranges);
    const holder = holders.get(address);
    if (holder !== undefined) {
      throw refuse(
        "PrivateIPAddressIsAllocated",
        `IP configuration ${from} is using the private IP address ${address} which is already allocated to resource ${holder}.`,
      );
    }
    return { privateIPAddress: address, privateIPAllocationMethod: "Static" };
  }
  const address = before?.privateIPAddress ?? firstFree(ranges, new Set(holders.keys()));
  if (address === undefined) {
    const prefixes = ranges.map(({ prefix }) => prefix).join(",");
    throw refuse(
      "SubnetIsFull",
      `Subnet ${resource.id.split("/").at(-1)} with address prefix ${prefixes} does not have enough capacity for 1 IP addresses.`,
    );
  }
  return { privateIPAddress: address, privateIPAllocationMethod: "Dynamic" };
}

type PeeringBody = {
  remoteVirtualNetwork: Ref;
  allowVirtualNetworkAccess?: boolean;
  allowForwardedTraffic?: boolean;
};

interface Network {
  readonly addressSpace: { readonly addressPrefixes: readonly string[] };
}

const prefixesOf = (network: string, view: View): readonly string[] =>
  (view.find(network)?.body as Network | undefined)?.addressSpace.addressPrefixes ?? [];

/** One side of a peering: nothing passes until the other network has one that leads back. */
export const virtualNetworkPeering: ResourceType<PeeringBody> = {
  token: "azure-native:network:VirtualNetworkPeering",
  type: "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
  required: ["remoteVirtualNetwork.id"],
  readOnly: [
    "peeringState",
    "peeringSyncLevel",
    "remoteAddressSpace",
    "remoteVirtualNetworkAddressSpace",
  ],
  name: networkName,
  lock: ({ parent }) => parent,
  notFound: subResourceNotFound,

  accept({ id, body }, view) {
    const remote = body.remoteVirtualNetwork.id ?? "";
    if (view.find(remote) === undefined) {
      throw refuse(
        "RemoteVnetNotFound",
        `Remote virtual network ${remote} of peering ${id.id} was not found.`,
      );
    }
    const ranges = (network: string) =>
      prefixesOf(network, view).map((prefix) => parseRange(prefix, network));
    const both = ranges(id.parent).filter((one) =>
      ranges(remote).some((other) => overlap(one, other)),
    );
    if (both.length > 0) {
      throw refuse(
        "VnetAddressSpacesOverlap",
        `Cannot create or update peering ${id.id}. Virtual networks ${id.parent} and ${remote} cannot be peered because their address ` +
          `spaces overlap. Overlapping address prefixes: ${both.map(({ prefix }) => prefix).join(", ")}`,
      );
    }
    return { body: { allowVirtualNetworkAccess: true, allowForwardedTraffic: false, ...body } };
  },

  shown({ id, body }, view) {
    const own = parseId(id)!.parent;
    const remote = body.remoteVirtualNetwork.id ?? "";
    const isAnswered = view
      .children(remote, virtualNetworkPeering.type)
      .some((one) => keyOf((one.body as PeeringBody).remoteVirtualNetwork.id ?? "") === keyOf(own));
    const space = { addressPrefixes: prefixesOf(remote, view) };
    return {
      peeringState: isAnswered ? "Connected" : view.find(remote) ? "Initiated" : "Disconnected",
      peeringSyncLevel: isAnswered ? "FullyInSync" : "RemoteNotInSync",
      remoteAddressSpace: space,
      remoteVirtualNetworkAddressSpace: space,
    };
  },
};

/** As the network itself has them. */
const peeringsOf = (network: string, view: View): Body[] =>
  view.children(network, virtualNetworkPeering.type).map((one) => ({
    ...{ id: one.id, name: one.id.split("/").at(-1), type: virtualNetworkPeering.type },
    ...one.body,
    ...virtualNetworkPeering.shown?.(one as never, view),
  }));

type VirtualNetworkBody = {
  location: string;
  addressSpace: { addressPrefixes: string[] };
  subnets?: (SubnetBody & { name: string })[];
  enableDdosProtection?: boolean;
};

const subnets = new ChildList("subnets", subnet, completeSubnet);

export const virtualNetwork: ResourceType<VirtualNetworkBody> = {
  token: "azure-native:network:VirtualNetwork",
  type: "Microsoft.Network/virtualNetworks",
  required: ["addressSpace.addressPrefixes"],
  forceNew: ["location"],
  maintainIfUnset: ["subnets", "virtualNetworkPeerings"],
  nested: ["subnets[]", "subnets[].delegations[]", "virtualNetworkPeerings[]"],
  name: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_]$/,
  lock: ({ id }) => id,

  references: ({ subnets: children = [] }, id) =>
    children.flatMap((child) => referencesOf(child, subnets.idOf(id, child.name))),

  accept({ id, body, old }, view) {
    const space = body.addressSpace.addressPrefixes.map((prefix) => parseRange(prefix, id.id));
    checkSpace(space, id.name);
    const wanted = body.subnets ?? [];
    checkNames(id.id, "subnets", wanted);
    const taken: Range[] = [];
    for (const child of wanted) {
      const childId = subnets.idOf(id.id, child.name);
      const ranges = subnetRanges(child, childId);
      checkNat(child, id.id, view);
      checkFits(child.name, ranges, space, id.name);
      checkApart(child.name, ranges, taken, id.name);
      taken.push(...ranges);
      const before = view.find(childId);
      if (before) checkChange(child, before.body, childId, view);
    }
    for (const child of old ? subnets.dropped(id.id, wanted, view) : []) {
      checkSubnetUnused(child.id, view);
    }
    const { subnets: _, ...own } = body;
    return {
      body: {
        enableDdosProtection: false,
        ...own,
        ...guidOf(old?.body),
        subnets: wanted,
      },
    };
  },

  commit: (resource, ledger, now) => subnets.commit(resource, ledger, now),

  shown: ({ id }, view) => ({
    subnets: subnets.shown(id, view),
    virtualNetworkPeerings: peeringsOf(id, view),
  }),

  mayDelete({ id }, view) {
    for (const child of view.children(id, subnet.type)) checkSubnetUnused(child.id, view);
  },
};
