import { Address4, Address6, AddressError } from "ip-address";

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
