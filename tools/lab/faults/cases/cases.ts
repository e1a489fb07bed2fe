import type { Stage } from "../../../local-azure/arm/faults/breakpoints";
import { azureFaults } from "./azure-faults";
import { type Case, classOf, whatOf } from "./case";
import { isLost } from "./disturbances";
import type { Victim } from "../life";
import type { Request } from "./requests";
import type { Scenario } from "./scenarios";
import { unhealthyMembers } from "./unhealthy-members";

/** What a good run asked. */
export interface Asked {
  readonly writes: readonly Request[];
  readonly reads: readonly Request[];
}

/** All that can go wrong in a scenario whose good run asked this. */
export const casesOf = (scenario: Scenario, { writes, reads }: Asked): Case[] => [
  ...writes.flatMap((request) => killPoints(scenario, request)),
  ...(writes.length < fewest
    ? []
    : killedIn(scenario).flatMap(([victim]) => killedAgain(scenario, victim))),
  ...azureFaults(scenario, writes, reads),
  ...unhealthyMembers.filter((one) => one.scenario.key === scenario.key),
];

/** Requests of the first of several killed commands. */
const fewest = 4;

const stages: readonly Stage[] = ["arrived", "accepted", "answered"];

/** Where a process that only leads on to the engine is killed makes no difference to Azure. */
const killed: readonly (readonly [Victim, readonly Stage[]])[] = [
  ["engine", stages],
  ["provider", stages],
  ["language host", ["accepted"]],
  ["program", ["accepted"]],
];

/** The engine runs the program for an update alone. */
const killedIn = ({ operation }: Scenario) =>
  killed.filter(([victim]) => victim !== "program" || operation === "up");

const killedAgain = (scenario: Scenario, victim: Victim): Case[] =>
  (["arrived", "accepted"] as const).map((stage) => ({
    scenario,
    kind: `${victim} killed again and again`,
    what: stage,
    title: `${fewest}th request ${stage}, then one more each time`,
    disturbance: { killAgain: victim, from: fewest, stage },
  }));

function killPoints(scenario: Scenario, request: Request): Case[] {
  const { method, id, nth, title } = request;
  return killedIn(scenario).flatMap(([victim, when]) =>
    when.map((stage) => ({
      scenario,
      kind: `${victim} killed, request ${stage}`,
      what: whatOf(request),
      title,
      disturbance: {
        kill: victim,
        at: { method, id, nth, stage, drop: isLost(victim, stage) },
      },
    })),
  );
}

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
