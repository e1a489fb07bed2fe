import { createHash } from "node:crypto";
import { Address4 } from "ip-address";

import { keyOf, parseId, type Resource, type View } from "../../../arm/resources/resource";
import { type MachineBody, nicsOf } from "../../../arm/types/compute/virtual-machine-validation";
import type { Ref } from "../../../arm/types/network/common";
import type { LoadBalancingRule, Probe } from "../../../arm/types/network/load-balancer-validation";
import { macOf, type NetworkInterfaceBody } from "../../../arm/types/network/network-interface";
import type { PublicIpBody } from "../../../arm/types/network/public-ip-address";
import { type RuleBody, securityRule } from "../../../arm/types/network/network-security-group";
import { subnet, type SubnetBody } from "../../../arm/types/network/virtual-network";
import { privateRecordSet, privateZone, virtualNetworkLink } from "../../../arm/types/private-dns";
import { isMachine, machineOf } from "../../../arm/types/compute/virtual-machine";
import type { MachineMetadata } from "./metadata";

export interface Subnet {
  /** Name of its bridge, which an interface may have at most 15 letters for. */
  readonly bridge: string;
  readonly prefix: string;
  readonly gateway: string;
  /** The address of its NAT gateway; without one there is no egress. */
  readonly natAddress?: string;
  /** Whether its route table leads to a firewall what leaves the network. */
  readonly isBehindFirewall: boolean;
  /** By priority; without a security group undefined, and everything passes. */
  readonly rules?: readonly RuleBody[];
}

/** A rule of a balancer, with the machines of its pool. */
export interface Balanced {
  readonly address: string;
  /** Whether that is an address of the network's own. */
  readonly isInternal: boolean;
  readonly port: number;
  readonly protocol: string;
  readonly backendPort: number;
  /** Whether packets keep the balancer's address, and their port, on their way to a machine. */
  readonly isFloating: boolean;
  readonly backends: readonly string[];
  readonly probe?: Probe & { readonly probeThreshold?: number };
}

export interface VirtualNetwork {
  /** Short, and the same for ever: what its namespace and interfaces are named by. */
  readonly key: string;
  readonly ranges: readonly string[];
  readonly subnets: readonly Subnet[];
  readonly balanced: readonly Balanced[];
  /**
   * What leads here from outside: addresses of NAT gateways and balancers, and subnets that a
   * firewall answers.
   */
  readonly destinations: readonly string[];
  /** Names of the private DNS zones that are linked to it, and their addresses. */
  readonly names: Readonly<Record<string, string>>;
}

/** Where a machine is plugged in. */
export interface Plug {
  readonly network: string;
  readonly tap: string;
  readonly mac: string;
  readonly address: string;
  readonly subnet: Subnet;
  /** Whether it stands behind a load balancer. */
  readonly isBalanced: boolean;
  /** Whether no machine behind its load balancer has a lower address. */
  readonly isFirst: boolean;
}

const hash = (id: string): string =>
  createHash("sha256").update(keyOf(id)).digest("hex").slice(0, 8);

const isThere = <T>(value: T | undefined): value is T => value !== undefined;

const publicAddressOf = (ref: Ref | undefined, view: View): string | undefined =>
  (ref?.id && (view.find(ref.id)?.body as PublicIpBody | undefined)?.ipAddress) || undefined;

/** Azure's own rules come last, since their priorities are above those that users may give. */
function rulesOf(group: string | undefined, view: View): RuleBody[] | undefined {
  const found = group === undefined ? undefined : view.find(group);
  if (found === undefined) return undefined;
  const ours = view.children(found.id, securityRule.type).map(({ body }) => body as RuleBody);
  const azures = (found.body["defaultSecurityRules"] ?? []) as RuleBody[];
  return [...ours, ...azures].sort((a, b) => a.priority - b.priority);
}

interface Route {
  readonly addressPrefix?: string;
  readonly nextHopType?: string;
}

function leadsToFirewall(routeTable: Ref | undefined, view: View): boolean {
  const table = routeTable?.id === undefined ? undefined : view.find(routeTable.id);
  return ((table?.body["routes"] ?? []) as Route[]).some(
    ({ addressPrefix, nextHopType }) =>
      addressPrefix === "0.0.0.0/0" && nextHopType?.toLowerCase() === "virtualappliance",
  );
}

function subnetOf({ id, body }: Resource, view: View): Subnet {
  const { addressPrefix, addressPrefixes, natGateway, networkSecurityGroup, routeTable } =
    body as SubnetBody;
  const prefix = addressPrefix ?? addressPrefixes?.[0] ?? "";
  const range = new Address4(prefix);
  const gateway = natGateway?.id === undefined ? undefined : view.find(natGateway.id);
  const [nat] = (gateway?.body["publicIpAddresses"] ?? []) as Ref[];
  return {
    bridge: `s${hash(id)}`,
    prefix,
    gateway: Address4.fromBigInt(range.startAddress().bigInt() + 1n).correctForm(),
    natAddress: publicAddressOf(nat, view),
    isBehindFirewall: leadsToFirewall(routeTable, view),
    rules: rulesOf(networkSecurityGroup?.id, view),
  };
}

/** Addresses of the interfaces in a pool, with the network that each is in. */
const membersOf = (pool: string, view: View): { address: string; network: string }[] =>
  view.referrers(pool).flatMap(({ owner, from }) => {
    const nic = view.find(owner)?.body as NetworkInterfaceBody | undefined;
    const name = from.split("/").at(-1)?.toLowerCase();
    const one = nic?.ipConfigurations?.find((other) => other.name.toLowerCase() === name);
    const subnet = one?.subnet?.id;
    if (one?.privateIPAddress === undefined || subnet === undefined) return [];
    return [{ address: one.privateIPAddress, network: keyOf(parseId(subnet)?.parent ?? "") }];
  });

interface Pool {
  readonly id: string;
  readonly virtualNetwork?: Ref;
  readonly loadBalancerBackendAddresses?: readonly { readonly ipAddress?: string }[];
}

/** Addresses that a pool itself names, in its network. */
const addressesIn = (pool: Pool | undefined): { address: string; network: string }[] =>
  (pool?.loadBalancerBackendAddresses ?? []).flatMap(({ ipAddress }) =>
    ipAddress === undefined
      ? []
      : [{ address: ipAddress, network: keyOf(pool?.virtualNetwork?.id ?? "") }],
  );

interface Frontend {
  readonly id: string;
  readonly publicIPAddress?: Ref;
  readonly privateIPAddress?: string;
}

function balancedOf({ body }: Resource, network: string, view: View): Balanced[] {
  const frontends = (body["frontendIPConfigurations"] ?? []) as Frontend[];
  const probes = (body["probes"] ?? []) as (Probe & { id: string })[];
  const ownPools = (body["backendAddressPools"] ?? []) as Pool[];
  const same = (ref: Ref | undefined, id: string) => keyOf(ref?.id ?? "") === keyOf(id);
  return ((body["loadBalancingRules"] ?? []) as LoadBalancingRule[]).flatMap((rule) => {
    const frontend = frontends.find(({ id }) => same(rule.frontendIPConfiguration, id));
    const publicAddress = publicAddressOf(frontend?.publicIPAddress, view);
    const address = publicAddress ?? frontend?.privateIPAddress;
    const pools = [rule.backendAddressPool, ...(rule.backendAddressPools ?? [])];
    const members = pools.flatMap((pool) => [
      ...(pool?.id ? membersOf(pool.id, view) : []),
      ...addressesIn(ownPools.find(({ id }) => same(pool, id))),
    ]);
    const backends = members.filter((one) => one.network === network).map((one) => one.address);
    if (address === undefined || backends.length === 0) return [];
    return [
      {
        address,
        isInternal: publicAddress === undefined,
        port: rule.frontendPort ?? 0,
        protocol: rule.protocol ?? "Tcp",
        backendPort: rule.backendPort ?? 0,
        isFloating: rule.enableFloatingIP ?? false,
        backends: [...new Set(backends)].sort(),
        probe: probes.find(({ id }) => same(rule.probe, id)),
      },
    ];
  });
}

/** Every virtual network, as machines and packets know it. */
export const networksOf = (view: View): VirtualNetwork[] =>
  view.ofType("Microsoft.Network/virtualNetworks").map(({ id, body }) => {
    const subnets = view.children(id, subnet.type).map((child) => subnetOf(child, view));
    const balancers = view.ofType("Microsoft.Network/loadBalancers");
    const balanced = balancers.flatMap((one) => balancedOf(one, keyOf(id), view));
    const destinations = [
      ...subnets.map(({ natAddress }) => natAddress).filter(isThere),
      ...balanced.map(({ address }) => address),
      ...subnets.filter(({ isBehindFirewall }) => isBehindFirewall).map(({ prefix }) => prefix),
    ];
    return {
      key: hash(id),
      ranges: (body["addressSpace"] as { addressPrefixes: string[] }).addressPrefixes,
      subnets,
      balanced,
      destinations: [...new Set(destinations)].sort(),
      names: privateNamesOf(id, view),
    };
  });

interface Linked {
  readonly virtualNetwork?: Ref;
}

interface Records {
  readonly fqdn?: string;
  readonly aRecords?: readonly { readonly ipv4Address?: string }[];
}

const privateNamesOf = (network: string, view: View): Record<string, string> =>
  Object.fromEntries(
    view
      .ofType(privateZone.type)
      .filter(({ id }) =>
        view
          .children(id, virtualNetworkLink.type)
          .some(({ body }) => keyOf((body as Linked).virtualNetwork?.id ?? "") === keyOf(network)),
      )
      .flatMap(({ id }) => view.children(id, privateRecordSet.type))
      .flatMap(({ body }) => {
        const { fqdn, aRecords } = body as Records;
        const address = aRecords?.[0]?.ipv4Address;
        return fqdn && address ? [[fqdn.replace(/\.$/, "").toLowerCase(), address]] : [];
      }),
  );

/** Names that resolve everywhere to public addresses. */
export const publicNamesOf = (view: View): Record<string, string> =>
  Object.fromEntries(
    view.ofType("Microsoft.Network/publicIPAddresses").flatMap(({ body }) => {
      const { dnsSettings, ipAddress } = body as PublicIpBody;
      return dnsSettings?.fqdn && ipAddress ? [[dnsSettings.fqdn.toLowerCase(), ipAddress]] : [];
    }),
  );

/** Where a machine's primary interface leads; undefined while it has none. */
export function plugOf(machine: string, view: View): Plug | undefined {
  const resource = view.find(machine);
  const nics = resource === undefined ? [] : nicsOf(resource.body as MachineBody);
  const nic = view.find((nics.find(({ primary }) => primary) ?? nics[0])?.id ?? "");
  const configurations = (nic?.body as NetworkInterfaceBody | undefined)?.ipConfigurations ?? [];
  const one = configurations.find(({ primary }) => primary) ?? configurations[0];
  const subnet = view.find(one?.subnet?.id ?? "");
  if (nic === undefined || subnet === undefined) return undefined;
  const address = one?.privateIPAddress ?? "";
  const pools = one?.loadBalancerBackendAddressPools ?? [];
  const beside = pools.flatMap(({ id = "" }) => membersOf(id, view));
  const rank = (of: string) => new Address4(of).bigInt();
  return {
    network: hash(parseId(subnet.id)!.parent),
    tap: `t${hash(nic.id)}`,
    mac: macOf(nic.id).replaceAll("-", ":").toLowerCase(),
    address,
    subnet: subnetOf(subnet, view),
    isBalanced: pools.length > 0,
    isFirst: pools.length > 0 && beside.every((other) => rank(address) <= rank(other.address)),
  };
}

/** What the metadata service serves to every machine. */
export const machineMetadata = (view: View): MachineMetadata[] =>
  networksOf(view).flatMap((network) => metadataOf(network, view));

/** What the metadata service of this network serves. */
export function metadataOf(network: VirtualNetwork, view: View): MachineMetadata[] {
  return view.ofType("Microsoft.Compute/virtualMachines").flatMap((resource) => {
    const plug = plugOf(resource.id, view);
    if (!isMachine(resource) || plug?.network !== network.key) return [];
    const vm = machineOf(resource, view);
    const [subnet = "", bits = ""] = plug.subnet.prefix.split("/");
    const compute = {
      azEnvironment: "AzurePublicCloud",
      location: vm.location,
      name: vm.name,
      osType: "Linux",
      platformFaultDomain: "0",
      provider: "Microsoft.Compute",
      resourceGroupName: vm.resourceGroup,
      resourceId: vm.id,
      subscriptionId: vm.subscriptionId,
      vmId: vm.vmId,
      vmSize: vm.size,
      zone: vm.zone ?? "",
    };
    const { address } = plug;
    const inboundRules = network.balanced
      .filter(({ backends }) => backends.includes(address))
      .map((rule) => ({
        frontendIpAddress: rule.address,
        protocol: rule.protocol.toLowerCase(),
        frontendPort: rule.port,
        backendPort: rule.backendPort,
        privateIpAddress: address,
      }));
    return [
      {
        address,
        mac: plug.mac,
        subnet: { address: subnet, prefix: bits },
        compute,
        identities: vm.identities,
        inboundRules,
      },
    ];
  });
}
