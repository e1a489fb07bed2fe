import type { Packet, Range, Step } from "../model/packet";
import type { NodeDump } from "../model/dump";
import type { Iptables } from "../model/iptables";
import type { NamedSet } from "../model/nftables";
import type { Rule, Statement } from "../model/statement";
import type { Flow } from "./flow";

/** The node, as seen by one packet. */
export interface Node {
  readonly dump: NodeDump;
  readonly packet: Packet;
  readonly family: 4 | 6;
  /** Pod CIDRs, from kube-proxy's rules; empty if these do not show them. */
  readonly podRanges: readonly Range[];
  /** Interface patterns of pods (`cali+`), if kube-proxy detects local traffic by interface. */
  readonly podDevices: readonly string[];
}

/** Collects the rules that the packet meets, each once, and the assumptions made. */
export class Path {
  readonly steps: Step[] = [];
  readonly notes = new Set<string>();
  private readonly seen = new Set<string>();

  step(table: string, chain: string, rule: string, effect: string): void {
    const key = `${table}\n${chain}\n${rule}\n${effect}`;
    if (this.seen.has(key)) return;
    this.seen.add(key);
    this.steps.push({ table, chain, rule, effect });
  }

  note(sentence: string): void {
    this.notes.add(sentence);
  }
}

/** The iptables of the packet's own IP family. */
export function tablesOf(node: Node): Iptables | null {
  return node.family === 4 ? node.dump.iptables4 : node.dump.iptables6;
}

export type Hook = "prerouting" | "input" | "forward" | "output" | "postrouting";

/** What a base chain is evaluated with. */
export interface HookContext {
  readonly node: Node;
  readonly path: Path;
  readonly hook: Hook;
}

/** A base chain of nftables, or a built-in chain of iptables. */
export interface BaseChain {
  /** `filter`, or `ip kube-proxy`. */
  readonly table: string;
  readonly name: string;
  readonly hook: Hook;
  /**
   * Lower ones run first: raw −300, mangle −150, dstnat −100, filter 0, security 50, srcnat 100.
   */
  readonly priority: number;
  /** Chains of type nat see tracked connections only, and only until NAT is done. */
  readonly nat: boolean;
  /**
   * The resulting flows, whose probabilities add up to the given flow's. Those without a verdict
   * continue with the next chain.
   */
  walk(flow: Flow, context: HookContext): Flow[];
}

/** A table of iptables or nftables, for evaluation. */
export interface RuleTable {
  /** `nat`, or `ip kube-proxy`. */
  readonly name: string;
  readonly sets: ReadonlyMap<string, NamedSet>;
  /** The rules of a chain that may match the packet, in order; null if the dump lacks the chain. */
  rulesOf(chain: string, flow: Flow): readonly Rule[] | null;
  statementsOf(rule: Rule, chain: string): readonly Statement[];
  /** Whether kube-proxy writes the chain. */
  isKubeProxys(chain: string): boolean;
  /** The outcome of a chain that the dump lacks. */
  missing(chain: string, flow: Flow, place: Place): Outcome[];
  /** The rule's comment; null if it has none. */
  commentOf(rule: Rule, chain: string): string | null;
  /** Why kube-proxy drops or rejects a packet by this map or chain, where its name says so. */
  reasonOf(verdict: "drop" | "reject" | "unknown", name: string): string | null;
}

/**
 * Where a flow continues: with the next rule, after the jump to this chain, or after the base
 * chain.
 */
export interface Outcome {
  readonly flow: Flow;
  readonly on: "next" | "caller" | "out";
}

/** The position of a packet in a table. */
export interface Place {
  readonly table: RuleTable;
  /** Whether the base chain is of type nat. */
  readonly nat: boolean;
  readonly chain: string;
  readonly rule: Rule | null;
  readonly context: HookContext;
  /** The number of nested jumps. */
  readonly depth: number;
}

const longestName = 160;

/** A rule as a person would search for it; a very long one is shortened. */
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

/** The alternatives with their probabilities; of many only the first. */
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

/** Ends the flow with verdict unknown. */
export const unknownOutcome = (flow: Flow, why: string): Outcome[] => [
  { flow: { ...flow, verdict: { kind: "unknown", why } }, on: "out" },
];
