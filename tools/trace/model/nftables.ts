import { builtIn } from "./iptables";
import type { Rule, SetElement } from "./statement";

/** How a base chain is attached to the kernel's hooks. */
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
  /** Null for a regular chain, which is reached by jump and goto only. */
  readonly base: Base | null;
  readonly rules: readonly Rule[];
}

export interface Element extends SetElement {
  readonly comment: string | null;
}

export interface NamedSet {
  readonly name: string;
  readonly line: number;
  /** The timeout of elements that rules add; null where they do not expire. */
  readonly timeoutSeconds: number | null;
  /** Parsed on the first call. */
  readonly elements: () => readonly Element[];
}

export interface Table {
  readonly family: string;
  readonly name: string;
  readonly line: number;
  /** Base chains of a dormant table are not registered. */
  readonly dormant: boolean;
  /** Whether iptables-nft manages it: its rules may use extensions that nft cannot print. */
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
