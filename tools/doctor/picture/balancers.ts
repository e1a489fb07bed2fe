import {
  type AzureResources,
  type BackendPool,
  type Frontend,
  type LoadBalancer,
  referred,
  type Rule,
  sameId,
} from "./azure";
import { type Service, serviceOf } from "./cluster";
import { addressesOf } from "./machines";

export interface Pool {
  readonly name: string;
  /** Names of machines. */
  readonly members: readonly string[];
}

export interface BalancerRule {
  /** The Service that it is of; else the frontend's name. */
  readonly of: string;
  readonly address: string;
  /** The zones of a public address, or that it is private. */
  readonly reach: string;
  readonly ports: string;
  readonly probe: string;
  /** Names of pools of its balancer. */
  readonly pools: readonly string[];
}

export interface Balancer {
  readonly name: string;
  readonly rules: readonly BalancerRule[];
  readonly pools: readonly Pool[];
}

export const balancersOf = (azure: AzureResources, services: readonly Service[]): Balancer[] =>
  azure.balancers.map((balancer) => ({
    name: balancer.name,
    rules: (balancer.properties.frontendIPConfigurations ?? []).flatMap((frontend) =>
      rulesOf(frontend, balancer, azure, services),
    ),
    pools: (balancer.properties.backendAddressPools ?? []).map((pool) => ({
      name: pool.name,
      members: membersOf(pool, azure),
    })),
  }));

/** A line per rule of a frontend; one that no rule has is there too. */
function rulesOf(
  frontend: Frontend,
  { properties }: LoadBalancer,
  { addresses }: AzureResources,
  services: readonly Service[],
): BalancerRule[] {
  const { publicIPAddress, privateIPAddress = "no address" } = frontend.properties;
  const address = referred(addresses, publicIPAddress);
  const common = {
    address: publicIPAddress ? (address?.properties.ipAddress ?? "no address") : privateIPAddress,
    reach: publicIPAddress ? `public, ${zonesIn(address?.zones)}` : "private",
  };
  const rules = (properties.loadBalancingRules ?? []).filter(({ properties: rule }) =>
    sameId(rule.frontendIPConfiguration?.id, frontend.id),
  );
  if (rules.length === 0) {
    return [{ of: frontend.name, ...common, ports: "no rule", probe: "", pools: [] }];
  }
  return rules.map((rule) => ({
    of: serviceOf(rule, services) ?? frontend.name,
    ...common,
    ports: portsOf(rule),
    probe: probeOf(rule, properties.probes ?? []),
    pools: poolsOf(rule).flatMap(
      (one) => referred(properties.backendAddressPools ?? [], one)?.name ?? [],
    ),
  }));
}

const portsOf = ({ properties }: Rule): string => {
  const { protocol, frontendPort, backendPort, enableFloatingIP } = properties;
  const front = protocol === "All" ? "all ports" : `${protocol.toUpperCase()} ${frontendPort}`;
  // A node's kube-proxy takes the packet as it came.
  return enableFloatingIP || protocol === "All"
    ? `${front}, floating IP`
    : `${front} → ${backendPort}`;
};

function probeOf({ properties }: Rule, probes: LoadBalancer["properties"]["probes"] & {}): string {
  const probe = referred(probes, properties.probe)?.properties;
  return probe === undefined
    ? "no probe"
    : `${probe.protocol.toUpperCase()} ${probe.port}${probe.requestPath ?? ""}`;
}

const poolsOf = ({ properties: { backendAddressPool, backendAddressPools } }: Rule) =>
  backendAddressPools ?? (backendAddressPool === undefined ? [] : [backendAddressPool]);

/** Machines are members by their interface, or by their address. */
function membersOf(pool: BackendPool, azure: AzureResources): string[] {
  const byAddress = (pool.properties.loadBalancerBackendAddresses ?? []).flatMap(
    ({ properties }) => properties?.ipAddress ?? [],
  );
  return azure.machines
    .filter((vm) => {
      const isByInterface = azure.interfaces
        .filter(({ properties }) => sameId(properties.virtualMachine?.id, vm.id))
        .flatMap(({ properties }) => properties.ipConfigurations ?? [])
        .flatMap(({ properties }) => properties.loadBalancerBackendAddressPools ?? [])
        .some(({ id }) => sameId(id, pool.id));
      return isByInterface || addressesOf(vm, azure).some((one) => byAddress.includes(one));
    })
    .map(({ name }) => name);
}

/** In which zones an address is, in words. */
const zonesIn = (zones: readonly string[] = []): string =>
  zones.length === 0
    ? "no zone"
    : zones.length === 1
      ? `zone ${zones[0]}`
      : `zones ${zones.join(" ")}`;

export interface Address {
  readonly name: string;
  readonly address: string;
  readonly reach: string;
}

/** Public addresses that belong to nothing that is drawn with one. */
export const otherAddresses = ({ addresses, balancers, gateways }: AzureResources): Address[] => {
  const used = [
    ...gateways.flatMap(({ properties }) => properties.publicIpAddresses ?? []),
    ...balancers
      .flatMap(({ properties }) => properties.frontendIPConfigurations ?? [])
      .flatMap(({ properties }) => properties.publicIPAddress ?? []),
  ];
  return addresses
    .filter(({ id }) => !used.some((one) => sameId(one.id, id)))
    .map(({ name, zones, properties }) => ({
      name,
      address: properties.ipAddress ?? "no address",
      reach: `${zonesIn(zones)}, ${properties.ipConfiguration ? "attached" : "not attached"}`,
    }));
};
