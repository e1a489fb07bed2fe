import type { Interface } from "./addresses/parse";
import type { Chain, Table } from "./nftables/ruleset";

/** Two dumps' words on one thing as one; undefined where they contradict each other. */
export type Merge<T> = (first: T, second: T) => T | undefined;

export const same: Merge<unknown> & (<T>(first: T, second: T) => T | undefined) = <T>(
  first: T,
  second: T,
) => (written(first) === written(second) ? first : undefined);

/** Line numbers differ from one dump to the next. */
function written(thing: unknown): string {
  return JSON.stringify(thing, (key, value: unknown) => {
    if (key === "line") return undefined;
    if (value instanceof Map) return [...value.entries()];
    return typeof value === "function" ? (value as () => unknown)() : value;
  });
}

/** `nft list chain` and `list set` show a table in pieces. */
export const mergeTables: Merge<Table> = (first, second) => {
  const chains = mergeNamed<Chain>(first.chains, second.chains);
  const sets = mergeNamed(first.sets, second.sets);
  return chains === undefined || sets === undefined ? undefined : { ...first, chains, sets };
};

function mergeNamed<T>(
  first: ReadonlyMap<string, T>,
  second: ReadonlyMap<string, T>,
): Map<string, T> | undefined {
  const merged = new Map(first);
  for (const [name, thing] of second) {
    const before = merged.get(name);
    if (before !== undefined && same(before, thing) === undefined) return undefined;
    merged.set(name, before ?? thing);
  }
  return merged;
}

/** `ip -4 addr` and `ip -6 addr` show an interface in pieces, by family. */
export const mergeInterfaces: Merge<Interface> = (first, second) => {
  const told = [4, 6].map((family) => [first, second].map((each) => addressesOf(each, family)));
  const contradicts = told.some(([one, two]) => one !== "" && two !== "" && one !== two);
  if (contradicts) return undefined;
  const more = second.addresses.filter(
    (each) => !first.addresses.some((own) => own.address === each.address),
  );
  return { name: first.name, addresses: [...first.addresses, ...more] };
};

const addressesOf = ({ addresses }: Interface, family: number): string =>
  addresses
    .map(({ address, prefix }) => `${address}/${prefix}`)
    .filter((address) => address.includes(":") === (family === 6))
    .sort()
    .join(" ");
