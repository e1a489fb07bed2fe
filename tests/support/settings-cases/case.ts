import type { Values } from "../stack";

/** Changes to a sound stack, and what is said about each. */
export interface Cases {
  readonly refused: readonly { flaw: string; values: Values; says: string }[];
  readonly accepted: readonly { merit: string; values: Values }[];
}
