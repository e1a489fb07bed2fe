import { keyOf, subnetIdOf } from "../azure/existing-network";
import { placeOfBalancer, placeOfInterface } from "../azure/free-addresses";
import { networkNames } from "../azure/resource-names";
import type { Shown } from "../azure/shown";
import { toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { type MachinePlan, zoneLabelOf } from "../settings/topology";

/** Where a machine is, by the stack's outputs or by its interface in Azure. */
export interface PlacedMachine {
  readonly name: string;
  readonly address: string;
  /** As the label of its Node has it, such as westeurope-1. */
  readonly zone?: string;
}

/**
 * Why machines cannot be where the settings put them.
 *
 * An interface outlives its machines and waits for none of them, so that another subnet or address
 * would be that of every machine at once: etcd would lose its majority, and what runs on workers its
 * network before it is drained. And Azure gives nobody an address that another interface has, which
 * goes at the end of an update: also one that only an update which has not ended knew.
 *
 * @param found where interfaces are
 * @param remembered where machines of a living cluster are; nothing while there is none, which may move
 */
export function addressProblems(
  machines: readonly Pick<MachinePlan, "name" | "address" | "zone" | "pool">[],
  found: readonly PlacedMachine[],
  remembered: readonly PlacedMachine[] | undefined,
  settings: Pick<Settings, "clusterName" | "location" | "workerPools">,
): string[] {
  const unknown = found.filter(({ name }) => !remembered?.some((one) => one.name === name));
  const placed = [...(remembered ?? []), ...unknown];
  const moves = machines.flatMap(({ name, address, zone: number, pool }): Move[] => {
    const zone = zoneLabelOf(settings, number);
    const before = remembered && placed.find((one) => one.name === name);
    if (before !== undefined && before.address !== address) {
      return [[`${name} would move from ${before.address} to ${address}`]];
    }
    // In a subnet of others an address says nothing of the zone.
    if (before !== undefined && (before.zone ?? zone) !== zone) {
      return [[`${name}, which is at ${address}, would move from ${before.zone} to ${zone}`]];
    }
    const holder = placed.find((one) => one.address === address && one.name !== name);
    return holder === undefined
      ? []
      : [[`${name} would get ${address}, which ${holder.name} has`, pool, holder.name]];
  });
  if (moves.length === 0) return [];
  const [renamed, ...others] = new Set(moves.map(([, pool]) => pool));
  const position = settings.workerPools.findIndex(({ name }) => name === renamed);
  // Of machines that move, the list does not say which pool was to go.
  const isKnown = position >= 0 && others.length === 0;
  const [former, ...more] = new Set(moves.map(([, , holder]) => poolIn(holder, settings)));
  const toItsPlace = (name: string, value: string | number): string =>
    ` (${toSet(`workerPools[${position}].${name}`, value)})`;
  return [
    "machines keep their addresses as long as they exist, and addresses follow from the zones and from a pool's position in workerPools: " +
      `${moves.map(([text]) => text).join("; ")}. Put zones and pools back as they were` +
      (isKnown && former !== undefined && more.length === 0 ? toItsPlace("name", former) : "") +
      ". A pool that is to go keeps its place, with a count of 0" +
      (isKnown ? toItsPlace("count", 0) : "") +
      ". One of another name or in other zones is added at the end",
  ];
}

/** What a machine would do, its pool, and the machine that has its address. */
type Move = readonly [text: string, pool?: string, holder?: string];

/** The pool after which a machine is called. */
function poolIn(machine = "", { clusterName }: Pick<Settings, "clusterName">): string | undefined {
  const own = `${clusterName}-`;
  return machine.startsWith(own) ? /^(.+)-\d+$/.exec(machine.slice(own.length))?.[1] : undefined;
}

/**
 * Why interfaces and a private API's balancer cannot be in the subnets that the settings put them into. They keep
 * their addresses, which another subnet does not have, and Azure moves none to another network. Also of
 * what an update made that failed, of which the outputs know nothing. In a network of its own a cluster that is not there
 * yet may move.
 */
export function subnetProblems(
  machines: readonly Pick<MachinePlan, "name" | "zone">[],
  shown: Shown,
  settings: Pick<Settings, "apiAccess" | "clusterName" | "nodeSubnets" | "zones">,
): string[] {
  const { apiAccess, clusterName, nodeSubnets } = settings;
  const own = `/virtualNetworks/${networkNames(clusterName).virtualNetwork}/subnets/`;
  const places = [
    ...machines.map(({ name, zone }) => ({
      ...{ name, is: placeOfInterface(shown, name)?.subnet },
      wanted: subnetIdOf(settings, zone),
    })),
    ...(apiAccess === "private"
      ? [
          {
            ...{ name: "the API's balancer", is: placeOfBalancer(shown, clusterName)?.subnet },
            wanted: nodeSubnets[0] ?? "",
          },
        ]
      : []),
  ];
  const moves = places.flatMap(({ name, is, wanted }) => {
    if (is === undefined) return [];
    const isThere =
      nodeSubnets.length === 0 ? keyOf(is.id).includes(keyOf(own)) : keyOf(is.id) === keyOf(wanted);
    return isThere ? [] : [`${name} is in ${is.id}`];
  });
  if (moves.length === 0) return [];
  return [
    `interfaces and balancers keep their subnets, and nodeSubnets and zones have others for them: ${moves.join("; ")}. Put nodeSubnets and zones back as they ` +
      "were, or, as long as there is no cluster, delete what is there (pulumi destroy) and begin anew (pulumi up)",
  ];
}
