import type { Values } from "../stack";

/** Changes to valid settings, and the message of each. */
export interface Cases {
  readonly refused: readonly { flaw: string; values: Values; says: string }[];
  readonly accepted: readonly { merit: string; values: Values }[];
}
