import type { SetElement } from "../../../model/statement";
import type { Decision, Undecided } from "../../flow";
import { canonicalPart, type Interval, intervalOf, type Kind } from "./kinds";
import { contains, isPart, shareOf, type Subject } from "./subject";

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
