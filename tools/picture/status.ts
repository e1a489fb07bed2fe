/** How well something is; `unknown` where nobody could be asked. */
export type Tone = "good" | "warn" | "bad" | "unknown";

/** In a word, which says the same as its colour. */
export interface Status {
  readonly tone: Tone;
  readonly word: string;
}
