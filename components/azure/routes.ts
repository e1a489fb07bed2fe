import { Address4 } from "ip-address";

import { overlap } from "../settings/rules/ranges";
import { addressesOf, partOf } from "./spans";

/** A route of a route table. */
export interface Route {
  readonly name: string;
  readonly properties: {
    /** Or a service tag, or a range of IPv6. */
    readonly addressPrefix?: string;
    readonly nextHopType: string;
    readonly nextHopIpAddress?: string;
  };
}

const everything = "0.0.0.0/0";

export const prefixOf = ({ properties: { addressPrefix = "" } }: Route): string => addressPrefix;

/** As a sentence has it. */
export const nextHopOf = ({ properties: { nextHopType, nextHopIpAddress = "" } }: Route): string =>
  `${nextHopType} ${nextHopIpAddress}`.trim();

export const leadsTo =
  (...types: readonly string[]) =>
  ({ properties: { nextHopType } }: Route): boolean =>
    types.includes(nextHopType);

/** What a route with a service tag, or of IPv6, leads to is not known by a range. */
export const isRanged = (route: Route): boolean => Address4.isValid(prefixOf(route));

const lengthOf = (range: string): number => new Address4(range).subnetMask;

export const isDefault = (route: Route): boolean => lengthOf(prefixOf(route)) === 0;

const isWithin = (one: string, other: string): boolean =>
  overlap(one, other) && lengthOf(one) > lengthOf(other);

/** Of two ranges, one of which is in the other. */
const narrower = (one: string, other: string): string =>
  lengthOf(one) > lengthOf(other) ? one : other;

/**
 * The routes of a table that packets to a range go by, or to parts of it. Of those for an address, Azure takes the one
 * with the longest prefix.
 *
 * @see https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview
 */
export function routesTo(range: string, table: readonly Route[]): Route[] {
  const routes = table.filter((one) => isRanged(one) && overlap(prefixOf(one), range));
  return routes.filter((route) => {
    const longer = routes.filter((one) => lengthOf(prefixOf(one)) > lengthOf(prefixOf(route)));
    const part = addressesOf(narrower(prefixOf(route), range));
    return (
      partOf(
        part,
        longer.map((one) => addressesOf(prefixOf(one))),
      ) !== "all"
    );
  });
}

/**
 * The routes of a table that lead away from the internet, together all that no other route leads; they go before a NAT
 * gateway. 0.0.0.0/1 and 128.0.0.0/1 do what 0.0.0.0/0 does.
 */
export function defaultRoutes(table: readonly Route[]): Route[] {
  const away = routesTo(everything, table).filter((route) => !leadsTo("Internet")(route));
  const widest = away.filter(
    (one) => !away.some((other) => isWithin(prefixOf(one), prefixOf(other))),
  );
  const spans = widest.map((route) => addressesOf(prefixOf(route)));
  return partOf(addressesOf(everything), spans) === "all" ? widest : [];
}

/**
 * The routes of a table that lead a range of its own network out of that. Azure's route for each range of the address
 * space goes before shorter ones, also within a subnet.
 *
 * @param network the ranges of the address space
 */
export function routesAround(
  range: string,
  table: readonly Route[],
  network: readonly string[],
): Route[] {
  const space = network.find((one) => isWithin(range, one)) ?? range;
  const before = table.filter(
    (route) => isRanged(route) && lengthOf(prefixOf(route)) >= lengthOf(space),
  );
  return routesTo(range, before).filter((route) => !leadsTo("VnetLocal")(route));
}
