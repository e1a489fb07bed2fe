/** One rule as the dump prints it. Its statements are parsed when a packet first reaches it. */
export interface Rule {
  readonly text: string;
  readonly line: number;
}

/** An expression of nft: what a rule compares, looks up or assigns. */
export type Expression =
  | { readonly kind: "selector"; readonly name: string }
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "concat"; readonly parts: readonly Expression[] }
  | {
      readonly kind: "binary";
      readonly op: string;
      readonly left: Expression;
      readonly right: Expression;
    }
  /** A number from `offset` to `offset + mod - 1`. */
  | {
      readonly kind: "numgen";
      /** random or inc; also jhash and symhash, whose numbers are as evenly distributed. */
      readonly mode: string;
      readonly mod: number;
      readonly offset: number;
    }
  | { readonly kind: "map"; readonly key: Expression; readonly data: Elements };

/** The set or map of a lookup, named or anonymous. */
export type Elements =
  | { readonly kind: "named"; readonly name: string }
  | { readonly kind: "anonymous"; readonly elements: readonly SetElement[] };

/** One element of a set or a map, each part as the listing prints it. */
export interface SetElement {
  /** The parts of a concatenation: addresses, prefixes, ranges, names, `*`. */
  readonly key: readonly string[];
  /** Null in a set. */
  readonly value: string | null;
}

export type Statement =
  | {
      readonly kind: "match";
      readonly left: Expression;
      /** `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` (any of these flags is set), `!` (none is). */
      readonly op: string;
      readonly right: Elements;
    }
  | { readonly kind: "vmap"; readonly key: Expression; readonly data: Elements }
  | { readonly kind: "verdict"; readonly verdict: Verdict }
  | { readonly kind: "set"; readonly name: string; readonly value: Expression }
  | { readonly kind: "nat"; readonly nat: Nat }
  | { readonly kind: "update"; readonly set: string }
  | { readonly kind: "notrack" }
  /** Matches with this probability, as `-m statistic --mode random` does. */
  | { readonly kind: "probability"; readonly probability: number }
  /** `-m set --match-set NAME SIDES`, with sides such as `dst,dst,src`. */
  | {
      readonly kind: "ipset";
      readonly name: string;
      readonly sides: readonly string[];
      readonly negated: boolean;
    }
  /** kube-proxy's `-m recent --rcheck`: jumps for clients seen within so many seconds. */
  | { readonly kind: "affinity"; readonly seconds: number }
  /** Adds one sentence to the answer's notes when a packet reaches it. */
  | { readonly kind: "note"; readonly sentence: string }
  /** A statement that does not affect where the packet goes, such as `counter` or `log`. */
  | { readonly kind: "noop" }
  /** A match on what no dump contains; `why` completes "it cannot be decided". */
  | { readonly kind: "undecidable"; readonly text: string; readonly why: string }
  /** Hands the packet to something outside of the rules, such as NFQUEUE or TPROXY. */
  | { readonly kind: "untraceable"; readonly text: string; readonly why: string };

export type Verdict =
  | { readonly kind: "accept" | "drop" | "continue" | "return" }
  | { readonly kind: "reject"; readonly with: string }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

export interface Nat {
  /** `netmap` maps one network onto another and keeps the host part. */
  readonly kind: "dnat" | "snat" | "masquerade" | "redirect" | "netmap";
  /** Null where only the port is translated, and for masquerade and redirect. */
  readonly address: Expression | null;
  readonly port: Expression | null;
}
