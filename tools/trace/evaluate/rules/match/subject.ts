import type { Decision, Undecided } from "../../flow";
import { type Interval, intervalOf, type Kind } from "./kinds";

/** What a packet has for one part of a key. */
export type Subject =
  | { readonly is: "value"; readonly value: number | bigint; readonly text: string }
  /** Any of `mod` numbers from `offset` on, each as likely. */
  | { readonly is: "numgen"; readonly mode: string; readonly mod: number; readonly offset: number }
  /** What no dump says as such; perhaps it can still be decided whether it is `text`. */
  | { readonly is: "undecidable"; readonly ask: (text: string) => Decision; readonly why: string }
  /** The packet has no such thing, as UDP has no flags of TCP: then a rule ends there. */
  | { readonly is: "absent" };

/** What is not decided, with a name where the same is asked elsewhere too. */
export interface NamedDoubt extends Undecided {
  readonly id?: string;
}

export function known(value: number): Subject {
  return { is: "value", value, text: String(value) };
}

/** What no dump says; `of` asks the same of one value. */
export function undecidable(why: string, of: (text: string) => string = () => why): Subject {
  const ask = (text: string): NamedDoubt => ({ why: of(text), id: `${why} ${text}` });
  return { is: "undecidable", ask, why };
}

/** Whether the packet's part is what an element has there. */
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

/** The share of a pick's numbers that lie in an interval. */
export function shareOf(
  numgen: { readonly mod: number; readonly offset: number },
  interval: Interval,
): number {
  const low = Math.max(Number(interval.low), numgen.offset);
  const high = Math.min(Number(interval.high), numgen.offset + numgen.mod - 1);
  return Math.max(0, high - low + 1) / numgen.mod;
}
