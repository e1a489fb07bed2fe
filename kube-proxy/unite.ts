import { DumpProblem } from "./dump-problem";
import { same, type Merge } from "./merge";

/** What one dump says of things that have names: sets, virtual servers, tables, interfaces. */
export interface Part<T> {
  readonly file: string;
  readonly line: number;
  /** Of two ways to print the same, the one with more is the more exact. */
  readonly exactness: number;
  readonly things: ReadonlyMap<string, T>;
}

/**
 * The things of several dumps, each from the most exact one that has it; `what` is what one of them
 * is called. Equally exact dumps may not contradict each other.
 */
export function unite<T>(
  what: string,
  parts: readonly Part<T>[],
  note: (sentence: string) => void,
  merge: Merge<T> = same,
): ReadonlyMap<string, T> {
  const things = new Map<string, { readonly thing: T; readonly by: Part<T> }>();
  for (const part of [...parts].sort((a, b) => b.exactness - a.exactness)) {
    for (const [name, thing] of part.things) {
      const before = things.get(name);
      if (before === undefined) {
        things.set(name, { thing, by: part });
      } else if (before.by.exactness > part.exactness) {
        note(`${before.by.file} is taken, not ${part.file}, which says the same less exactly.`);
      } else {
        const both = merge(before.thing, thing);
        if (both === undefined) throw contradiction(`${what} ${name}`, before.by, part);
        things.set(name, { thing: both, by: before.by });
      }
    }
  }
  return new Map([...things].map(([name, { thing }]) => [name, thing]));
}

const contradiction = (what: string, first: Part<unknown>, second: Part<unknown>): DumpProblem =>
  new DumpProblem(
    second.file,
    second.line,
    `${what} once, or the same again`,
    `it with something else than in ${first.file}:${first.line}`,
    "give the dumps of one node, taken at one time",
  );
