import { type Case, classOf } from "./case";

/**
 * Cases in the order in which they are tried: each class once before any is repeated, and within
 * such a round scenarios and kinds in turn, so that the first few differ most.
 */
export function inOrder(cases: readonly Case[]): Case[] {
  const rounds: Case[][] = [];
  for (const ofClass of groups(cases, classOf)) {
    ofClass.forEach((one, round) => (rounds[round] ??= []).push(one));
  }
  return rounds.flatMap((round) =>
    inTurn(groups(round, ({ scenario }) => scenario.key).map(byKind)),
  );
}

const byKind = (cases: readonly Case[]): Case[] => inTurn(groups(cases, ({ kind }) => kind));

function groups<T>(all: readonly T[], keyOf: (one: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  return [...found.values()];
}

/** The first of each, then the second of each, and so on. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
}
