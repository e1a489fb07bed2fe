import type { Values } from "../stack";

/** A change to valid settings, and a part of its message. */
export type Refused = readonly [flaw: string, values: Values, says: string];

export type Accepted = readonly [merit: string, values: Values];

export interface Cases {
  readonly refused: readonly Refused[];
  readonly accepted: readonly Accepted[];
}
