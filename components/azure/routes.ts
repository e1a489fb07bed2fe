import { Address4 } from "ip-address";

import { addressesOf, isIn, partOf, type Span } from "./spans";

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

export const isDefault = (route: Route): boolean => new Address4(prefixOf(route)).subnetMask === 0;

interface Ranged {
  readonly route: Route;
  readonly span: Span;
}

/** Azure admits 400 routes in a table, and clients and machines are many too: each prefix is read once. */
const rangedIn = (table: readonly Route[]): Ranged[] =>
  table.filter(isRanged).map((route) => ({ route, span: addressesOf(prefixOf(route)) }));

const sizeOf = ([first, last]: Span): number => last - first + 1;

/** The routes that packets to a range go by, each for a part of it. */
function goneBy(span: Span, routes: readonly Ranged[]): Ranged[] {
  // Of two ranges in CIDR form that share an address, one is in the other.
  const there = routes.filter((one) => isIn(one.span, span) || isIn(span, one.span));
  const spans = there.map((one) => one.span);
  return there.filter((one) => {
    const longer = spans.filter((other) => sizeOf(other) < sizeOf(one.span));
    return partOf(isIn(one.span, span) ? one.span : span, longer) !== "all";
  });
}

/**
 * The routes of a table that packets to a range go by, or to parts of it. Of those for an address, Azure takes the one
 * with the longest prefix.
 *
 * @see https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview
 */
export function routesTo(table: readonly Route[]): (range: string) => Route[] {
  const routes = rangedIn(table);
  return (range) => goneBy(addressesOf(range), routes).map(({ route }) => route);
}

/** Whether the routes that packets to a range go by leave nothing of it to the internet. */
export const leadAllAway = (range: string, routes: readonly Route[]): boolean => {
  const spans = rangedIn(routes).map(({ span }) => span);
  return !routes.some(leadsTo("Internet")) && partOf(addressesOf(range), spans) === "all";
};

/**
 * The routes of a table that lead away from the internet, together all that no other route leads; they go before a NAT
 * gateway. 0.0.0.0/1 and 128.0.0.0/1 do what 0.0.0.0/0 does.
 */
export function defaultRoutes(table: readonly Route[]): Route[] {
  const all = addressesOf(everything);
  const away = goneBy(all, rangedIn(table)).filter(({ route }) => !leadsTo("Internet")(route));
  const widest = away.filter(
    ({ span }) =>
      !away.some((other) => sizeOf(other.span) > sizeOf(span) && isIn(span, other.span)),
  );
  const spans = widest.map(({ span }) => span);
  return partOf(all, spans) === "all" ? widest.map(({ route }) => route) : [];
}

/**
 * The routes of a table that lead a range of its own network out of that. Azure's route for each range of the address
 * space goes before shorter ones, also within a subnet.
 *
 * @param network the ranges of the address space
 */
export function routesAround(
  table: readonly Route[],
  network: readonly string[],
): (range: string) => Route[] {
  const routes = rangedIn(table);
  const spaces = network.map(addressesOf);
  return (range) => {
    const span = addressesOf(range);
    const space = spaces.find((one) => isIn(span, one)) ?? span;
    const before = routes.filter((one) => sizeOf(one.span) <= sizeOf(space));
    return goneBy(span, before)
      .map(({ route }) => route)
      .filter((route) => !leadsTo("VnetLocal")(route));
  };
}
