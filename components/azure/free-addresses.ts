import { Address4 } from "ip-address";

import type { MachinePlan } from "../settings/topology";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import { type ExistingNetwork, keyOf, networkVersion, subnetIdOf } from "./existing-network";
import { type Shown, shownAs } from "./shown";

/** Azure keeps the first four addresses of a subnet, and its last. */
const first = 4n;

const interfaceOf = (shown: Shown, machine: string) =>
  shown.get(shownAs("azure-native:network:NetworkInterface", `${machine}-nic`));

/** Whether a machine has an interface; one outlives its machines. */
export const hasInterface = (shown: Shown, machine: string): boolean =>
  interfaceOf(shown, machine) !== undefined;

function addressOfInterface(shown: Shown, machine: string): string | undefined {
  const [configuration] = (interfaceOf(shown, machine)?.properties?.["ipConfigurations"] ?? []) as {
    properties?: { privateIPAddress?: string };
  }[];
  return configuration?.properties?.privateIPAddress;
}

/**
 * Machines in subnets of others, with an address each: the one that its interface has or had, else one
 * that nothing has. From the end of a subnet, since Azure gives the lowest free one to whoever asks for any.
 * Static, as in a network of the cluster's own: etcd's members and kubelets are configured with addresses
 * before there is a machine.
 */
export async function placed(
  machines: readonly MachinePlan[],
  {
    settings,
    network,
    shown,
    before,
  }: {
    readonly settings: Settings;
    readonly network: ExistingNetwork | undefined;
    readonly shown: Shown;
    /** By the stack's outputs. */
    readonly before: readonly { readonly name: string; readonly address: string }[];
  },
  connection: AzureConnection,
): Promise<MachinePlan[]> {
  if (network === undefined) return [...machines];
  const searches = new Map<string, AsyncGenerator<string, undefined>>();
  const result: MachinePlan[] = [];
  for (const machine of machines) {
    const subnet = network.subnets.get(keyOf(subnetIdOf(settings, machine.zone)));
    // Refused by network-requests.ts.
    if (subnet === undefined) return [...machines];
    const [range = ""] = subnet.ranges;
    const search = searches.get(subnet.id) ?? freeIn(range, network.id, connection);
    searches.set(subnet.id, search);
    const address =
      addressOfInterface(shown, machine.name) ??
      before.find(({ name }) => name === machine.name)?.address ??
      (await search.next()).value;
    if (address === undefined) return [...machines];
    result.push({ ...machine, subnetCidr: range, address });
  }
  return result;
}

async function* freeIn(
  range: string,
  network: string,
  { arm }: AzureConnection,
): AsyncGenerator<string, undefined> {
  const whole = new Address4(range);
  const start = whole.startAddress().bigInt() + first;
  for (let at = whole.endAddress().bigInt() - 1n; at >= start; at--) {
    const ipAddress = Address4.fromBigInt(at).correctForm();
    const answer = await arm.get<{ available: boolean }>(
      `${network}/CheckIPAddressAvailability`,
      { ipAddress, ...networkVersion },
      { available: true },
    );
    if (answer?.available) yield ipAddress;
  }
  return undefined;
}
