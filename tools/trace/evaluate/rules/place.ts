import type { NamedSet } from "../../model/nftables";
import type { Rule, Statement } from "../../model/statement";
import type { HookContext } from "../context";
import type { Flow } from "../flow";

/** A table of iptables or of nftables, as packets go through it. */
export interface RuleTable {
  /** `nat`, or `ip kube-proxy`. */
  readonly name: string;
  readonly sets: ReadonlyMap<string, NamedSet>;
  /** Those rules of a chain that the packet may meet, in their order; null where the dump lacks it. */
  rulesOf(chain: string, flow: Flow): readonly Rule[] | null;
  statementsOf(rule: Rule, chain: string): readonly Statement[];
  /** Whether kube-proxy writes the chain. */
  isKubeProxys(chain: string): boolean;
  /** What a chain does that the dump lacks. */
  missing(chain: string, flow: Flow, place: Place): Outcome[];
  /** What people note with the rule; null without. */
  commentOf(rule: Rule, chain: string): string | null;
  /** Why kube-proxy drops or rejects a packet by this map or chain, where its name says so. */
  reasonOf(verdict: "drop" | "reject" | "unknown", name: string): string | null;
}

/**
 * Where a flow goes on: with the next rule, behind the chain's call, or behind the chain that the
 * kernel called.
 */
export interface Outcome {
  readonly flow: Flow;
  readonly on: "next" | "caller" | "out";
}

/** Where in a table a packet is. */
export interface Place {
  readonly table: RuleTable;
  /** Whether the kernel called a chain of type nat. */
  readonly nat: boolean;
  readonly chain: string;
  readonly rule: Rule | null;
  readonly context: HookContext;
  /** How many chains have called each other. */
  readonly depth: number;
}

const longestName = 160;

/** A rule as a person would look for it: of one that lists a thousand endpoints, its beginning. */
export function ruleName({ table, chain, rule }: Place): string {
  const text = oneLine((rule?.text ?? "").slice(0, longestName + 1));
  const shown = text.length > longestName ? `${text.slice(0, longestName)}…` : text;
  return `table ${table.name}, chain ${chain}: \`${shown}\``;
}

/** `caveat` stands before what the rule does: a probability, or what cannot be decided. */
export function addStep(
  { context, table, chain, rule }: Place,
  effect: string,
  caveat: string,
): void {
  context.path.step(table.name, chain, oneLine(rule?.text ?? ""), caveat + effect);
}

function oneLine(text: string): string {
  return /[\n\t]/.test(text) ? text.replace(/\s+/g, " ") : text;
}

const mostChoices = 8;

/** What a packet may get, each with its chance; of many only the first. */
export function choices(
  given: readonly { readonly what: string; readonly share: number }[],
): string {
  const texts = given.map(({ what, share }) =>
    share === 1 ? what : `${what} with probability ${rounded(share)}`,
  );
  return texts.length > mostChoices
    ? `one of ${String(texts.length)}, the first ${texts[0]!}`
    : texts.join(", ");
}

export const rounded = (share: number): string => `${Number(share.toFixed(4))}`;

/** What becomes of the packet is unknown. */
export const lost = (flow: Flow, why: string): Outcome[] => [
  { flow: { ...flow, verdict: { kind: "unknown", why } }, on: "out" },
];
