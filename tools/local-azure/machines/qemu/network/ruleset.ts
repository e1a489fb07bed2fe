import { Address4 } from "ip-address";

import type { RuleBody } from "../../../arm/types/network/network-security-group";
import type { Balanced, Subnet, VirtualNetwork } from "./network-view";

/** The one address by which Azure's platform speaks with machines: probes, DNS, its agent. */
export const platformAddress = "168.63.129.16";

/** Where a network's route to a firewall ends: it lets nothing out but by its proxy. */
export const firewall = { address: "198.18.4.1", proxyPort: 3128 } as const;

/** The link of a virtual network to the outside. */
export const outside = "out0";

const set = (values: readonly string[]): string => `{ ${values.join(", ")} }`;

type Match = string | undefined | "nothing";

/** Service tags as ranges; one that means nothing here matches nothing. */
function addresses(side: "saddr" | "daddr", given: readonly string[], ranges: readonly string[]) {
  const is = (values: readonly string[]): Match =>
    values.length === 0 ? "nothing" : `ip ${side} ${set([...new Set(values)])}`;
  const words = given.filter((one) => one !== "");
  if (words.some((one) => ["*", "0.0.0.0/0", "any"].includes(one.toLowerCase()))) return undefined;
  if (words.some((one) => one.toLowerCase() === "internet")) return `ip ${side} != ${set(ranges)}`;
  return is(
    words.flatMap((one) => {
      if (one.toLowerCase() === "virtualnetwork") return [...ranges, platformAddress];
      if (one.toLowerCase() === "azureloadbalancer") return [platformAddress];
      return /^[\d./]+$/.test(one) ? [one] : [];
    }),
  );
}

const ports = (side: "sport" | "dport", given: readonly string[]): Match =>
  given.some((one) => one === "*") || given.length === 0 ? undefined : `th ${side} ${set(given)}`;

const all = (one: string | undefined, many: readonly string[] | undefined): string[] => [
  ...(one === undefined || one === "" ? [] : [one]),
  ...(many ?? []),
];

/** One rule of a security group in nft's words; undefined when it can never match here. */
function ruleText(rule: RuleBody, ranges: readonly string[], allow: string): string | undefined {
  const portMatches = [
    ports("sport", all(rule.sourcePortRange, rule.sourcePortRanges)),
    ports("dport", all(rule.destinationPortRange, rule.destinationPortRanges)),
  ];
  const protocol = rule.protocol.toLowerCase();
  const hasPorts = portMatches.some((match) => match !== undefined);
  const matches: Match[] = [
    protocol === "*"
      ? hasPorts
        ? "meta l4proto { tcp, udp }"
        : undefined
      : `meta l4proto ${protocol}`,
    addresses("saddr", all(rule.sourceAddressPrefix, rule.sourceAddressPrefixes), ranges),
    addresses("daddr", all(rule.destinationAddressPrefix, rule.destinationAddressPrefixes), ranges),
    ...portMatches,
  ];
  if (matches.includes("nothing")) return undefined;
  const verdict = rule.access.toLowerCase() === "allow" ? allow : "drop";
  return [...matches.filter((match) => match !== undefined), verdict].join(" ");
}

function chainsOf({ bridge, rules }: Subnet, ranges: readonly string[]): string[] {
  const chain = (direction: "Inbound" | "Outbound", allow: string): string => {
    const texts = rules
      ?.filter((rule) => rule.direction.toLowerCase() === direction.toLowerCase())
      .flatMap((rule) => ruleText(rule, ranges, allow) ?? []);
    const lines = texts ?? [allow];
    return `chain ${direction.toLowerCase()}-${bridge} {\n    ${lines.join("\n    ")}\n  }`;
  };
  return [chain("Outbound", "return"), chain("Inbound", "accept")];
}

/** A public address is one of the internet's, also for the machines behind it. */
const newTo = ({ address, isInternal, port, protocol }: Balanced): string =>
  `${isInternal ? "" : `iifname "${outside}" `}ip daddr ${address} ${protocol.toLowerCase()} dport ${port}`;

/** One of so many, the same for all packets of a connection. */
const choice = ({ protocol }: Balanced, places: readonly string[]): string => {
  const hash = `jhash ip saddr . ${protocol.toLowerCase()} sport mod ${places.length}`;
  return `${hash} map ${set(places.map((place, at) => `${at} : ${place}`))}`;
};

/** New connections go to the machines whose probe succeeds; with none they get no answer. */
function balancing(one: Balanced, healthy: readonly string[]): string[] {
  const [first, ...others] = one.backends.filter((backend) => healthy.includes(backend));
  if (first === undefined || one.isFloating) return [];
  if (others.length === 0) return [`${newTo(one)} dnat to ${first}:${one.backendPort}`];
  const places = [first, ...others].map((target) => `${target} . ${one.backendPort}`);
  return [`${newTo(one)} dnat ip to ${choice(one, places)}`];
}

/**
 * The same with floating IP, where a machine gets packets as they came: each connection has the mark
 * of its machine, and marks have routes.
 */
function floating(one: Balanced, healthy: readonly string[]): string[] {
  const marks = one.backends.filter((backend) => healthy.includes(backend)).map(markOf);
  if (!one.isFloating || marks.length === 0) return [];
  const mark = marks.length === 1 ? String(marks[0]) : choice(one, marks.map(String));
  return [`${newTo(one)} ct state new ct mark set ${mark}`];
}

/**
 * Nobody gets an answer of an internal balancer while no machine is healthy. Nor does a machine that is led to itself:
 * a kernel drops what comes from outside with an address of its own. Both are silence on Azure.
 */
function unanswered(balanced: readonly Balanced[]): string[] {
  const internal = balanced.filter(({ isInternal }) => isInternal);
  const addresses = [...new Set(internal.map(({ address }) => address))];
  return addresses.length === 0 ? [] : [`meta mark 0 ip daddr ${set(addresses)} drop`];
}

/** Of a machine behind a balancer with floating IP, and the number of its routing table. */
export const markOf = (address: string): number => Number(new Address4(address).bigInt());

/** Where a rule's machines are looked for in the probes' results. */
export const probeKey = ({ address, port, protocol }: Balanced): string =>
  `${protocol.toLowerCase()} ${address}:${port}`;

/**
 * All of a virtual network's packet rules: security groups, NAT gateways, ways to a firewall, balancers. A packet that
 * comes in over a balancer still has its sender's address, and a machine's that goes out has that
 * of its NAT gateway: only so do rules mean here what they mean on Azure.
 */
export function ruleset(
  { ranges, subnets, balanced }: VirtualNetwork,
  healthy: ReadonlyMap<string, readonly string[]>,
): string {
  const lines = (texts: readonly string[]): string => texts.map((text) => `    ${text}`).join("\n");
  const healthyOf = (one: Balanced) => healthy.get(probeKey(one)) ?? [];
  const withNat = subnets.filter(({ natAddress }) => natAddress !== undefined);
  const behindFirewall = subnets.filter(({ isBehindFirewall }) => isBehindFirewall);
  return `table ip zoned
delete table ip zoned
table ip zoned {
  ${subnets.flatMap((subnet) => chainsOf(subnet, ranges)).join("\n  ")}
  chain balance {
    type nat hook prerouting priority dstnat; policy accept;
${lines(balanced.flatMap((one) => balancing(one, healthyOf(one))))}
  }
  chain float {
    type filter hook prerouting priority mangle; policy accept;
${lines(balanced.flatMap((one) => floating(one, healthyOf(one))))}
    ct direction original meta mark set ct mark
  }
  chain translate {
    type nat hook postrouting priority srcnat; policy accept;
${lines(withNat.map(({ prefix, natAddress }) => `oifname "${outside}" ip saddr ${prefix} snat to ${natAddress}`))}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    iifname "${outside}" oifname "${outside}" drop
${lines(unanswered(balanced))}
${lines(subnets.map(({ bridge }) => `iifname "${bridge}" jump outbound-${bridge}`))}
${lines(withNat.map(({ prefix }) => `oifname "${outside}" ip saddr ${prefix} accept`))}
${lines(behindFirewall.map(({ prefix }) => `oifname "${outside}" ip saddr ${prefix} ip daddr ${firewall.address} tcp dport ${firewall.proxyPort} accept`))}
${lines(subnets.map(({ bridge }) => `oifname "${bridge}" jump inbound-${bridge}`))}
  }
  chain platform {
    type filter hook output priority filter; policy accept;
    ct state established,related accept
${lines(subnets.map(({ bridge }) => `oifname "${bridge}" ip saddr ${platformAddress} jump inbound-${bridge}`))}
  }
}
`;
}
