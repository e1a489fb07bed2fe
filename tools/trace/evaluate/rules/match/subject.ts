import type { Decision, Undecided } from "../../flow";
import { type Interval, intervalOf, type Kind } from "./kinds";

/** The packet's value of one part of a key. */
export type Subject =
  | { readonly is: "value"; readonly value: number | bigint; readonly text: string }
  /** A number from `offset` to `offset + mod - 1`, evenly distributed. */
  | { readonly is: "numgen"; readonly mode: string; readonly mod: number; readonly offset: number }
  /** A value that no dump contains; `ask` may still decide whether it is `text`. */
  | { readonly is: "undecidable"; readonly ask: (text: string) => Decision; readonly why: string }
  /** The packet has no such field, as UDP has no TCP flags: the rule does not match. */
  | { readonly is: "absent" };

/** An undecidable question, with an id if it is asked elsewhere too. */
export interface NamedDoubt extends Undecided {
  readonly id?: string;
}

export function known(value: number): Subject {
  return { is: "value", value, text: String(value) };
}

/** A value that no dump contains; `of` words the question for one candidate. */
export function undecidable(why: string, of: (text: string) => string = () => why): Subject {
  const ask = (text: string): NamedDoubt => ({ why: of(text), id: `${why} ${text}` });
  return { is: "undecidable", ask, why };
}

/** Whether the packet's value matches an element's part. */
export function isPart(subject: Subject, kind: Kind, text: string): Decision {
  switch (subject.is) {
    case "absent":
      return false;
    case "undecidable":
      return text === "*" ? true : subject.ask(text);
    case "numgen":
      return { why: `which of ${String(subject.mod)} numbers ${subject.mode} gives` };
    case "value": {
      if (text === "*") return true;
      const interval = intervalOf(kind, text);
      if (interval === null) return { why: `what "${text}" stands for` };
      return contains(interval, subject.value);
    }
  }
}

export function contains({ low, high }: Interval, value: number | bigint): boolean {
  return low <= value && value <= high;
}

/** The share of a numgen's numbers that are in an interval. */
export function shareOf(
  numgen: { readonly mod: number; readonly offset: number },
  interval: Interval,
): number {
  const low = Math.max(Number(interval.low), numgen.offset);
  const high = Math.min(Number(interval.high), numgen.offset + numgen.mod - 1);
  return Math.max(0, high - low + 1) / numgen.mod;
}
