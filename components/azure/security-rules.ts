import { Address4 } from "ip-address";

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
  };
}

/** Packets that are to pass; an end is a range, or one of Azure's service tags. */
export interface Flow {
  readonly direction: "Inbound" | "Outbound";
  readonly protocol: "Tcp" | "Udp";
  readonly from: string;
  readonly to: string;
  readonly port: number;
}

/** How much of a flow a rule matches. */
type Part = "all" | "some" | "none";

/**
 * The rule that stops a flow, or a part of it; undefined where all of it passes. Of the rules that match
 * a packet, Azure goes by the one whose priority is the lowest number.
 *
 * @param rules those of a security group, and the ones that Azure adds to every group
 * @param network the ranges that the tag VirtualNetwork stands for
 */
export function stoppedBy(
  flow: Flow,
  rules: readonly SecurityRule[],
  network: readonly string[],
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

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

const isAllowing = ({ properties }: SecurityRule): boolean => isSame(properties.access, "Allow");

const listOf = (one: string | undefined, many: readonly string[] = []): readonly string[] =>
  one === undefined || one === "" ? many : [one, ...many];

function matchOf(
  { protocol, from, to, port }: Flow,
  { properties: rule }: SecurityRule,
  network: readonly string[],
): Part {
  if (rule.protocol !== "*" && !isSame(rule.protocol, protocol)) return "none";
  const ports = listOf(rule.destinationPortRange, rule.destinationPortRanges);
  if (!ports.some((range) => holds(range, port))) return "none";
  const sourcePorts = listOf(rule.sourcePortRange, rule.sourcePortRanges);
  const parts = [
    endMatch(from, listOf(rule.sourceAddressPrefix, rule.sourceAddressPrefixes), network),
    endMatch(to, listOf(rule.destinationAddressPrefix, rule.destinationAddressPrefixes), network),
    sourcePorts.includes("*") || sourcePorts.includes("0-65535") ? "all" : "some",
  ] as const;
  if (parts.includes("none")) return "none";
  return parts.includes("some") ? "some" : "all";
}

function holds(range: string, port: number): boolean {
  if (range === "*") return true;
  const [first, last = first] = range.split("-").map(Number);
  return port >= first! && port <= last!;
}

/** An empty list is that of a rule for application security groups, in which no machine of a cluster is. */
function endMatch(end: string, given: readonly string[], network: readonly string[]): Part {
  const parts = given.map((one) => partIn(end, one, network));
  if (parts.includes("all")) return "all";
  return parts.includes("some") ? "some" : "none";
}

const isRange = (text: string): boolean => Address4.isValid(text);

/** Other tags stand for services of Azure, at addresses that no flow of a cluster is named by. */
function partIn(end: string, given: string, network: readonly string[]): Part {
  if (given === "*" || given === "0.0.0.0/0" || isSame(given, end)) return "all";
  if (!isRange(end)) return isSame(end, "Internet") && isRange(given) ? "some" : "none";
  if (isRange(given)) {
    const [one, other] = [new Address4(end), new Address4(given)];
    return one.isInSubnet(other) ? "all" : other.isInSubnet(one) ? "some" : "none";
  }
  const isInNetwork = network.some((range) => new Address4(end).isInSubnet(new Address4(range)));
  if (isSame(given, "VirtualNetwork")) return isInNetwork ? "all" : "none";
  if (isSame(given, "Internet")) return isInNetwork ? "none" : "all";
  return "none";
}
