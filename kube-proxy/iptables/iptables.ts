/** One rule, kept as the dump writes it; read on the first visit. */
export interface Rule {
  /** As the dump writes it. */
  readonly text: string;
  readonly line: number;
}

/** How a listing's lines are laid out: `-v` adds counters and interfaces, `--line-numbers` a number. */
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
  /** Of the ways to print the same rules, the higher tells more. */
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
