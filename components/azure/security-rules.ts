import { Address4 } from "ip-address";

import { isPrivate } from "../settings/rules/ranges";
import { addressesOf, isIn, type Part, partOf, type Span } from "./spans";

/** From where Azure's balancers probe, and where its DNS answers. */
export const azuresAddress = "168.63.129.16";

/** A rule as Azure shows it: each list beside its singular form. */
export interface SecurityRule {
  readonly name: string;
  readonly properties: {
    readonly access: string;
    readonly direction: string;
    readonly priority: number;
    readonly protocol: string;
    readonly sourceAddressPrefix?: string;
    readonly sourceAddressPrefixes?: readonly string[];
    readonly sourcePortRange?: string;
    readonly sourcePortRanges?: readonly string[];
    readonly destinationAddressPrefix?: string;
    readonly destinationAddressPrefixes?: readonly string[];
    readonly destinationPortRange?: string;
    readonly destinationPortRanges?: readonly string[];
    readonly sourceApplicationSecurityGroups?: readonly { readonly id: string }[];
    readonly destinationApplicationSecurityGroups?: readonly { readonly id: string }[];
  };
}

/** Packets that are to pass; an end is a range, or one of Azure's service tags. */
export interface Flow {
  readonly direction: "Inbound" | "Outbound";
  readonly protocol: "Tcp" | "Udp";
  readonly from: string;
  readonly to: string;
  readonly port: number;
  /** Of several ports the last one. */
  readonly lastPort?: number;
}

/**
 * The rule that stops a flow, or a part of it; undefined where all of it passes. Of the rules that match
 * a packet, Azure goes by the one whose priority is the lowest number. What Azure alone knows stops nothing
 * here: which networks behind a gateway are in the tag VirtualNetwork.
 *
 * @param rules those of a security group, and the ones that Azure adds to every group
 * @param network the ranges that are known to be in the tag VirtualNetwork
 */
export function stoppedBy(
  flow: Flow,
  rules: readonly SecurityRule[],
  network: readonly Span[],
): SecurityRule | undefined {
  const decisive = rules
    .filter(({ properties }) => isSame(properties.direction, flow.direction))
    .toSorted((one, other) => one.properties.priority - other.properties.priority)
    .find((rule) => {
      const part = matchOf(flow, rule, network);
      return part === "all" || (part === "some" && !isAllowing(rule));
    });
  return decisive === undefined || isAllowing(decisive) ? undefined : decisive;
}

/**
 * Whether what Azure alone knows may let a flow to the internet, or to a public address, pass by rules before the one
 * that stops it: which addresses are in the tags of its services, and which of a gateway's in VirtualNetwork. Of the
 * internet, a range may be the part that a cluster needs.
 */
export function mayPass(
  flow: Flow,
  stopping: SecurityRule,
  rules: readonly SecurityRule[],
  network: readonly Span[],
): boolean {
  if (!isRange(flow.to)) return opensPart(flow, stopping, rules, network);
  const to = addressesOf(flow.to);
  if (isPrivate(flow.to) || network.some((one) => isIn(to, one))) return false;
  return (
    opensPart(flow, stopping, rules, network) ||
    stoppedBy(flow, rules, [...network, to]) === undefined
  );
}

const opensPart = (
  flow: Flow,
  stopping: SecurityRule,
  rules: readonly SecurityRule[],
  network: readonly Span[],
): boolean =>
  rules.some((rule) => {
    const { direction, priority } = rule.properties;
    if (!isAllowing(rule) || !isSame(direction, flow.direction)) return false;
    if (priority >= stopping.properties.priority) return false;
    return endsOf(rule)[1]
      .filter((to) =>
        isRange(to) ? !isRange(flow.to) && !isPrivate(to) : !isSame(to, "VirtualNetwork"),
      )
      .some((to) => matchOf({ ...flow, to }, rule, network) === "all");
  });

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

export const isAllowing = ({ properties }: SecurityRule): boolean =>
  isSame(properties.access, "Allow");

const listOf = (one: string | undefined, many: readonly string[] = []): readonly string[] =>
  one === undefined || one === "" ? many : [one, ...many];

/** The addresses and tags of a rule's source, and those of its destination. */
export const endsOf = ({
  properties,
}: SecurityRule): [sources: readonly string[], destinations: readonly string[]] => [
  listOf(properties.sourceAddressPrefix, properties.sourceAddressPrefixes),
  listOf(properties.destinationAddressPrefix, properties.destinationAddressPrefixes),
];

/** How much of a flow a rule matches. */
function matchOf(
  { protocol, from, to, port, lastPort = port }: Flow,
  given: SecurityRule,
  network: readonly Span[],
): Part {
  const rule = given.properties;
  if (rule.protocol !== "*" && !isSame(rule.protocol, protocol)) return "none";
  const ports = listOf(rule.destinationPortRange, rule.destinationPortRanges);
  const sourcePorts = listOf(rule.sourcePortRange, rule.sourcePortRanges);
  const [sources, destinations] = endsOf(given);
  const match = (end: string, ofRule: readonly string[]) =>
    endMatch(end, ofRule, { network, isAllowed: isAllowing(given) });
  const parts = [
    match(from, sources),
    match(to, destinations),
    partOf([port, lastPort], ports.map(portsOf)),
    sourcePorts.includes("*") || sourcePorts.includes("0-65535") ? "all" : "some",
  ] as const;
  if (parts.includes("none")) return "none";
  return parts.includes("some") ? "some" : "all";
}

const widest = (parts: readonly Part[]): Part =>
  (["all", "some"] as const).find((part) => parts.includes(part)) ?? "none";

function portsOf(range: string): Span {
  if (range === "*") return [0, 65_535];
  const [from = 0, to = from] = range.split("-").map(Number);
  return [from, to];
}

interface Known {
  readonly network: readonly Span[];
  /** What the rule does with what it matches. */
  readonly isAllowed: boolean;
}

/** An empty list is that of a rule for application security groups, in which no machine of a cluster is. */
function endMatch(end: string, given: readonly string[], known: Known): Part {
  const ranges = isRange(end) ? given.filter(isRange).map(addressesOf) : [];
  return widest([
    ...given.map((one) => partIn(end, one, known)),
    ...(ranges.length > 0 ? [partOf(addressesOf(end), ranges)] : []),
  ]);
}

export const isRange = (text: string): boolean => Address4.isValid(text);

/**
 * Other tags stand for services of Azure, at addresses that mayPass leaves open. A range is no part of the internet
 * that a cluster is known to need.
 */
function partIn(end: string, given: string, { network, isAllowed }: Known): Part {
  if (given === "*" || given === "0.0.0.0/0" || isSame(given, end)) return "all";
  if (isSame(end, "AzureLoadBalancer") && isRange(given))
    return isIn(addressesOf(azuresAddress), addressesOf(given)) ? "all" : "none";
  // The second tag has the address of the first (MicrosoftDocs/azure-docs #38326).
  if (isSame(end, "AzureLoadBalancer") && isSame(given, "VirtualNetwork")) return "all";
  if (!isRange(end) || isRange(given)) return "none";
  const span = addressesOf(end);
  const isInNetwork = network.some((one) => isIn(span, one));
  // On premises, or another spoke behind a firewall: in the first tag where a gateway leads there.
  const isUnknown = !isInNetwork && isPrivate(end);
  if (isSame(given, "VirtualNetwork"))
    return isInNetwork || (isUnknown && isAllowed) ? "all" : "none";
  if (isSame(given, "Internet")) return isInNetwork || (isUnknown && !isAllowed) ? "none" : "all";
  return "none";
}
