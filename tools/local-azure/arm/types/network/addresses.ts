import { Address4 } from "ip-address";

import { refuse } from "../../azure-error";

/** A range of addresses as numbers, both ends included. */
export interface Range {
  readonly prefix: string;
  readonly first: bigint;
  readonly last: bigint;
}

const toText = (value: bigint): string => Address4.fromBigInt(value).correctForm();

function parseAddress(address: string): bigint | undefined {
  return !address.includes("/") && Address4.isValid(address)
    ? new Address4(address).bigInt()
    : undefined;
}

/** Throws unless the prefix is in CIDR notation without host bits. */
export function parseRange(prefix: string, where: string): Range {
  const range = prefix.includes("/") && Address4.isValid(prefix) ? new Address4(prefix) : undefined;
  if (range === undefined) {
    throw refuse(
      "InvalidAddressPrefixFormat",
      `Address prefix ${prefix} of resource ${where} is not formatted correctly. ` +
        "It should follow CIDR notation, for example 10.0.0.0/24.",
    );
  }
  const first = range.startAddress().bigInt();
  if (range.bigInt() !== first) {
    const [, length] = prefix.split("/");
    throw refuse(
      "InvalidCIDRNotation",
      `The address prefix ${prefix} in resource ${where} has an invalid CIDR notation. ` +
        `For the given prefix length, the address prefix should be ${toText(first)}/${length}.`,
    );
  }
  return { prefix, first, last: range.endAddress().bigInt() };
}

export const overlap = (a: Range, b: Range): boolean => a.first <= b.last && b.first <= a.last;

export const within = (inner: Range, outer: Range): boolean =>
  outer.first <= inner.first && inner.last <= outer.last;

/** Azure reserves the first four addresses of a subnet, and the last. */
const reserved = ({ first, last }: Range, address: bigint): boolean =>
  address < first + 4n || address === last;

/** All free addresses, the lowest first. */
export const freeAddresses = (ranges: readonly Range[], taken: ReadonlySet<string>): string[] => [
  ...freeIn(ranges, taken),
];

/** The lowest free address, as Azure allocates them. */
export const firstFree = (
  ranges: readonly Range[],
  taken: ReadonlySet<string>,
): string | undefined => freeIn(ranges, taken).next().value;

function* freeIn(
  ranges: readonly Range[],
  taken: ReadonlySet<string>,
): Generator<string, undefined> {
  for (const range of ranges) {
    for (let address = range.first; address <= range.last; address++) {
      if (!reserved(range, address) && !taken.has(toText(address))) yield toText(address);
    }
  }
  return undefined;
}

export function checkStatic(address: string, ranges: readonly Range[]): void {
  const value = parseAddress(address);
  if (value === undefined) {
    throw refuse("InvalidIPAddressFormat", `IP address ${address} is not formatted correctly.`);
  }
  const prefixes = ranges.map(({ prefix }) => prefix).join(",");
  const range = ranges.find(({ first, last }) => first <= value && value <= last);
  if (range === undefined) {
    throw refuse(
      "PrivateIPAddressNotInSubnet",
      `Private static IP address ${address} does not belong to the range of subnet prefix ${prefixes}.`,
    );
  }
  if (reserved(range, value)) {
    throw refuse(
      "PrivateIPAddressInReservedRange",
      `Private static IP address ${address} falls within reserved IP range of subnet prefix ${range.prefix}.`,
    );
  }
}
