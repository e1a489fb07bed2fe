/** One rule, kept as the dump writes it; its statements are read on the first visit. */
export interface Rule {
  readonly text: string;
  readonly line: number;
}

/** What a rule looks at or computes. */
export type Expression =
  | { readonly kind: "selector"; readonly name: string }
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "concat"; readonly parts: readonly Expression[] }
  | {
      readonly kind: "binary";
      readonly sign: string;
      readonly left: Expression;
      readonly right: Expression;
    }
  /** One of `mod` numbers from `offset` on. */
  | {
      readonly kind: "pick";
      /** random, inc, jhash, symhash. */
      readonly how: string;
      readonly mod: number;
      readonly offset: number;
    }
  | { readonly kind: "map"; readonly key: Expression; readonly data: Elements };

/** A set that is asked: one with a name, or one written into the rule. */
export type Elements =
  | { readonly kind: "named"; readonly name: string }
  | { readonly kind: "written"; readonly elements: readonly WrittenElement[] };

export interface WrittenElement {
  readonly key: readonly string[];
  readonly value: string | null;
}

export type Statement =
  | {
      readonly kind: "match";
      readonly left: Expression;
      /** `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` (one of the bits), `!` (none of the bits). */
      readonly sign: string;
      readonly right: Elements;
    }
  | { readonly kind: "vmap"; readonly key: Expression; readonly data: Elements }
  | { readonly kind: "verdict"; readonly verdict: Verdict }
  | { readonly kind: "set"; readonly name: string; readonly value: Expression }
  | { readonly kind: "nat"; readonly nat: Nat }
  | { readonly kind: "update"; readonly set: string }
  | { readonly kind: "notrack" }
  /** Holds for this share of all new connections, as iptables' `statistic` does. */
  | { readonly kind: "chance"; readonly share: number }
  /** Whether the parts of the packet that `sides` names (`dst,dst,src`) are in a set of ipset. */
  | {
      readonly kind: "ipset";
      readonly name: string;
      readonly sides: readonly string[];
      readonly negated: boolean;
    }
  /** Goes to an endpoint for clients that came within so many seconds; others go on. */
  | { readonly kind: "affinity"; readonly seconds: number }
  /** What is to be said of the rule, in one sentence, once a packet comes to this place in it. */
  | { readonly kind: "note"; readonly sentence: string }
  /** Counts, logs and the like: the packet goes on as it is. */
  | { readonly kind: "idle" }
  /** Holds or not by something that no dump has; `why` completes "it cannot be decided". */
  | { readonly kind: "open"; readonly text: string; readonly why: string }
  /** Takes the packet where no dump can follow it. */
  | { readonly kind: "away"; readonly text: string; readonly why: string };

export type Verdict =
  | { readonly kind: "accept" | "drop" | "continue" | "return" }
  | { readonly kind: "reject"; readonly with: string }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

export interface Nat {
  /** `netmap` keeps the host's part of an address and changes the network's. */
  readonly kind: "dnat" | "snat" | "masquerade" | "redirect" | "netmap";
  /** Null where only the port changes, and for masquerade and redirect. */
  readonly address: Expression | null;
  readonly port: Expression | null;
}
