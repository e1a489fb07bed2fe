import type { Statement, Verdict } from "../../model/statement";
import { readVerdict } from "../../read/nftables/rule";
import {
  addStep,
  type BaseChain,
  choices,
  type Hook,
  type Outcome,
  type Place,
  rounded,
  ruleName,
  type RuleTable,
  unknownOutcome,
} from "../context";
import { end, type Flow, merge } from "../flow";
import { isInSet } from "../ipset";
import { type Branch, branchOnDoubt, branchOnMap, branchOnMatch, part } from "./branches";
import { assign, updateSet, translate } from "./effects";

/** How a base chain is registered. */
interface Base {
  readonly hook: Hook;
  readonly priority: number;
  readonly nat: boolean;
  readonly policy: "accept" | "drop";
}

export const baseChain = (table: RuleTable, name: string, base: Base): BaseChain => ({
  table: table.name,
  name,
  hook: base.hook,
  priority: base.priority,
  nat: base.nat,
  walk(flow, context) {
    const place: Place = { table, nat: base.nat, chain: name, rule: null, context, depth: 0 };
    return walkChain(name, flow, place).map(({ flow: way, on }) => {
      if (on === "out" || base.policy === "accept" || way.verdict !== null) return way;
      context.path.step(table.name, name, "policy drop", "drop");
      const why = `The policy of chain ${name} in table ${table.name} is drop, and no rule accepts the packet before.`;
      return end(way, "drop", why);
    });
  },
});

const deepest = 64;

/** The most flows with undecidable questions that are followed at once. */
const tooMany = 512;

/** Evaluates a chain's rules in order. */
function walkChain(name: string, flow: Flow, from: Place): Outcome[] {
  const rules = from.table.rulesOf(name, flow);
  if (rules === null) return from.table.missing(name, flow, from);
  if (from.depth > deepest) {
    return unknownOutcome(
      flow,
      `Chains of table ${from.table.name} call each other in a circle, ${name} among them.`,
    );
  }
  let going: Flow[] = [flow];
  const done: Outcome[] = [];
  for (const rule of rules) {
    const place: Place = { ...from, chain: name, rule, depth: from.depth + 1 };
    const statements = from.table.statementsOf(rule, name);
    const next: Flow[] = [];
    for (const each of going) {
      for (const outcome of walkStatements(statements, 0, each, place, "")) {
        if (outcome.on === "next") next.push(outcome.flow);
        else done.push(outcome);
      }
    }
    going = merged(next);
    if (going.filter(({ doubts }) => doubts.length > 0).length > tooMany) {
      return [
        ...done,
        ...going.flatMap((each) =>
          unknownOutcome(each, `Too many rules of chain ${name} cannot be decided.`),
        ),
      ];
    }
    if (going.length === 0) break;
  }
  const back = [
    ...done.filter(({ on }) => on === "caller").map((outcome) => outcome.flow),
    ...going,
  ];
  return [
    ...done.filter(({ on }) => on === "out"),
    ...merged(back).map((each) => ({ flow: each, on: "caller" as const })),
  ];
}

const merged = (flows: Flow[]): Flow[] =>
  flows.length > 1 && flows.some(({ doubts }) => doubts.length > 0) ? merge(flows) : flows;

const isMatch = ({ kind }: Statement): boolean =>
  ["match", "ipset", "probability", "undecidable", "noop", "note"].includes(kind);

/** Evaluates the statements from `at` on; `caveat` precedes the effect in the rule's step. */
function walkStatements(
  statements: readonly Statement[],
  at: number,
  flow: Flow,
  place: Place,
  caveat: string,
): Outcome[] {
  const statement = statements[at];
  if (statement === undefined) {
    if (statements.every(isMatch)) addStep(place, "goes on", caveat);
    return [{ flow, on: "next" }];
  }
  const onward = (way: Flow, more = ""): Outcome[] =>
    walkStatements(statements, at + 1, way, place, caveat + more);
  const past = (ways: readonly Branch<boolean>[]): Outcome[] =>
    ways.flatMap((way) =>
      way.value ? onward(way.flow, caveatOf(way.doubt)) : [{ flow: way.flow, on: "next" }],
    );
  switch (statement.kind) {
    case "match":
      return past(branchOnMatch(statement, flow, place));
    case "ipset":
      return past(branchOnSet(statement, flow, place));
    case "probability":
      return [
        ...part(flow, statement.probability, true).flatMap((way) =>
          onward(way.flow, `with probability ${rounded(statement.probability)} `),
        ),
        ...part(flow, 1 - statement.probability, false).map((way) => ({
          flow: way.flow,
          on: "next" as const,
        })),
      ];
    case "undecidable":
      // It matters only if a later statement affects where the packet goes.
      if (statements.slice(at + 1).every(({ kind }) => kind === "noop")) {
        addStep(place, `cannot be decided ${statement.why}`, caveat);
        return [{ flow, on: "next" }];
      }
      return past(
        branchOnDoubt(
          { why: statement.why, id: `${statement.why} ${ruleName(place)}` },
          flow,
          place,
        ),
      );
    case "vmap":
      return byMap(statement, flow, place, caveat);
    case "verdict":
      return follow(statement.verdict, flow, place, caveat, null);
    case "nat":
      return translate(statement.nat, flow, place, caveat).map(({ flow: way, value }) => ({
        flow: way,
        on: value ? "out" : "next",
      }));
    case "set":
      return onward(assign(statement, flow, place, caveat));
    case "update":
      return onward(updateSet(statement.set, flow, place, caveat));
    case "affinity":
      addStep(
        place,
        `for a client that came within ${statement.seconds} s; a new one goes on`,
        caveat,
      );
      place.context.path.note(
        "Session affinity: which clients are remembered is in no dump; the answer is for a client that is not.",
      );
      return [{ flow: { ...flow, affinitySeconds: statement.seconds }, on: "next" }];
    case "notrack":
      addStep(place, "leaves the connection untracked", caveat);
      return onward({ ...flow, tracked: false });
    case "note":
      place.context.path.note(statement.sentence);
      return onward(flow);
    case "noop":
      return onward(flow);
    case "untraceable":
      addStep(place, `${statement.text}: cannot be followed`, caveat);
      return unknownOutcome(flow, `${ruleName(place)}: ${statement.why}.`);
  }
}

const caveatOf = (doubt: string | null): string =>
  doubt === null ? "" : `perhaps (it cannot be decided ${doubt}): `;

function branchOnSet(
  { name, sides, negated }: Extract<Statement, { kind: "ipset" }>,
  flow: Flow,
  place: Place,
): Branch<boolean>[] {
  const { node, path } = place.context;
  const held = isInSet(name, { node, flow, path, sides });
  if (typeof held === "boolean") return [{ flow, value: held !== negated, doubt: null }];
  const id = `${held.why} ${name} ${sides.join()} ${flow.destination}`;
  return branchOnDoubt({ ...held, id }, flow, place).map((way) => ({
    ...way,
    value: way.value !== negated,
  }));
}

type ByMap = Extract<Statement, { kind: "vmap" }>;

function byMap(statement: ByMap, flow: Flow, place: Place, caveat: string): Outcome[] {
  const ways = branchOnMap(statement.key, statement.data, flow, place);
  const shares = ways.filter(
    ({ value, flow: way }) => value !== null && way.probability < flow.probability,
  );
  if (shares.length > 0) {
    const given = shares.map((way) => ({
      what: way.value?.value ?? "",
      share: way.flow.probability / flow.probability,
    }));
    addStep(place, `picks ${choices(given)}`, caveat);
  }
  return ways.flatMap((way): Outcome[] => {
    if (way.flow.verdict !== null) return [{ flow: way.flow, on: "out" }];
    if (way.value === null) return [{ flow: way.flow, on: "next" }];
    const verdict = readVerdict(way.value.value ?? "");
    if (verdict === null) {
      return unknownOutcome(
        way.flow,
        `${ruleName(place)} gives "${way.value.value ?? ""}", which is no verdict.`,
      );
    }
    return follow(verdict, way.flow, place, caveat + caveatOf(way.doubt), {
      map: statement.data.kind === "named" ? statement.data.name : null,
      hasStep: shares.includes(way),
    });
  });
}

/** The verdict map that a verdict is from, and whether its step has been added. */
interface Given {
  readonly map: string | null;
  readonly hasStep: boolean;
}

function follow(
  verdict: Verdict,
  flow: Flow,
  place: Place,
  caveat: string,
  by: Given | null,
): Outcome[] {
  const map = by?.map ?? null;
  const step = (effect: string): void => {
    if (by?.hasStep !== true)
      addStep(place, map === null ? effect : `in ${map}: ${effect}`, caveat);
  };
  switch (verdict.kind) {
    case "accept":
      step("accept");
      return [{ flow, on: "out" }];
    case "return":
      step("return");
      return [{ flow, on: "caller" }];
    case "continue":
      return [{ flow, on: "next" }];
    case "drop":
      step("drop");
      return [{ flow: end(flow, "drop", why("drop", map, place)), on: "out" }];
    case "reject":
      step(verdict.with === "" ? "reject" : `reject with ${verdict.with}`);
      return [{ flow: end(flow, "reject", why("reject", map, place)), on: "out" }];
    case "jump":
    case "goto": {
      step(`${verdict.kind} ${verdict.chain}`);
      const after = verdict.kind === "jump" ? "next" : "caller";
      return walkChain(verdict.chain, flow, place).map((outcome) => ({
        flow: map === null ? outcome.flow : explained(outcome.flow, map, place),
        on: outcome.on === "out" ? "out" : after,
      }));
    }
  }
}

/** One sentence for a verdict: kube-proxy's reason or the rule's comment, and which rule it is. */
function why(
  verdict: "drop" | "reject" | "unknown",
  map: string | null,
  place: Place,
  otherwise: string | null = null,
): string {
  const reason = place.table.reasonOf(verdict, map ?? place.chain);
  const comment = place.rule && place.table.commentOf(place.rule, place.chain);
  const rule = `${verdict} by ${ruleName(place)}`;
  if (reason !== null) return `${reason} (${rule}).`;
  if (otherwise !== null) return otherwise;
  return comment === null
    ? `The packet meets ${rule}.`
    : `${comment.charAt(0).toUpperCase()}${comment.slice(1)} (${rule}).`;
}

/** If a verdict map jumps to a chain that drops or rejects, the map is the reason. */
function explained(flow: Flow, map: string, place: Place): Flow {
  const { verdict } = flow;
  return verdict === null
    ? flow
    : { ...flow, verdict: { ...verdict, why: why(verdict.kind, map, place, verdict.why) } };
}
