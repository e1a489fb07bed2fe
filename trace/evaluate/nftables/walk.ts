import { ofKubeProxy } from "../../model/iptables";
import { isKubeProxy, tableName } from "../../model/nftables";
import type { Statement, Verdict } from "../../model/statement";
import { readVerdict, statementsOf } from "../../read/nftables/rule";
import { end, type Flow } from "../flow";
import { merge } from "../merge-flows";
import { assign, remember, translate } from "./effects";
import { choices, type Place, ruleName, addStep } from "./place";
import { branchOnDoubt, branchOnMap, branchOnMatch, type Branch } from "./branches";

type ByMap = Extract<Statement, { kind: "vmap" }>;

/** The map that gave a verdict, and whether its step is there already. */
interface Given {
  readonly statement: ByMap;
  readonly hasStep: boolean;
}

const deepest = 64;

/**
 * A chain's rules in their order; what comes back is behind its call, or behind the chain that the
 * kernel called.
 */
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
      from.context.path.visited++;
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

/**
 * The statements from `at` on; `doubt` is why it is not certain that the rule is followed so far.
 */
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
      addStep(place, "goes on", doubt);
    return [{ flow, on: "next" }];
  }
  const onward = (way: Flow, because: string | null = doubt): Outcome[] =>
    walkRule(statements, at + 1, way, place, because);
  switch (statement.kind) {
    case "match":
      return past(branchOnMatch(statement, flow, place), onward, doubt);
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
      addStep(place, "leaves the connection untracked", doubt);
      return onward({ ...flow, tracked: false });
    case "idle":
      return onward(flow);
    case "away":
      addStep(place, `${statement.text}: cannot be followed`, doubt);
      return lost(flow, `${ruleName(place)}: ${statement.why}.`);
  }
}

function byMap(statement: ByMap, flow: Flow, place: Place, doubt: string | null): Outcome[] {
  const ways = branchOnMap(statement.key, statement.data, flow, place);
  const shares = ways.filter(
    ({ value, flow: way }) => value !== null && way.probability < flow.probability,
  );
  if (shares.length > 0) {
    const given = shares.map((way) => ({
      what: way.value?.value ?? "",
      share: way.flow.probability / flow.probability,
    }));
    addStep(place, `picks ${choices(given)}`, doubt);
  }
  return ways.flatMap((way) => {
    if (way.flow.verdict !== null) return [{ flow: way.flow, on: "out" as const }];
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
      hasStep: shares.includes(way),
    });
  });
}

function past(
  ways: readonly Branch<boolean>[],
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
    addStep(place, `cannot be decided ${because}`, doubt);
    return [{ flow, on: "next" }];
  }
  return past(
    branchOnDoubt({ why: because, id: `${because} ${ruleName(place)}` }, flow, place),
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
    if (by?.hasStep !== true) addStep(place, map === null ? effect : `in ${map}: ${effect}`, doubt);
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

/**
 * Where a flow goes on: with the next rule, behind the chain's call, or behind the chain that the
 * kernel called.
 */
export interface Outcome {
  readonly flow: Flow;
  readonly on: "next" | "caller" | "out";
}

/** Nobody can say what becomes of the packet. */
export function lost(flow: Flow, because: string): Outcome[] {
  return [{ flow: end(flow, "unknown", because), on: "out" }];
}

/** kube-proxy writes no rule without a target, but nft has no words for some that iptables has. */
export function isLost(statements: readonly Statement[], { table, chain }: Place): boolean {
  return (
    table.ofIptables &&
    ofKubeProxy.test(chain.name) &&
    statements.every(({ kind }) => kind === "match" || kind === "idle" || kind === "open")
  );
}

/** What becomes of the packet at such a rule: only in one place it cannot be but one thing. */
export function atLost(flow: Flow, place: Place, doubt: string | null): Outcome[] {
  if (place.chain.name !== "KUBE-POSTROUTING") {
    return lost(
      flow,
      `nft does not show what is done by ${ruleName(place)}; take \`iptables-save\`.`,
    );
  }
  place.context.path.note(
    "nft does not show what the last rule of KUBE-POSTROUTING does; it is taken to masquerade, as kube-proxy writes it.",
  );
  const nat = { kind: "masquerade", address: null, port: null } as const;
  return translate(nat, flow, place, doubt).map(({ flow: way }) => ({ flow: way, on: "out" }));
}

/** Why kube-proxy drops or rejects by a map of its own, or in a chain of its own. */
const reasons: readonly { readonly verdict: string; readonly by: RegExp; readonly why: string }[] =
  [
    { verdict: "reject", by: /^no-endpoint-/, why: "The Service has no endpoints" },
    {
      verdict: "drop",
      by: /^no-endpoint-/,
      why: "The Service's traffic policy is Local and it has no endpoint on this node",
    },
    {
      verdict: "drop",
      by: /^firewall-/,
      why: "The source is in none of the Service's source ranges",
    },
    { verdict: "reject", by: /^cluster-ips-check$/, why: "The cluster IP has no such port" },
    {
      verdict: "drop",
      by: /^cluster-ips-check$/,
      why: "The address is in the range of Services, and no Service has it",
    },
  ];

/** One sentence for a verdict: kube-proxy's reason where it is its rule, and which rule it is. */
export function why(
  verdict: string,
  map: string | null,
  place: Place,
  otherwise: string | null = null,
): string {
  const by = map ?? place.chain.name;
  const reason = isKubeProxy(place.table)
    ? reasons.find((each) => each.verdict === verdict && each.by.test(by))
    : undefined;
  const rule = `${verdict} by ${ruleName(place)}`;
  if (reason !== undefined) return `${reason.why} (${rule}).`;
  return otherwise ?? `The packet meets ${rule}.`;
}

/** What a map sends to a chain that drops or rejects is dropped or rejected because of the map. */
export function explained(flow: Flow, map: string, place: Place): Flow {
  const { verdict } = flow;
  return verdict === null
    ? flow
    : { ...flow, verdict: { ...verdict, why: why(verdict.kind, map, place, verdict.why) } };
}
