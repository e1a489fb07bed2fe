import type { Elements, Expression, SetElement, Statement } from "../../../model/statement";
import type { RuleTable } from "../../context";
import type { Decision, Undecided } from "../../flow";
import {
  canonicalPart,
  contains,
  type Interval,
  intervalOf,
  isPart,
  type Kind,
  kindOf,
  known,
  numberOf,
  shareOf,
  type Subject,
  undecidable,
} from "./kinds";
import { type Question, select } from "./select";

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

/** Elements by their exact keys, and those that span more than one value. */
interface Index {
  readonly exact: ReadonlyMap<string, SetElement>;
  readonly spans: readonly SetElement[];
  /** The spans sorted by value, if the key has one part; null if they cannot be sorted. */
  readonly sorted: readonly (readonly [Interval, SetElement])[] | null;
  readonly rest: SetElement | null;
}

/** An element that matches: always, possibly, or for a share of all packets. */
export interface Found {
  readonly element: SetElement;
  readonly holds: true | Undecided | { readonly share: number };
}

const indexes = new WeakMap<readonly SetElement[], Map<string, Index>>();

/**
 * The elements that may match; if one matches for certain, it is the last. Intervals do not
 * overlap.
 */
export function find(
  elements: readonly SetElement[],
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): Found[] {
  const only = subjects.length === 1 ? subjects[0]! : null;
  if (only?.is === "numgen") {
    const shares = elements.map((element) => {
      const interval = intervalOf(kinds[0]!, element.key[0]!);
      return { element, holds: { share: interval === null ? 0 : shareOf(only, interval) } };
    });
    return shares.filter(({ holds }) => holds.share > 0);
  }
  if (subjects.some((subject) => subject.is === "absent")) return [];
  const index = indexOf(elements, kinds);
  const found = subjects.every((subject) => subject.is === "value")
    ? findKnown(index, kinds, subjects)
    : findUndecidable(elements, kinds, subjects);
  if (index.rest !== null && found.at(-1)?.holds !== true)
    found.push({ element: index.rest, holds: true });
  return found;
}

function findKnown(index: Index, kinds: readonly Kind[], subjects: readonly Subject[]): Found[] {
  const texts = subjects.map((subject) => (subject.is === "value" ? subject.text : ""));
  const exact = index.exact.get(texts.join(" . "));
  if (exact !== undefined) return [{ element: exact, holds: true }];
  const only = subjects[0]!;
  if (index.sorted !== null && only.is === "value") {
    const element = search(index.sorted, only.value);
    return element === null ? [] : [{ element, holds: true }];
  }
  return findUndecidable(index.spans, kinds, subjects);
}

/** Compares known parts first, since these rule out nearly all elements of a long map. */
function findUndecidable(
  elements: readonly SetElement[],
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): Found[] {
  const order = subjects
    .map((_, at) => at)
    .sort(
      (a, b) =>
        Number(subjects[a]!.is === "undecidable") - Number(subjects[b]!.is === "undecidable"),
    );
  const found: Found[] = [];
  for (const element of elements) {
    if (element.key.length !== subjects.length || element.key[0] === "*") continue;
    let holds: Decision = true;
    for (const at of order) {
      const subject = subjects[at]!;
      const text = element.key[at]!;
      if (subject.is === "value" && subject.text === text) continue;
      const part = isPart(subject, kinds[at]!, text);
      if (part === false) {
        holds = false;
        break;
      }
      if (part !== true) holds = part;
    }
    if (holds === false) continue;
    found.push({ element, holds });
    if (holds === true) break;
  }
  return found;
}

function indexOf(elements: readonly SetElement[], kinds: readonly Kind[]): Index {
  const name = kinds.join(" ");
  const made = indexes.get(elements)?.get(name);
  if (made !== undefined) return made;
  const index = makeIndex(elements, kinds);
  indexes.set(elements, (indexes.get(elements) ?? new Map<string, Index>()).set(name, index));
  return index;
}

function makeIndex(elements: readonly SetElement[], kinds: readonly Kind[]): Index {
  const exact = new Map<string, SetElement>();
  const spans: SetElement[] = [];
  let rest: SetElement | null = null;
  for (const element of elements) {
    if (element.key.length === 1 && element.key[0] === "*") {
      rest = element;
      continue;
    }
    let key = "";
    for (let at = 0; at < element.key.length; at++) {
      const part = canonicalPart(kinds[at] ?? "number", element.key[at]!);
      if (part === null) {
        key = "";
        break;
      }
      key = at === 0 ? part : `${key} . ${part}`;
    }
    if (key === "") spans.push(element);
    else exact.set(key, element);
  }
  return { exact, spans, sorted: kinds.length === 1 ? sort(spans, kinds[0]!) : null, rest };
}

function sort(spans: readonly SetElement[], kind: Kind): Index["sorted"] {
  const pairs: (readonly [Interval, SetElement])[] = [];
  for (const element of spans) {
    const interval = intervalOf(kind, element.key[0]!);
    if (interval === null) return null;
    pairs.push([interval, element]);
  }
  return pairs.sort(([a], [b]) => (a.low < b.low ? -1 : a.low > b.low ? 1 : 0));
}

/** Binary search for the interval that contains the value. */
function search(sorted: NonNullable<Index["sorted"]>, value: number | bigint): SetElement | null {
  let low = 0;
  let high = sorted.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [interval, element] = sorted[middle]!;
    if (contains(interval, value)) return element;
    if (value < interval.low) high = middle - 1;
    else low = middle + 1;
  }
  return null;
}
