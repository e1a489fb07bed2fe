import { Address4 } from "ip-address";

/** Addresses or ports in a row. */
export type Span = readonly [first: number, last: number];

/** How much of something matches. */
export type Part = "all" | "some" | "none";

/** Whether all of a span lies in another. */
export const isIn = ([first, last]: Span, [from, to]: Span): boolean => from <= first && last <= to;

/** How much of a span lies in others together. */
export function partOf([first, last]: Span, others: readonly Span[]): Part {
  let next = first;
  for (const [from, to] of others.toSorted(([one], [other]) => one - other)) {
    if (from <= next) next = Math.max(next, to + 1);
  }
  if (next > last) return "all";
  return others.some(([from, to]) => from <= last && first <= to) ? "some" : "none";
}

export function addressesOf(range: string): Span {
  const given = new Address4(range);
  return [Number(given.startAddress().bigInt()), Number(given.endAddress().bigInt())];
}
