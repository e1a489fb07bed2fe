import type { Flow } from "../flow";
import { end } from "../flow";
import { merge } from "../merge-flows";
import { assign, remember } from "./effects";
import { translate } from "./nat";
import { atLost, isLost } from "./lost-target";
import type { Place } from "./place";
import type { Outcome } from "./outcome";
import { lost } from "./outcome";
import { choices, ruleName, tableName, tell } from "./place";
import { readVerdict, statementsOf } from "./read-rule";
import type { Statement, Verdict } from "./statement";
import type { Way } from "./ways";
import { pastDoubt, pastMap, pastMatch } from "./ways";
import { explained, why } from "./why";

type ByMap = Extract<Statement, { kind: "vmap" }>;

/** The map that gave a verdict, and whether the step is told already. */
interface Given {
  readonly statement: ByMap;
  readonly told: boolean;
}

const deepest = 64;

/** A chain's rules in their order; what comes back is behind its call, or behind the chain that the kernel called. */
export function walkChain(name: string, flow: Flow, from: Place): Outcome[] {
  const chain = from.table.chains.get(name);
  const table = `table ${tableName(from.table)}`;
  if (chain === undefined) return lost(flow, `Chain ${name} of ${table} is not in the dump.`);
  if (from.depth > deepest) {
    return lost(flow, `Chains of ${table} call each other in a circle, ${name} among them.`);
  }
  let going: Flow[] = [flow];
  const done: Outcome[] = [];
  for (const rule of chain.rules) {
    const place: Place = { ...from, chain, rule, depth: from.depth + 1 };
    const next: Flow[] = [];
    for (const each of going) {
      from.meeting.path.visited++;
      for (const outcome of walkRule(statementsOf(rule), 0, each, place, null)) {
        if (outcome.on === "next") next.push(outcome.flow);
        else done.push(outcome);
      }
    }
    going = next.length > 1 && next.some((each) => each.doubts.length > 0) ? merge(next) : next;
    if (going.length === 0) return done;
  }
  return [...done, ...going.map((each) => ({ flow: each, on: "caller" as const }))];
}

/** The statements from `at` on; `doubt` is why it is not certain that the rule is followed so far. */
function walkRule(
  statements: readonly Statement[],
  at: number,
  flow: Flow,
  place: Place,
  doubt: string | null,
): Outcome[] {
  const statement = statements[at];
  if (statement === undefined) {
    if (isLost(statements, place)) return atLost(flow, place, doubt);
    if (statements.every(({ kind }) => kind === "match" || kind === "idle" || kind === "open"))
      tell(place, "goes on", doubt);
    return [{ flow, on: "next" }];
  }
  const onward = (way: Flow, because: string | null = doubt): Outcome[] =>
    walkRule(statements, at + 1, way, place, because);
  switch (statement.kind) {
    case "match":
      return past(pastMatch(statement, flow, place), onward, doubt);
    case "open":
      return pastOpen(statements, at, statement.why, flow, place, doubt, onward);
    case "vmap":
      return byMap(statement, flow, place, doubt);
    case "verdict":
      return follow(statement.verdict, flow, place, doubt, null);
    case "nat":
      return translate(statement.nat, flow, place, doubt).map(({ flow: way, value }) => ({
        flow: way,
        on: value ? "out" : "next",
      }));
    case "set":
      return onward(assign(statement, flow, place, doubt));
    case "update":
      return onward(remember(statement.set, flow, place, doubt));
    case "notrack":
      tell(place, "leaves the connection untracked", doubt);
      return onward({ ...flow, tracked: false });
    case "idle":
      return onward(flow);
    case "away":
      tell(place, `${statement.text}: cannot be followed`, doubt);
      return lost(flow, `${ruleName(place)}: ${statement.why}.`);
  }
}

function byMap(statement: ByMap, flow: Flow, place: Place, doubt: string | null): Outcome[] {
  const ways = pastMap(statement.key, statement.data, flow, place);
  const shares = ways.filter(
    ({ value, flow: way }) => value !== null && way.probability < flow.probability,
  );
  if (shares.length > 0) {
    const given = shares.map((way) => ({
      what: way.value?.value ?? "",
      share: way.flow.probability / flow.probability,
    }));
    tell(place, `picks ${choices(given)}`, doubt);
  }
  return ways.flatMap((way) => {
    if (way.flow.fate !== null) return [{ flow: way.flow, on: "out" as const }];
    if (way.value === null) return [{ flow: way.flow, on: "next" as const }];
    const verdict = readVerdict(way.value.value ?? "");
    if (verdict === null) {
      return lost(
        way.flow,
        `${ruleName(place)} gives "${way.value.value ?? ""}", which is no verdict.`,
      );
    }
    return follow(verdict, way.flow, place, way.doubt ?? doubt, {
      statement,
      told: shares.includes(way),
    });
  });
}

function past(
  ways: readonly Way<boolean>[],
  onward: (flow: Flow, because?: string | null) => Outcome[],
  doubt: string | null,
): Outcome[] {
  return ways.flatMap((way) =>
    way.value ? onward(way.flow, way.doubt ?? doubt) : [{ flow: way.flow, on: "next" as const }],
  );
}

/** What cannot be decided matters only where something follows that changes the packet's way. */
function pastOpen(
  statements: readonly Statement[],
  at: number,
  because: string,
  flow: Flow,
  place: Place,
  doubt: string | null,
  onward: (flow: Flow, because?: string | null) => Outcome[],
): Outcome[] {
  if (statements.slice(at + 1).every(({ kind }) => kind === "idle")) {
    tell(place, `cannot be decided ${because}`, doubt);
    return [{ flow, on: "next" }];
  }
  return past(
    pastDoubt({ why: because, id: `${because} ${ruleName(place)}` }, flow, place),
    onward,
    doubt,
  );
}

function follow(
  verdict: Verdict,
  flow: Flow,
  place: Place,
  doubt: string | null,
  by: Given | null,
): Outcome[] {
  const map = by?.statement.data.kind === "named" ? by.statement.data.name : null;
  const said = (effect: string): void => {
    if (by?.told !== true) tell(place, map === null ? effect : `in ${map}: ${effect}`, doubt);
  };
  switch (verdict.kind) {
    case "accept":
      said("accept");
      return [{ flow, on: "out" }];
    case "return":
      said("return");
      return [{ flow, on: "caller" }];
    case "continue":
      return [{ flow, on: "next" }];
    case "drop":
    case "reject": {
      said(
        verdict.kind === "reject" && verdict.with !== ""
          ? `reject with ${verdict.with}`
          : verdict.kind,
      );
      return [{ flow: end(flow, verdict.kind, why(verdict.kind, map, place)), on: "out" }];
    }
    case "jump":
    case "goto": {
      said(`${verdict.kind} ${verdict.chain}`);
      const after = verdict.kind === "jump" ? "next" : "caller";
      return walkChain(verdict.chain, flow, place).map((outcome) => ({
        flow: map === null ? outcome.flow : explained(outcome.flow, map, place),
        on: outcome.on === "out" ? "out" : after,
      }));
    }
  }
}
