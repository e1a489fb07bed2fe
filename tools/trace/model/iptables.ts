import type { Rule } from "./statement";

/**
 * How a listing's lines are laid out: `-v` adds counters and interfaces, `--line-numbers` a number.
 */
export interface Columns {
  readonly verbose: boolean;
  readonly numbered: boolean;
}

export interface Chain {
  readonly name: string;
  /** Null for chains that are not built in, and where a cut-down dump does not say. */
  readonly policy: string | null;
  readonly rules: readonly Rule[];
  /** Null where rules are written as `-A` lines. */
  readonly columns: Columns | null;
}

export interface Table {
  /** nat, filter, mangle, raw, security. */
  readonly name: string;
  readonly chains: ReadonlyMap<string, Chain>;
  /** Where it begins in its file. */
  readonly line: number;
  /** Whether the dump says that this is all of the table. */
  readonly whole: boolean;
}

export interface Iptables {
  readonly file: string;
  readonly family: 4 | 6;
  readonly tables: ReadonlyMap<string, Table>;
  /** Of the ways to print the same rules, the higher is the more exact. */
  readonly exactness: number;
  readonly notes: readonly string[];
}

export const exactness = { save: 5, S: 4, nvL: 3, vL: 2.5, nL: 2, L: 1 };

export const tableNames = ["raw", "mangle", "nat", "filter", "security"] as const;

export const builtIn: Readonly<Record<string, readonly string[]>> = {
  raw: ["PREROUTING", "OUTPUT"],
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  security: ["INPUT", "FORWARD", "OUTPUT"],
};

/**
 * A rule's words as a shell would split them; iptables-save quotes what has spaces and escapes
 * quotes in it.
 */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|'([^']*)'(?=\s|$)|(\S+)/g;
  for (const [, double, single, bare] of text.matchAll(pattern)) {
    words.push(double === undefined ? (single ?? bare!) : double.replace(/\\(.)/g, "$1"));
  }
  return words;
}

/** A rule's text without what is quoted, or noted in a listing: it may have any words in it. */
export const withoutComments = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|\/\*.*?\*\//g, '""');

/** Chains that kube-proxy writes; other programs have names that only look alike. */
export const ofKubeProxy = /^KUBE-(?!ROUTER|NWPLCY|POD-FW|NETPOL)/;
