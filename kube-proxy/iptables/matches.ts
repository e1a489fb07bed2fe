import type { Specification } from "./specification";
import { addressMatches } from "./address-matches";
import { protocolMatches } from "./protocol-matches";
import { stateMatches } from "./state-matches";

export interface Match {
  /** How many words follow the option. */
  readonly values: number;
  read(values: readonly string[], negated: boolean, specification: Specification): void;
}

/** Every option of a match that is understood, and modules that mean something by themselves (`-m socket`). */
export const matches: Readonly<Record<string, Match>> = {
  ...addressMatches,
  ...protocolMatches,
  ...stateMatches,
};
