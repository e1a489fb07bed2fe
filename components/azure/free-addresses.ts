import { Address4 } from "ip-address";

import { type MachinePlan, privateApiAddress } from "../settings/topology";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./resource-manager";
import { type ExistingNetwork, keyOf, networkVersion, subnetIdOf } from "./existing-network";
import { apiBalancerName } from "./resource-names";
import { type Shown, shownAs } from "./shown";
import { addressesOf, isIn } from "./spans";
import { isOfThisStack } from "./stack-tag";

/** Azure keeps the first four addresses of a subnet, and its last. */
const first = 4n;

/** Where the first of a resource's configurations is. */
interface Place {
  readonly privateIPAddress?: string;
  /** Undefined of a public one. */
  readonly subnet?: { readonly id: string };
}

function placeIn(
  shown: Shown,
  [token, name]: readonly [token: string, name: string],
  property: string,
): Place | undefined {
  const [one] = (shown.get(shownAs(`azure-native:network:${token}`, name))?.properties?.[
    property
  ] ?? []) as { properties?: Place }[];
  return one?.properties;
}

export const placeOfInterface = (shown: Shown, machine: string): Place | undefined =>
  placeIn(shown, ["NetworkInterface", `${machine}-nic`], "ipConfigurations");

export const placeOfBalancer = (shown: Shown, clusterName: string): Place | undefined =>
  placeIn(shown, ["LoadBalancer", apiBalancerName(clusterName)], "frontendIPConfigurations");

/** Where this stack's interfaces are, by the machine that each was made for, whether or not the outputs know it. */
export function interfaceAddresses(
  shown: Shown,
  { clusterName, resourceGroup }: Pick<Settings, "clusterName" | "resourceGroup">,
): { readonly name: string; readonly address: string }[] {
  const key = shownAs("azure-native:network:NetworkInterface", `${clusterName}-`);
  return [...shown]
    .filter(([one, resource]) => one.startsWith(key) && (!resourceGroup || isOfThisStack(resource)))
    .flatMap(([, resource]) => {
      const [, name] = /^(.+)-nic$/.exec(resource.name) ?? [];
      const address = name && placeOfInterface(shown, name)?.privateIPAddress;
      return name && address ? [{ name, address }] : [];
    });
}

/** Whether a machine has an interface; one outlives its machines. */
export const hasInterface = (shown: Shown, machine: string): boolean =>
  shown.has(shownAs("azure-native:network:NetworkInterface", `${machine}-nic`));

/** Whether the API has its balancer. */
export const hasBalancer = (shown: Shown, clusterName: string): boolean =>
  shown.has(shownAs("azure-native:network:LoadBalancer", apiBalancerName(clusterName)));

/** Where the machines are, and the API if it is private. */
export interface Places {
  readonly machines: readonly MachinePlan[];
  /** Undefined where the API is public. */
  readonly apiAddress?: string;
  /** Whether the login may not ask which addresses are free, so that some are not where they are to be. */
  readonly areAddressesUnknown?: boolean;
}

interface Known {
  readonly settings: Settings;
  readonly network: ExistingNetwork | undefined;
  readonly shown: Shown;
  /** By the stack's outputs. */
  readonly before: {
    readonly machines: readonly { readonly name: string; readonly address: string }[];
    readonly apiAddress?: string;
  };
}

/**
 * In subnets of others, each machine has the address that its interface has or had, else one that nothing
 * has, and so has a private API, in the first of them. From the end of a subnet, since Azure gives the
 * lowest free one to whoever asks for any. Static, as in a network of the cluster's own: etcd's members
 * and kubelets are configured with addresses before there is a machine, and DNS of others may have the
 * API's.
 */
export async function placed(
  machines: readonly MachinePlan[],
  known: Known,
  connection: AzureConnection,
): Promise<Places> {
  const { settings, network, shown, before } = known;
  const isPrivate = settings.apiAccess === "private";
  if (network === undefined) {
    return {
      machines,
      apiAddress: isPrivate ? privateApiAddress(settings.networkCidr) : undefined,
    };
  }
  const keptByApi =
    placeOfBalancer(shown, settings.clusterName)?.privateIPAddress ?? before.apiAddress;
  const kept = new Map(
    machines.flatMap(({ name }) => {
      const address =
        placeOfInterface(shown, name)?.privateIPAddress ??
        before.machines.find((machine) => machine.name === name)?.address;
      return address === undefined ? [] : [[name, address]];
    }),
  );
  const taken = new Set([...kept.values(), ...(keptByApi === undefined ? [] : [keptByApi])]);
  const searches = new Map<string, AsyncGenerator<string | "unreadable", undefined>>();
  let areAddressesUnknown = false;
  const next = async (subnetId: string): Promise<string | undefined> => {
    const subnet = network.subnets.get(keyOf(subnetId));
    if (subnet === undefined || areAddressesUnknown) return undefined;
    const search = searches.get(subnet.id) ?? freeIn(subnet.ranges, network.id, taken, connection);
    searches.set(subnet.id, search);
    const { value } = await search.next();
    if (value !== "unreadable") return value;
    areAddressesUnknown = true;
    return undefined;
  };
  const apiAddress = isPrivate ? (keptByApi ?? (await next(settings.nodeSubnets[0]!))) : undefined;
  const result: MachinePlan[] = [];
  for (const machine of machines) {
    const subnetId = subnetIdOf(settings, machine.zone);
    const ranges = network.subnets.get(keyOf(subnetId))?.ranges ?? [];
    // Where there is none, network-requests.ts refuses it.
    const address = kept.get(machine.name) ?? (await next(subnetId)) ?? machine.address;
    const subnetCidr =
      ranges.find((range) => isIn(addressesOf(address), addressesOf(range))) ?? machine.subnetCidr;
    result.push({ ...machine, subnetCidr, address });
  }
  return { machines: result, apiAddress, areAddressesUnknown };
}

/** A subnet that became too small may have got another range. */
async function* freeIn(
  ranges: readonly string[],
  network: string,
  taken: ReadonlySet<string>,
  { arm }: AzureConnection,
): AsyncGenerator<string | "unreadable", undefined> {
  for (const whole of ranges.map((range) => new Address4(range))) {
    const start = whole.startAddress().bigInt() + first;
    for (let at = whole.endAddress().bigInt() - 1n; at >= start; at--) {
      const ipAddress = Address4.fromBigInt(at).correctForm();
      if (taken.has(ipAddress)) continue;
      const answer = await arm.getIfReadable<{ available: boolean }>(
        `${network}/CheckIPAddressAvailability`,
        { ipAddress, ...networkVersion },
        { available: true },
      );
      if (answer === "unreadable") yield answer;
      else if (answer?.available) yield ipAddress;
    }
  }
  return undefined;
}
