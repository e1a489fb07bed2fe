import type { HookContext } from "../context";
import type { Decision, Flow } from "../flow";

export function negate(decision: Decision, negated: boolean): Decision {
  if (!negated) return decision;
  if (typeof decision === "boolean") return !decision;
  const { why, learn } = decision;
  return learn === undefined ? decision : { why, learn: (flow, holds) => learn(flow, !holds) };
}

/** A match whose option takes one word. */
export function matching(test: (value: string) => Test): Match {
  return {
    values: 1,
    read([value], negated, specification) {
      const asked = test(value!);
      specification.tests.push((...at) => negate(asked(...at), negated));
    },
  };
}

/** An option that says nothing of whether the packet matches. */
export const silent = (values: number): Match => ({ values, read: () => undefined });

/** An option that depends on what no dump shows. */
export function open(values: number, why: (value: string) => string): Match {
  return {
    values,
    read(given, _negated, specification) {
      specification.tests.push(() => ({ why: why(given.join(" ")) }));
    },
  };
}

/** One match of a rule, asked for one packet. */
export type Test = (flow: Flow, context: HookContext, chain: string) => Decision;

export interface Target {
  readonly name: string;
  readonly goto: boolean;
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** What `-m recent` asks of its list of clients. */
export interface Recent {
  readonly asks?: boolean;
  readonly list?: string;
  readonly seconds?: number;
}

/** A rule as it was meant: all tests must hold, then chance decides, then the target acts. */
export interface Specification {
  readonly tests: Test[];
  /** Of `-m statistic`; null without. */
  chance: number | null;
  /** Seconds of `-m recent --rcheck` as kube-proxy writes it for session affinity; null without. */
  affinitySeconds: number | null;
  recent: Recent;
  comment: string;
  target: Target | null;
}

export interface Match {
  /** How many words follow the option. */
  readonly values: number;
  read(values: readonly string[], negated: boolean, specification: Specification): void;
}
