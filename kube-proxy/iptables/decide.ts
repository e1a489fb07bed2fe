import type { Decision } from "../flow";
import type { Match } from "./matches";
import type { Test } from "./specification";

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
