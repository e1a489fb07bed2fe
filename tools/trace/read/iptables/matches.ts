import { addressOf, rangeOf } from "../../model/packet";
import type { Expression, Statement } from "../../model/statement";

/** A rule's matches while its words are read. */
export interface Draft {
  readonly matches: Statement[];
  /** Of `-m statistic`; null without. */
  probability: number | null;
  /** What `-m recent` asks of its list of clients. */
  recent: { readonly asks?: boolean; readonly list?: string; readonly seconds?: number };
  comment: string;
}

/** An option of a match: how many words follow it, and what they add to the rule. */
interface Match {
  readonly words: number;
  read(words: readonly string[], negated: boolean, draft: Draft): void;
}

export const selector = (name: string): Expression => ({ kind: "selector", name });

export const literal = (text: string | number): Expression => ({
  kind: "literal",
  text: `${text}`,
});

export const binary = (left: Expression, op: string, right: Expression): Expression => ({
  kind: "binary",
  op,
  left,
  right,
});

/** What no dump decides; `why` completes "it cannot be decided". */
export const undecidable = (why: string): Statement => ({ kind: "undecidable", text: "", why });

const isOne = (left: Expression, values: readonly string[], negated: boolean): Statement => ({
  kind: "match",
  left,
  op: negated ? "!=" : "==",
  right: { kind: "anonymous", elements: values.map((each) => ({ key: [each], value: null })) },
});

/** One word after the option, and the statement that it comes to; null where it asks nothing. */
const matching = (translate: (word: string, negated: boolean) => Statement | null): Match => ({
  words: 1,
  read([word], negated, draft) {
    const statement = translate(word!, negated);
    if (statement !== null) draft.matches.push(statement);
  },
});

/** The option asks whether a selector of nftables has one of the values, separated by commas. */
const among = (name: string, write: (value: string) => string = (value) => value): Match =>
  matching((word, negated) => isOne(selector(name), word.split(",").map(write), negated));

const flag = (name: string, value: string): Match => ({
  words: 0,
  read: (_words, negated, draft) =>
    void draft.matches.push(isOne(selector(name), [value], negated)),
});

/** An option that says nothing of whether the packet matches. */
const silent = (words: number): Match => ({ words, read: () => undefined });

const unknown = (words: number, why: (text: string) => string): Match => ({
  words,
  read: (given, _negated, draft) => void draft.matches.push(undecidable(why(given.join(" ")))),
});

/** Names that a listing without `-n` prints for networks on every machine. */
const networkNames: Readonly<Record<string, string>> = {
  localhost: "127.0.0.1",
  "loopback/8": "127.0.0.0/8",
  "link-local/16": "169.254.0.0/16",
  "base-address.mcast.net/4": "224.0.0.0/4",
  "ip6-localhost": "::1",
};

/** As nftables writes it: prefix lengths instead of masks, and none for a single address. */
function plain(text: string): string | null {
  const range = rangeOf(networkNames[text] ?? text);
  if (range === null) return null;
  const [low, high] = [range.low, range.high].map((end) => addressOf(end, range.family));
  return low === high ? low! : `${low}-${high}`;
}

const address = (field: string): Match =>
  matching((text, negated) => {
    const values = text.split(",").map(plain);
    if (!values.every((value) => value !== null)) {
      return undecidable(`which address the name ${text} stands for`);
    }
    return isOne(
      selector(field.replace("ip ", values[0]!.includes(":") ? "ip6 " : "ip ")),
      values,
      negated,
    );
  });

/** `80`, `8000:8010`, `:1023`, `https`, and several with commas. */
const port = (text: string): string => {
  const [low = "", high] = text.split(":");
  return high === undefined ? low : `${low === "" ? 0 : low}-${high === "" ? 65_535 : high}`;
};

const flagBits: Readonly<Record<string, number>> = {
  FIN: 1,
  SYN: 2,
  RST: 4,
  PSH: 8,
  ACK: 16,
  URG: 32,
  ALL: 63,
  NONE: 0,
};

const bitsOf = (text: string): number =>
  /^(0x)?[0-9a-f]+$/i.test(text)
    ? Number.parseInt(text, 16)
    : text.split(",").reduce((bits, name) => bits | (flagBits[name] ?? 0), 0);

const flags = (mask: string, set: string, negated: boolean): Statement =>
  isOne(binary(selector("tcp flags"), "&", literal(bitsOf(mask))), [`${bitsOf(set)}`], negated);

/** `0x4000/0x4000`, `0x1`, `16384`: a value and the bits that it is about. */
export function valueAndMask(text: string): { value: number; mask: number } {
  const [value, mask] = text.split("/");
  return { value: Number(value) >>> 0, mask: mask === undefined ? 0xffffffff : Number(mask) >>> 0 };
}

const mark = (name: string): Match =>
  matching((text, negated) => {
    const { value, mask } = valueAndMask(text);
    return isOne(binary(selector(name), "&", literal(mask)), [`${value}`], negated);
  });

/** Bits of `ct state`, and besides them whether a connection's addresses were rewritten. */
const state = matching((states, negated) => ({
  kind: "match",
  left: selector("ct state with nat"),
  op: negated ? "!" : "in",
  right: { kind: "anonymous", elements: [{ key: [states.toLowerCase()], value: null }] },
}));

/** kube-proxy means one of so many and prints it rounded, 0.33332999982 in old versions. */
function likely(printed: number): number {
  const whole = 1 / Math.round(1 / printed);
  return Math.abs(whole - printed) < 6e-6 ? whole : printed;
}

const statistic = (probabilityOf: (word: number) => number): Match => ({
  words: 1,
  read([word], negated, draft) {
    const share = probabilityOf(Number(word));
    draft.probability = negated ? 1 - share : share;
  },
});

const recent = (words: number, change: (word: string) => Draft["recent"]): Match => ({
  words,
  read([word = ""], _negated, draft) {
    draft.recent = { ...draft.recent, ...change(word) };
  },
});

const lower = (text: string): string => text.toLowerCase();

/** Other spellings of options. */
export const spellings: Readonly<Record<string, string>> = {
  "--source": "-s",
  "--src": "-s",
  "--destination": "-d",
  "--dst": "-d",
  "--in-interface": "-i",
  "--out-interface": "-o",
  "--protocol": "-p",
  "--proto": "-p",
  "--fragment": "-f",
  "--match": "-m",
  "--jump": "-j",
  "--goto": "-g",
  "--destination-port": "--dport",
  "--dports": "--dport",
  "--destination-ports": "--dport",
  "--source-port": "--sport",
  "--sports": "--sport",
  "--source-ports": "--sport",
};

/**
 * Every option of a match that is understood, those that mean something else in one module under
 * its name too, and modules that mean something by themselves (`-m socket`).
 */
export const matches: Readonly<Record<string, Match>> = {
  "-s": address("ip saddr"),
  "--src-range": address("ip saddr"),
  "-d": address("ip daddr"),
  "--dst-range": address("ip daddr"),
  "-i": among("meta iifname"),
  "-o": among("meta oifname"),
  "--src-type": among("fib saddr type", lower),
  "--dst-type": among("fib daddr type", lower),
  "--limit-iface-in": silent(0),
  "--limit-iface-out": silent(0),
  "--physdev-is-in": flag("physdev is-in", "1"),
  "--physdev-is-bridged": flag("physdev is-in", "1"),
  "--physdev-is-out": flag("physdev is-out", "1"),
  "--physdev-in": among("physdev in"),
  "--physdev-out": unknown(1, (name) => `whether the packet goes out by bridge port ${name}`),
  "--mac-source": unknown(1, (mac) => `whether the sender has the MAC address ${mac}`),

  "-p": matching((name, negated) =>
    /^(all|0)$/.test(name) ? null : isOne(selector("meta l4proto"), [lower(name)], negated),
  ),
  "--dport": among("th dport", port),
  "--sport": matching((text, negated) =>
    !negated && /^[01]?:65535$/.test(text)
      ? null
      : isOne(selector("th sport"), text.split(",").map(port), negated),
  ),
  "--ports": among("th port", port),
  "--tcp-flags": {
    words: 2,
    read: ([mask, set], negated, draft) => void draft.matches.push(flags(mask!, set!, negated)),
  },
  "--syn": {
    words: 0,
    read: (_words, negated, draft) =>
      void draft.matches.push(flags("FIN,SYN,RST,ACK", "SYN", negated)),
  },
  "--tcp-option": unknown(1, (number) => `whether the packet has TCP option ${number}`),
  "--icmp-type": among("icmp type"),
  "--icmpv6-type": among("icmpv6 type"),
  "-f": flag("ip frag-off", "1"),
  "-4": silent(0),
  "-6": silent(0),

  "--state": state,
  "--ctstate": state,
  "--ctdir": among("ct direction", lower),
  "--ctproto": among("ct protocol", lower),
  "--ctorigdst": address("ct original ip daddr"),
  "--ctorigdstport": among("ct original proto-dst", port),
  "--mark": mark("meta mark"),
  "connmark --mark": mark("ct mark"),
  "--mode": silent(1),
  "--probability": statistic(likely),
  "--every": statistic((every) => 1 / every),
  "--packet": silent(1),
  "--set": silent(0),
  "--remove": recent(0, () => ({ asks: true })),
  "--rcheck": recent(0, () => ({ asks: true })),
  "--update": recent(0, () => ({ asks: true })),
  "--seconds": recent(1, (seconds) => ({ seconds: Number(seconds) })),
  "--name": recent(1, (list) => ({ list })),
  "--hitcount": silent(1),
  "--reap": silent(0),
  "--rttl": silent(0),
  "--rsource": silent(0),
  "--rdest": silent(0),
  "--mask": silent(1),
  "--comment": {
    words: 1,
    read([text], _negated, draft) {
      draft.comment = text!;
    },
  },
  "--match-set": {
    words: 2,
    read([name, sides], negated, draft) {
      draft.matches.push({ kind: "ipset", name: name!, sides: sides!.split(","), negated });
    },
  },
  "--return-nomatch": silent(0),
  "--update-counters": silent(0),
  "--update-subcounters": silent(0),
  "--nfacct-name": silent(1),
  "--ipvs": flag("ipvs connection", "1"),
  "--vaddr": address("ipvs ip daddr"),
  "--vport": among("ipvs dport"),
  "--vproto": among("ipvs protocol", lower),
  "-m rpfilter": flag("fib saddr . iif oif", "exists"),
  "--invert": flag("fib saddr . iif oif", "missing"),
  "--validmark": silent(0),
  "--loose": silent(0),
  "-m socket": unknown(0, () => "whether a process of the node has a socket for the packet"),
  "--listed": unknown(1, (text) => `what \`${text}\` in the listing means`),
  "--limit": unknown(1, (rate) => `whether the rate is still below ${rate}`),
  "--limit-burst": silent(1),
  "--uid-owner": among("meta skuid"),
  "--gid-owner": among("meta skgid"),
};
