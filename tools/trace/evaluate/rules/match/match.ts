import type { Elements, Expression, Statement, WrittenElement } from "../../../model/statement";
import type { Decision, Undecided } from "../../flow";
import { intervalOf, type Kind, kindOf, numberOf } from "./kinds";
import { find } from "./lookup";
import type { RuleTable } from "../place";
import { type Question, select } from "./select";
import { known, open, shareOf, type Subject } from "./subject";

type Match = Extract<Statement, { kind: "match" }>;

/** Whether the match holds, or for which share of all packets. */
export type Outcome = {
  readonly holds: Decision | { readonly share: number };
  readonly negated: boolean;
};

export function decide(match: Match, table: RuleTable, question: Question): Outcome {
  const { kinds, subjects } = keyOf(match.left, question);
  if (subjects.some((subject) => subject.is === "absent")) return { holds: false, negated: false };
  if (isNewClient(match, table, subjects, question))
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
function isNewClient(
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

/** What the packet has for an expression, part by part, and how each is written in elements. */
export interface Key {
  readonly kinds: readonly Kind[];
  readonly subjects: readonly Subject[];
}

export function keyOf(expression: Expression, question: Question): Key {
  const parts = expression.kind === "concat" ? expression.parts : [expression];
  return {
    kinds: parts.map(kindIn),
    subjects: parts.map((part) => subjectOf(part, kindIn(part), question)),
  };
}

function kindIn(expression: Expression): Kind {
  if (expression.kind === "selector") return kindOf(expression.name);
  return expression.kind === "binary" ? kindIn(expression.left) : "number";
}

export function subjectOf(expression: Expression, kind: Kind, question: Question): Subject {
  switch (expression.kind) {
    case "selector":
      return select(expression.name, question);
    case "literal": {
      const value = numberOf(kind, expression.text);
      return value === null ? open(`what "${expression.text}" stands for`) : known(value);
    }
    case "pick":
      return { is: "pick", how: expression.how, mod: expression.mod, offset: expression.offset };
    case "binary": {
      const left = subjectOf(expression.left, kind, question);
      const right = subjectOf(expression.right, kind, question);
      return combine(expression.sign, left, right);
    }
    default:
      return open("what a rule computes");
  }
}

function combine(sign: string, left: Subject, right: Subject): Subject {
  if (left.is === "absent") return left;
  if (left.is === "pick" && sign === "&" && right.is === "value")
    return masked(left.how, left.mod, Number(right.value));
  if (left.is !== "value")
    return left.is === "open" ? open(left.why) : open("which number is picked");
  if (right.is !== "value")
    return right.is === "open" ? open(right.why) : open("which number is picked");
  const value = compute(sign, BigInt(left.value), BigInt(right.value));
  // IPv4 addresses stay addresses: only their numbers are compared.
  return {
    is: "value",
    value: typeof left.value === "bigint" ? value : Number(BigInt.asUintN(32, value)),
    text: String(value),
  };
}

function compute(sign: string, left: bigint, right: bigint): bigint {
  switch (sign) {
    case "&":
      return left & right;
    case "|":
      return left | right;
    case "^":
      return left ^ right;
    case "<<":
      return left << right;
    default:
      return left >> right;
  }
}

/** The low bits of a random number are random numbers themselves. */
function masked(how: string, mod: number, mask: number): Subject {
  return Number.isInteger(Math.log2(mask + 1)) && mod % (mask + 1) === 0
    ? { is: "pick", how, mod: mask + 1, offset: 0 }
    : open("which number is picked");
}
