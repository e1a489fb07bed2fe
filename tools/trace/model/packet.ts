import { isIP, isIPv4, isIPv6 } from "node:net";
import { Address4, Address6, AddressError } from "ip-address";

import { UserError } from "../../shared/user-error";

/** Addresses from `low` to `high`. */
export interface Range {
  readonly family: 4 | 6;
  readonly low: bigint;
  readonly high: bigint;
}

const known = new Map<string, Range | null>();

/**
 * `10.0.0.1`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `10.0.0.1-10.0.0.9`, the same for IPv6; null for
 * anything else.
 */
export function rangeOf(text: string): Range | null {
  const before = known.get(text);
  if (before !== undefined) return before;
  const range = read(text);
  if (known.size > 50_000) known.clear();
  known.set(text, range);
  return range;
}

function read(text: string): Range | null {
  try {
    const dash = text.indexOf("-");
    if (dash > 0) {
      const [low, high] = [rangeOf(text.slice(0, dash)), rangeOf(text.slice(dash + 1))];
      if (low === null || high === null || low.family !== high.family) return null;
      return { family: low.family, low: low.low, high: high.high };
    }
    if (text.includes(":")) return spread(6, new Address6(withPrefix(text, 6)));
    return spread(4, new Address4(withPrefix(text, 4)));
  } catch (error) {
    if (error instanceof AddressError) return null;
    throw error;
  }
}

/** iptables prints masks that are no prefix length in full, and old listings all of them. */
function withPrefix(text: string, family: 4 | 6): string {
  const slash = text.indexOf("/");
  const mask = slash < 0 ? "" : text.slice(slash + 1);
  if (!/[.:]/.test(mask)) return text;
  const value = family === 4 ? new Address4(mask).bigInt() : new Address6(mask).bigInt();
  const bits = value.toString(2).padStart(family === 4 ? 32 : 128, "0");
  const prefix = bits.indexOf("0") < 0 ? bits.length : bits.indexOf("0");
  if (bits.slice(prefix).includes("1")) throw new AddressError(`${mask} is no prefix`);
  return `${text.slice(0, slash)}/${prefix}`;
}

function spread(family: 4 | 6, network: Address4 | Address6): Range {
  return { family, low: network.startAddress().bigInt(), high: network.endAddress().bigInt() };
}

export function isWithin(inner: Range, outer: Range): boolean {
  return inner.family === outer.family && inner.low >= outer.low && inner.high <= outer.high;
}

export function overlaps(a: Range, b: Range): boolean {
  return a.family === b.family && a.low <= b.high && b.low <= a.high;
}

export function isSingle(range: Range): boolean {
  return range.low === range.high;
}

export function isLoopback(range: Range): boolean {
  return loopback.some((each) => isWithin(range, each));
}

/** The canonical text of an address. */
export function addressOf(value: bigint, family: 4 | 6): string {
  return (family === 4 ? Address4.fromBigInt(value) : Address6.fromBigInt(value)).correctForm();
}

/** The canonical text of an address; null if it is not one. */
export function canonical(text: string): string | null {
  const range = text.includes("/") || text.includes("-") ? null : rangeOf(text);
  return range === null ? null : addressOf(range.low, range.family);
}

/** Canonical text of the network of `prefix` bits that holds `address`, such as `10.0.0.0/24`. */
export function networkOf(address: string, prefix: number): string {
  const range = rangeOf(`${address}/${prefix}`);
  return `${range === null ? address : addressOf(range.low, range.family)}/${prefix}`;
}

const loopback = ["127.0.0.0/8", "::1"].map((text) => rangeOf(text)!);

/** A new connection's first packet, as it reaches the node or leaves a process of it. */
export interface Packet {
  /**
   * Where it comes from: a pod on this node, a process in the node's own network, or another
   * machine. It decides which hooks the packet passes: `node` begins at output, the others at
   * prerouting.
   */
  readonly from: "pod" | "node" | "outside";
  /** Without it, only what `from` implies is known of the source. */
  readonly source: string | null;
  readonly destination: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp" | "sctp";
}

export type Origin = Packet["from"];

/** Where a packet goes. */
export type Destination = Pick<Packet, "destination" | "port" | "protocol">;

const origins: readonly Origin[] = ["pod", "node", "outside"];

const protocols: readonly Packet["protocol"][] = ["tcp", "udp", "sctp"];

export function origin(text: string): Origin {
  const found = origins.find((name) => name === text);
  if (found === undefined) throw wrong("from", text, `one of ${origins.join(", ")}`);
  return found;
}

/** `10.96.0.10:53/udp`, `[fd00::a]:53`; tcp where no protocol is named. */
export function destination(text: string): Destination {
  const {
    host,
    port = "",
    named = "tcp",
  } = /^(?<host>\[[^\]]*\]|[^:[\]]*):(?<port>\d+)(?:\/(?<named>\w+))?$/.exec(text)?.groups ?? {};
  const expected = "ADDRESS:PORT, ADDRESS:PORT/udp or /sctp, an IPv6 address in brackets";
  if (host === undefined) throw wrong("to", text, expected);
  const address = host.startsWith("[") ? host.slice(1, -1) : host;
  const isAddress = host.startsWith("[") ? isIPv6(address) : isIPv4(address);
  if (!isAddress || address.includes("%")) {
    throw wrong("to", text, `${expected}; "${address}" is no address, and names are not resolved`);
  }
  if (Number(port) < 1 || Number(port) > 65_535) {
    throw wrong("to", text, `a port from 1 to 65535`);
  }
  const protocol = protocols.find((name) => name === named.toLowerCase());
  if (protocol === undefined) throw wrong("to", text, `one of /${protocols.join(", /")}`);
  return { destination: canonical(address)!, port: Number(port), protocol };
}

export function source(text: string, to: Destination): string {
  const bare = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  const family = isIP(to.destination);
  if (isIP(bare) === 0 || bare.includes("%")) {
    throw wrong("source", text, "an IPv4 or IPv6 address, without a prefix length");
  }
  if (isIP(bare) !== family) {
    throw wrong("source", text, `an IPv${family} address, since the destination is one`);
  }
  return canonical(bare)!;
}

const wrong = (option: string, got: string, expected: string): UserError =>
  new UserError(`${option}: expected ${expected}, got "${got}"`, 2);

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
  /** By name or by number; null for all. */
  readonly port: string | null;
}

export function serviceName(text: string): ServiceName {
  const { namespace, name, port } =
    /^(?<namespace>[a-z\d-]+)\/(?<name>[a-z\d.-]+)(?::(?<port>[a-z\d-]+))?$/.exec(text)?.groups ??
    {};
  if (namespace === undefined || name === undefined) {
    throw wrong("service", text, "NAMESPACE/NAME or NAMESPACE/NAME:PORT, in lower case");
  }
  return { namespace, name, port: port ?? null };
}

/** One rule that the packet meets, in the order in which the kernel takes them. */
export interface Step {
  readonly table: string;
  readonly chain: string;
  /** As the dump writes it. */
  readonly rule: string;
  /** What the rule does with this packet, in words. */
  readonly effect: string;
}

export interface Endpoint {
  /** `10.0.0.1:80`, or `[fd00::1]:80`. */
  readonly address: string;
  /** Of one new connection from this source; all of an answer's add up to 1. */
  readonly probability: number;
  /** Only where endpoints differ, as with a pod that may reach itself. */
  readonly masquerade?: boolean | "unknown";
}

/** What `--json` prints; scripts rely on its fields. */
export interface Answer {
  readonly mode: "iptables" | "ipvs" | "nftables";
  readonly packet: Packet;
  readonly steps: readonly Step[];
  /**
   * `pass`: no Service rule applies, the packet goes on as it is; `unknown`: the dumps do not say.
   */
  readonly verdict: "dnat" | "drop" | "reject" | "pass" | "unknown";
  readonly endpoints: readonly Endpoint[];
  /** `unknown` also where endpoints differ; then each says its own. */
  readonly masquerade: boolean | "unknown";
  /** How long a client stays with its endpoint, in seconds; null without session affinity. */
  readonly affinitySeconds: number | null;
  /** One sentence. */
  readonly reason: string;
  /** What the dumps lack, and the assumptions made, one sentence each. */
  readonly notes: readonly string[];
}
