import type { Elements, Expression, Statement, SetElement } from "../../../model/statement";
import type { Decision, Undecided } from "../../flow";
import { intervalOf, type Kind, kindOf, numberOf } from "./kinds";
import { find } from "./lookup";
import type { RuleTable } from "../place";
import { type Question, select } from "./select";
import { known, undecidable, shareOf, type Subject } from "./subject";

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
    return { holds: false, negated: match.op === "!=" };
  const elements = elementsOf(match.right, table);
  if (elements === null) return { holds: missing(match.right), negated: match.op === "!=" };
  if (match.op === "==" || match.op === "!=") {
    return { holds: isAmong(elements, kinds, subjects), negated: match.op === "!=" };
  }
  const text = elements[0]?.key[0] ?? "";
  if (match.op === "in" || match.op === "!") {
    return { holds: hasBits(subjects[0]!, kinds[0]!, text), negated: match.op === "!" };
  }
  return { holds: compare(match.op, subjects[0]!, kinds[0]!, text), negated: false };
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
  if (flow.source === null && subjects[0]!.is === "undecidable" && set.elements().length > 0) {
    context.path.note(
      `No source is given, so it is taken for a client that is not in ${set.name}.`,
    );
    return true;
  }
  return false;
}

/** Null where the dump lacks the set. */
export function elementsOf(data: Elements, table: RuleTable): readonly SetElement[] | null {
  return data.kind === "anonymous"
    ? data.elements
    : (table.sets.get(data.name)?.elements() ?? null);
}

export function missing(data: Elements): Undecided {
  return { why: `what is in set ${data.kind === "named" ? data.name : ""}, which the dump lacks` };
}

function isAmong(
  elements: readonly SetElement[],
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): Outcome["holds"] {
  const found = find(elements, kinds, subjects);
  let share = 0;
  const undecided: Undecided[] = [];
  for (const { holds } of found) {
    if (holds === true) return true;
    if ("share" in holds) share += holds.share;
    else undecided.push(holds);
  }
  if (share > 0) return { share };
  if (undecided.length > 1)
    return {
      why: `${undecided[0]!.why}, or one of ${String(undecided.length - 1)} other elements`,
    };
  return undecided[0] ?? false;
}

function hasBits(subject: Subject, kind: Kind, text: string): Decision {
  const bits = numberOf(kind, text);
  if (bits === null) return { why: `what "${text}" stands for` };
  if (subject.is === "value") return (Number(subject.value) & bits) !== 0;
  return { why: subject.is === "undecidable" ? subject.why : "which number is picked" };
}

function compare(op: string, subject: Subject, kind: Kind, text: string): Outcome["holds"] {
  const bound = intervalOf(kind, text);
  if (bound === null) return { why: `what "${text}" stands for` };
  if (subject.is === "numgen") return { share: sharePast(op, subject, Number(bound.low)) };
  if (subject.is !== "value")
    return { why: subject.is === "undecidable" ? subject.why : "which number is picked" };
  switch (op) {
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

function sharePast(op: string, numgen: { mod: number; offset: number }, bound: number): number {
  if (op === "<") return shareOf(numgen, { low: 0, high: bound - 1 });
  if (op === "<=") return shareOf(numgen, { low: 0, high: bound });
  return shareOf(numgen, { low: op === ">" ? bound + 1 : bound, high: Infinity });
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
      return value === null ? undecidable(`what "${expression.text}" stands for`) : known(value);
    }
    case "numgen":
      return {
        is: "numgen",
        mode: expression.mode,
        mod: expression.mod,
        offset: expression.offset,
      };
    case "binary": {
      const left = subjectOf(expression.left, kind, question);
      const right = subjectOf(expression.right, kind, question);
      return combine(expression.op, left, right);
    }
    default:
      return undecidable("what a rule computes");
  }
}

function combine(op: string, left: Subject, right: Subject): Subject {
  if (left.is === "absent") return left;
  if (left.is === "numgen" && op === "&" && right.is === "value")
    return masked(left.mode, left.mod, Number(right.value));
  if (left.is !== "value")
    return left.is === "undecidable"
      ? undecidable(left.why)
      : undecidable("which number is picked");
  if (right.is !== "value")
    return right.is === "undecidable"
      ? undecidable(right.why)
      : undecidable("which number is picked");
  const value = compute(op, BigInt(left.value), BigInt(right.value));
  // IPv4 addresses stay addresses: only their numbers are compared.
  return {
    is: "value",
    value: typeof left.value === "bigint" ? value : Number(BigInt.asUintN(32, value)),
    text: String(value),
  };
}

function compute(op: string, left: bigint, right: bigint): bigint {
  switch (op) {
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
function masked(mode: string, mod: number, mask: number): Subject {
  return Number.isInteger(Math.log2(mask + 1)) && mod % (mask + 1) === 0
    ? { is: "numgen", mode, mod: mask + 1, offset: 0 }
    : undecidable("which number is picked");
}
