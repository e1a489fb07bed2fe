import type { Elements, Expression, Statement, SetElement } from "../../model/statement";
import { end, type Flow, fork } from "../flow";
import { decide, elementsOf, find, keyOf, missing } from "./match/match";
import { type Place, ruleName } from "../context";
import type { NamedDoubt } from "./match/kinds";

/**
 * A flow after a match or a lookup, its result, and the undecidable question that it depends on.
 */
export interface Branch<T> {
  readonly flow: Flow;
  readonly value: T;
  readonly doubt: string | null;
}

type Match = Extract<Statement, { kind: "match" }>;

/** Splits a flow by whether the match holds. */
export function branchOnMatch(match: Match, flow: Flow, place: Place): Branch<boolean>[] {
  const { holds, negated } = decide(match, place.table, { ...place, flow });
  if (typeof holds === "boolean") return [{ flow, value: holds !== negated, doubt: null }];
  if ("share" in holds) {
    const share = negated ? 1 - holds.share : holds.share;
    return [...part(flow, share, true), ...part(flow, 1 - share, false)];
  }
  return branchOnDoubt(holds, flow, place).map((way) => ({ ...way, value: way.value !== negated }));
}

/** Splits a flow by the answer to an undecidable question. */
export function branchOnDoubt(undecided: NamedDoubt, flow: Flow, place: Place): Branch<boolean>[] {
  // The same question about another destination may have another answer.
  const id = undecided.id ?? `${undecided.why} ${flow.destination}`;
  const { yes, no } = fork(flow, { id, why: undecided.why, by: ruleName(place) });
  const learnt = (way: Flow, holds: boolean): Flow => undecided.learn?.(way, holds) ?? way;
  const doubt = undecided.why;
  return [
    ...(yes === null ? [] : [{ flow: learnt(yes, true), value: true, doubt }]),
    ...(no === null ? [] : [{ flow: learnt(no, false), value: false, doubt }]),
  ];
}

/** Splits a flow by the map's element that matches; null where none does. */
export function branchOnMap(
  key: Expression,
  data: Elements,
  flow: Flow,
  place: Place,
): Branch<SetElement | null>[] {
  const elements = elementsOf(data, place.table);
  if (elements === null) {
    const { why } = missing(data);
    const lost = `It cannot be decided ${why}.`;
    return branchOnDoubt({ why }, flow, place).map((way) => ({
      ...way,
      flow: way.value ? end(way.flow, "unknown", lost) : way.flow,
      value: null,
    }));
  }
  const { kinds, subjects } = keyOf(key, { ...place, flow });
  const ways: Branch<SetElement | null>[] = [];
  let rest: Branch<boolean>[] = [{ flow, value: false, doubt: null }];
  let left = 1;
  for (const { element, holds } of find(elements, kinds, subjects)) {
    if (holds === true) {
      ways.push(...rest.map((way) => ({ ...way, value: element })));
      rest = [];
    } else if ("share" in holds) {
      left -= holds.share;
      ways.push(...part(flow, holds.share, element));
    } else {
      const split = rest.flatMap((way) => branchOnDoubt(holds, way.flow, place));
      ways.push(...split.filter((way) => way.value).map((way) => ({ ...way, value: element })));
      rest = split.filter((way) => !way.value);
    }
  }
  if (left < 1) rest = left > 1e-9 ? part(flow, left, false) : [];
  noteNumgen(subjects, place);
  return [...ways, ...rest.map((way) => ({ ...way, value: null }))];
}

function noteNumgen(subjects: ReturnType<typeof keyOf>["subjects"], { context }: Place): void {
  const numgen = subjects.length === 1 && subjects[0]!.is === "numgen" ? subjects[0]! : null;
  if (numgen === null) return;
  if (numgen.mode === "inc")
    context.path.note(
      "numgen inc distributes connections in turn; the shares are those of many connections.",
    );
  else if (numgen.mode !== "random")
    context.path.note(
      `${numgen.mode} gives a source always the same; the shares are those of many sources.`,
    );
}

export function part<T>(flow: Flow, share: number, value: T): Branch<T>[] {
  if (share <= 0) return [];
  return [
    {
      flow: share === 1 ? flow : { ...flow, probability: flow.probability * share },
      value,
      doubt: null,
    },
  ];
}
