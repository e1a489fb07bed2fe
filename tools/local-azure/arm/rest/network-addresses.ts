import { refuse } from "../azure-error";
import type { ResourceManager } from "../resource-manager";
import type { Body, Resource, View } from "../resources/resource";
import { freeAddresses, parseRange, type Range } from "../types/network/addresses";
import { subnet, type SubnetBody, subnetRanges } from "../types/network/subnet";

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
