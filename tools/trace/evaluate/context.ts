import type { Step } from "../model/answer";
import type { NodeDump } from "../model/dump";
import type { Iptables } from "../model/iptables";
import type { Packet } from "../model/packet";
import type { Range } from "../model/range";
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
  /** How many rules were looked at; tests of the work done count it. */
  visited = 0;
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
