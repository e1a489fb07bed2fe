import { builtIn } from "./iptables";
import type { Rule } from "./statement";

/** What makes the kernel call a chain itself. */
export interface Base {
  /** filter, nat or route. */
  readonly type: string;
  /** prerouting, input, forward, output, postrouting; ingress and egress. */
  readonly hook: string;
  readonly priority: number;
  readonly policy: "accept" | "drop";
}

export interface Chain {
  readonly name: string;
  readonly line: number;
  /** Null for chains that only other chains call. */
  readonly base: Base | null;
  readonly rules: readonly Rule[];
}

/** One element of a set or a map, each part as the listing writes it. */
export interface Element {
  /** The parts of a concatenation: addresses, prefixes, ranges, names, `*`. */
  readonly key: readonly string[];
  /** Null in a set. */
  readonly value: string | null;
  readonly comment: string | null;
}

export interface NamedSet {
  readonly name: string;
  readonly line: number;
  /** How long an element stays that rules put in; null for ever. */
  readonly timeoutSeconds: number | null;
  /** Read on the first call. */
  readonly elements: () => readonly Element[];
}

export interface Table {
  readonly family: string;
  readonly name: string;
  readonly line: number;
  /** A dormant table's chains are not called. */
  readonly dormant: boolean;
  /** Whether iptables-nft keeps it: its rules may use matches that nft cannot write. */
  readonly ofIptables: boolean;
  readonly chains: ReadonlyMap<string, Chain>;
  readonly sets: ReadonlyMap<string, NamedSet>;
}

export interface Ruleset {
  readonly file: string;
  /** By family and name, such as `ip kube-proxy`. */
  readonly tables: ReadonlyMap<string, Table>;
}

/**
 * Tables of iptables-nft bear iptables' names, and so does every chain in them that the kernel
 * calls.
 */
export function looksLikeIptables(family: string, name: string, chains: Iterable<Chain>): boolean {
  const names = builtIn[name];
  if (names === undefined || (family !== "ip" && family !== "ip6")) return false;
  const base = [...chains].filter((chain) => chain.base !== null);
  return base.length > 0 && base.every((chain) => names.includes(chain.name));
}

/** The name that upstream gives to kube-proxy's own tables, in both families. */
export function isKubeProxy(table: Table): boolean {
  return table.name === "kube-proxy" && (table.family === "ip" || table.family === "ip6");
}

export function tableName(table: Table): string {
  return `${table.family} ${table.name}`;
}
