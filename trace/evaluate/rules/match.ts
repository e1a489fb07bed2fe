import type { Elements, Statement, WrittenElement } from "../../model/statement";
import type { Decision, Undecided } from "../flow";
import { keyOf } from "./key";
import { intervalOf, type Kind, numberOf } from "./kinds";
import { find } from "./lookup";
import type { RuleTable } from "./place";
import type { Question } from "./select";
import { shareOf, type Subject } from "./subject";

type Match = Extract<Statement, { kind: "match" }>;

/** Whether the match holds, or for which share of all packets. */
export type Outcome = {
  readonly holds: Decision | { readonly share: number };
  readonly negated: boolean;
};

export function decide(match: Match, table: RuleTable, question: Question): Outcome {
  const { kinds, subjects } = keyOf(match.left, question);
  if (subjects.some((subject) => subject.is === "absent")) return { holds: false, negated: false };
  if (isOfStrangers(match, table, subjects, question))
    return { holds: false, negated: match.sign === "!=" };
  const elements = elementsOf(match.right, table);
  if (elements === null) return { holds: missing(match.right), negated: match.sign === "!=" };
  if (match.sign === "==" || match.sign === "!=") {
    return { holds: isAmong(elements, kinds, subjects), negated: match.sign === "!=" };
  }
  const text = elements[0]?.key[0] ?? "";
  if (match.sign === "in" || match.sign === "!") {
    return { holds: hasBits(subjects[0]!, kinds[0]!, text), negated: match.sign === "!" };
  }
  return { holds: compare(match.sign, subjects[0]!, kinds[0]!, text), negated: false };
}

/** A set that rules fill remembers clients: without a source the packet is a new client's. */
function isOfStrangers(
  match: Match,
  table: RuleTable,
  subjects: readonly Subject[],
  { flow, context }: Question,
): boolean {
  const set = match.right.kind === "named" ? table.sets.get(match.right.name) : undefined;
  if (set === undefined || set.timeoutSeconds === null) return false;
  if (match.left.kind !== "selector" || !/^ip6? saddr$/.test(match.left.name)) return false;
  if (flow.source === null && subjects[0]!.is === "open" && set.elements().length > 0) {
    context.path.note(
      `No source is given, so it is taken for a client that is not in ${set.name}.`,
    );
    return true;
  }
  return false;
}

/** Null where the dump lacks the set. */
export function elementsOf(data: Elements, table: RuleTable): readonly WrittenElement[] | null {
  return data.kind === "written" ? data.elements : (table.sets.get(data.name)?.elements() ?? null);
}

export function missing(data: Elements): Undecided {
  return { why: `what is in set ${data.kind === "named" ? data.name : ""}, which the dump lacks` };
}

function isAmong(
  elements: readonly WrittenElement[],
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): Outcome["holds"] {
  const found = find(elements, kinds, subjects);
  let share = 0;
  const open: Undecided[] = [];
  for (const { holds } of found) {
    if (holds === true) return true;
    if ("share" in holds) share += holds.share;
    else open.push(holds);
  }
  if (share > 0) return { share };
  if (open.length > 1)
    return { why: `${open[0]!.why}, or one of ${String(open.length - 1)} other elements` };
  return open[0] ?? false;
}

function hasBits(subject: Subject, kind: Kind, text: string): Decision {
  const bits = numberOf(kind, text);
  if (bits === null) return { why: `what "${text}" stands for` };
  if (subject.is === "value") return (Number(subject.value) & bits) !== 0;
  return { why: subject.is === "open" ? subject.why : "which number is picked" };
}

function compare(sign: string, subject: Subject, kind: Kind, text: string): Outcome["holds"] {
  const bound = intervalOf(kind, text);
  if (bound === null) return { why: `what "${text}" stands for` };
  if (subject.is === "pick") return { share: sharePast(sign, subject, Number(bound.low)) };
  if (subject.is !== "value")
    return { why: subject.is === "open" ? subject.why : "which number is picked" };
  switch (sign) {
    case "<":
      return subject.value < bound.low;
    case "<=":
      return subject.value <= bound.high;
    case ">":
      return subject.value > bound.high;
    default:
      return subject.value >= bound.low;
  }
}

function sharePast(sign: string, pick: { mod: number; offset: number }, bound: number): number {
  if (sign === "<") return shareOf(pick, { low: 0, high: bound - 1 });
  if (sign === "<=") return shareOf(pick, { low: 0, high: bound });
  return shareOf(pick, { low: sign === ">" ? bound + 1 : bound, high: Infinity });
}
