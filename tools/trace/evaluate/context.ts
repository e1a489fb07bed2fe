import type { Step } from "../model/answer";
import type { NodeDump } from "../model/dump";
import type { Iptables } from "../model/iptables";
import type { Packet } from "../model/packet";
import type { Range } from "../model/range";
import type { Flow } from "./flow";

/** The node as a whole, for one packet. */
export interface Node {
  readonly dump: NodeDump;
  readonly packet: Packet;
  readonly family: 4 | 6;
  /** Where pods live, as kube-proxy's own rules show it; empty where they do not. */
  readonly podRanges: readonly Range[];
  /** Interfaces of pods (`cali+`), where kube-proxy recognises pods by them. */
  readonly podDevices: readonly string[];
}

/** The path through the kernel: the rules met, in order and once each, and what was assumed. */
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

/** Where a chain is called: the node, the path until there, and the hook. */
export interface HookContext {
  readonly node: Node;
  readonly path: Path;
  readonly hook: Hook;
}

/** A base chain: one that the kernel calls itself, of iptables or nftables. */
export interface BaseChain {
  /** `filter`, or `ip kube-proxy`. */
  readonly table: string;
  readonly name: string;
  readonly hook: Hook;
  /**
   * The lower one is asked first: raw −300, mangle −150, dstnat −100, filter 0, security 50, srcnat
   * 100.
   */
  readonly priority: number;
  /** Chains of type nat see tracked connections only, and only until the address is settled. */
  readonly nat: boolean;
  /**
   * The branches from here. Those without a verdict go to the next chain; probabilities must add up to
   * the flow's.
   */
  walk(flow: Flow, context: HookContext): Flow[];
}
