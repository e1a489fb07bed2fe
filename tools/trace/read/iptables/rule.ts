import { DumpProblem } from "../../model/dump";
import { type Chain, wordsOf } from "../../model/iptables";
import { addressOf, canonical, rangeOf } from "../../model/packet";
import type { Expression, Nat, Rule, Statement } from "../../model/statement";
import { columnsOf, wordsOfListed } from "./listing-words";
import {
  binary,
  type Draft,
  literal,
  matches,
  selector,
  spellings,
  undecidable,
  valueAndMask,
} from "./matches";

const read = new WeakMap<Rule, readonly Statement[]>();

/**
 * What a rule says, in the statements of nftables, as `iptables-translate` writes it; read on its
 * first visit.
 */
export function statementsOf(rule: Rule, chain: Chain, file: string): readonly Statement[] {
  const before = read.get(rule);
  if (before !== undefined) return before;
  const statements = translate(wordsIn(rule, chain, file), rule, chain, file);
  read.set(rule, statements);
  return statements;
}

/**
 * What people note with the rule, null without; Calico's own hashes are no note. Where a shell took
 * the quotes off, a comment goes on until the next option.
 */
export function commentOf(rule: Rule, chain: Chain, file: string): string | null {
  const words = wordsIn(rule, chain, file);
  const comments = words.flatMap((word, at) => {
    if (word !== "--comment") return [];
    const [first = "", ...rest] = words.slice(at + 1);
    const end = rest.findIndex(isOption);
    return [[first, ...rest.slice(0, end < 0 ? undefined : end)].join(" ").trim()];
  });
  return comments.find((each) => each !== "" && !each.startsWith("cali:")) ?? null;
}

const isOption = (word: string): boolean => /^(-|!$)/.test(word);

/** A rule's words after `-A CHAIN`, whichever way it is printed. */
export function wordsIn(rule: Rule, chain: Chain, file: string): string[] {
  if (chain.columns === null) return wordsOf(rule.text).slice(2);
  const listed = columnsOf(rule.text, chain.columns);
  if (listed === null) {
    throw new DumpProblem(
      file,
      rule.line,
      `a rule of chain ${chain.name}: target, protocol, source, destination`,
      rule.text,
    );
  }
  return wordsOfListed(listed, chain.name);
}

function translate(
  words: readonly string[],
  rule: Rule,
  chain: Chain,
  file: string,
): readonly Statement[] {
  const draft: Draft = { matches: [], probability: null, recent: {}, comment: "" };
  let target: { readonly name: string; readonly goto: boolean } | null = null;
  const options = new Map<string, readonly string[]>();
  let inTarget = false;
  let module = "";
  for (let at = 0; at < words.length;) {
    let negated = words[at] === "!";
    if (negated) at += 1;
    const word = words[at++];
    if (word === undefined) throw truncated("!", rule, file);
    const name = spellings[word] ?? word;
    const match = matches[`${module} ${name}`] ?? matches[name];
    // As iptables once wrote it: `-s ! ADDRESS`.
    if (words[at] === "!" && name.startsWith("-") && match?.words !== 0) {
      negated = true;
      at += 1;
    }
    const value = (): string => {
      const next = words[at++];
      if (next === undefined) throw truncated(word, rule, file);
      return next;
    };
    const values = (): string[] => {
      const start = at;
      while (at < words.length && !/^(--?[a-z]|!$)/.test(words[at]!)) at += 1;
      return words.slice(start, at);
    };
    if (name === "-j" || name === "-g") {
      target = { name: value(), goto: name === "-g" };
      inTarget = true;
    } else if (inTarget && name !== "-m" && targetOptions.has(name)) {
      options.set(name, values());
    } else if (name === "-m") {
      module = value();
      inTarget = false;
      matches[`-m ${module}`]?.read([], false, draft);
    } else if (match !== undefined) {
      match.read(Array.from({ length: match.words }, value), negated, draft);
      // A shell takes the quotes off when it passes a rule on.
      while (name === "--comment" && at < words.length && !isOption(words[at]!)) at += 1;
    } else if (!name.startsWith("-")) {
      throw new DumpProblem(file, rule.line, "an option of iptables", name);
    } else {
      const written = [module === "" ? "" : `-m ${module} `, [name, ...values()].join(" ")].join(
        "",
      );
      draft.matches.push(undecidable(`what \`${written}\` says of the packet`));
    }
  }
  return [
    ...draft.matches,
    ...hiddenInterfaces(draft, target?.name ?? "", chain, rule),
    ...knownWorkloads(draft, chain),
    ...recent(draft),
    ...(draft.probability === null || draft.probability >= 1
      ? []
      : [{ kind: "probability", probability: draft.probability } as const]),
    ...(target === null ? [] : statementOf({ ...target, options }, rule, chain)),
  ];
}

function truncated(after: string, rule: Rule, file: string): DumpProblem {
  return new DumpProblem(
    file,
    rule.line,
    `a value after \`${after}\``,
    `the end of \`${rule.text}\``,
    "the dump is cut off: take it again",
  );
}

/** kube-proxy remembers the clients of an endpoint in a list that has the name of its chain. */
function recent({ recent: { asks, list, seconds } }: Draft): Statement[] {
  if (asks !== true) return [];
  return list?.startsWith("KUBE-SEP-") === true && seconds !== undefined
    ? [{ kind: "affinity", seconds }]
    : [undecidable(`whether list ${list ?? "DEFAULT"} of recent clients holds this one`)];
}

const ending = new Set(["ACCEPT", "DROP", "REJECT", "MASQUERADE", "SNAT", "DNAT"]);

/**
 * A listing without `-v` shows no interfaces: what looks like a rule for all packets may be one for
 * `-i lo`.
 */
function hiddenInterfaces(draft: Draft, target: string, chain: Chain, rule: Rule): Statement[] {
  if (chain.columns === null || chain.columns.verbose || chain.name.startsWith("KUBE-")) return [];
  if (!ending.has(target) || draft.matches.length > 0) return [];
  const text = rule.text.replace(/\s+/g, " ");
  return [
    undecidable(`which interfaces \`${text}\` is for: a listing without -v does not show them`),
  ];
}

/**
 * Calico drops what comes by an interface of a workload that it does not know; which one a packet
 * takes is in no dump.
 */
function knownWorkloads({ comment }: Draft, chain: Chain): Statement[] {
  if (!chain.name.startsWith("cali-") || comment !== "Unknown interface") return [];
  const sentence = `The pod's interface is taken for one of those that ${chain.name} names, since Calico knows the pods of its node.`;
  return [
    { kind: "note", sentence },
    { kind: "probability", probability: 0 },
  ];
}

/** What a rule does with a packet that its matches hold for. */
interface Target {
  readonly name: string;
  readonly goto: boolean;
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** Targets that log, measure or change what no rule asks. */
const noops = new Set(
  `LOG NFLOG ULOG TRACE AUDIT TCPMSS TCPOPTSTRIP CHECKSUM CLASSIFY DSCP TOS TTL HL ECN SET TEE SECMARK CONNSECMARK
  IDLETIMER RATEEST LED`.split(/\s+/),
);

/** What a target does in the statements of nftables; what is no target is a chain. */
function statementOf(target: Target, rule: Rule, chain: Chain): Statement[] {
  const option = (...names: string[]): string | undefined =>
    names.map((name) => target.options.get(name)?.[0]).find((value) => value !== undefined);
  if (noops.has(target.name)) return [{ kind: "noop" }];
  switch (target.name) {
    case "ACCEPT":
    case "RETURN":
    case "DROP":
      return [{ kind: "verdict", verdict: { kind: lower[target.name] } }];
    case "REJECT": {
      const type = option("--reject-with") ?? "icmp-port-unreachable";
      return [{ kind: "verdict", verdict: { kind: "reject", with: type } }];
    }
    case "MARK":
      return [setMark("meta mark", target)];
    case "CONNMARK":
      return [copyMark(target) ?? setMark("ct mark", target)];
    case "NOTRACK":
      return [{ kind: "notrack" }];
    case "CT":
      return [target.options.has("--notrack") ? { kind: "notrack" } : { kind: "noop" }];
    case "DNAT":
      return [
        ...oddEndpoint(option("--to-destination") ?? "", rule, chain),
        dnat(option("--to-destination") ?? "", rule),
      ];
    case "REDIRECT":
      return [nat("redirect", null, option("--to-ports")?.split("-")[0])];
    case "NETMAP":
      return [netmap(option("--to", "--to-destination") ?? "")];
    case "SNAT":
      return [nat("snat", option("--to-source", "--to-destination") ?? "")];
    case "MASQUERADE":
      return [nat("masquerade", null)];
    case "QUEUE":
    case "NFQUEUE":
      return [{ kind: "untraceable", text: target.name, why: "a program decides on it" }];
    case "TPROXY":
      return [{ kind: "untraceable", text: target.name, why: "a proxy on the node takes it" }];
    default:
      return [
        {
          kind: "verdict",
          verdict: { kind: target.goto ? "goto" : "jump", chain: target.name },
        },
      ];
  }
}

const lower = { ACCEPT: "accept", RETURN: "return", DROP: "drop" } as const;

const nat = (kind: Nat["kind"], address: string | null, port?: string): Statement => ({
  kind: "nat",
  nat: {
    kind,
    address: address === null ? null : literal(address),
    port: port === undefined ? null : literal(port),
  },
});

/** `10.0.0.1:80`, `10.0.0.1`, `[fd00::1]:80`, `:80`, `10.0.0.1-10.0.0.9:8000-8010`. */
const destination =
  /^(?:\[([0-9a-fA-F:.-]+)\]|([0-9a-fA-F.-]+|[0-9a-fA-F:]+:[0-9a-fA-F:.]*)?)(?::(\d+(?:-\d+)?))?$/;

function dnat(text: string, rule: Rule): Statement {
  const read = text === "" || /^\d+$/.test(text) ? null : destination.exec(text);
  const address = read?.[1] ?? read?.[2];
  const ends = address?.split("-").map(canonical);
  if (read === null || ends?.includes(null) === true) {
    return {
      kind: "untraceable",
      text: rule.text,
      why: "where it sends the packet cannot be read",
    };
  }
  return nat("dnat", ends?.join("-") ?? null, read[3]);
}

/**
 * An endpoint's chain names its pod twice: as the source that reaches itself, and as the
 * destination.
 */
function oddEndpoint(to: string, rule: Rule, chain: Chain): Statement[] {
  if (!chain.name.startsWith("KUBE-SEP-")) return [];
  const address = canonical(/^\[?([^\]]+?)\]?(?::\d+)?$/.exec(to)?.[1] ?? "");
  const marked = chain.rules
    .filter((other) => other !== rule && other.text.includes("KUBE-MARK-MASQ"))
    .map(
      (other) =>
        /(?:-s |--\s+|\s)([0-9a-f]*[.:][0-9a-f.:]+)(?:\/\d+)?(?:\s|$)/i.exec(other.text)?.[1],
    )
    .find((source) => source !== undefined && canonical(source) !== null);
  if (marked === undefined || address === null || canonical(marked) === address) return [];
  const sentence = `${chain.name} sends to ${address} but marks the source ${marked}, which should be the same: one of them is mistyped; the rules are taken as they are.`;
  return [{ kind: "note", sentence }];
}

function netmap(text: string): Statement {
  const range = rangeOf(text);
  return nat(
    "netmap",
    range === null
      ? text
      : `${addressOf(range.low, range.family)}-${addressOf(range.high, range.family)}`,
  );
}

/** `mark & keep ^ value` and the like: the masked bits are cleared, then the value is put in. */
function setMark(name: string, { options }: Target): Statement {
  const [option = "", [text = "0"] = []] =
    [...options].find(([each]) => /^--(set-x?|or-|and-|xor-)mark$/.test(each)) ?? [];
  const { value, mask } = valueAndMask(text);
  const before = selector(name);
  const kept = binary(before, "&", literal(~mask >>> 0));
  const values: Readonly<Record<string, Expression>> = {
    "--set-xmark": binary(kept, "^", literal(value)),
    "--set-mark": binary(kept, "|", literal(value)),
    "--or-mark": binary(before, "|", literal(value)),
    "--and-mark": binary(before, "&", literal(value)),
    "--xor-mark": binary(before, "^", literal(value)),
  };
  return { kind: "set", name, value: values[option] ?? before };
}

/** CONNMARK between the packet's mark and the connection's; null where it sets a value. */
function copyMark({ options }: Target): Statement | null {
  const bits = (name: string): number =>
    Number((options.get(name) ?? options.get("--mask"))?.[0] ?? 0xffffffff) >>> 0;
  const [ofPacket, ofConnection] = [bits("--nfmask"), bits("--ctmask")];
  const copy = (to: string, kept: number, from: string, taken: number): Statement => ({
    kind: "set",
    name: to,
    value: binary(
      binary(selector(to), "&", literal(~kept >>> 0)),
      "^",
      binary(selector(from), "&", literal(taken)),
    ),
  });
  if (options.has("--save-mark")) return copy("ct mark", ofConnection, "meta mark", ofPacket);
  if (options.has("--restore-mark")) return copy("meta mark", ofPacket, "ct mark", ofConnection);
  return null;
}

/** Options that belong to targets; what is not one of them belongs to a match. */
const targetOptions = new Set(
  `--to-destination --to-source --to-ports --to --random --random-fully --persistent --reject-with
  --set-mark --set-xmark --and-mark --or-mark --xor-mark --save-mark --restore-mark --mask --ctmask --nfmask
  --log-level --log-prefix --log-tcp-sequence --log-tcp-options --log-ip-options --log-uid --log-macdecode
  --nflog-group --nflog-prefix --nflog-size --nflog-range --nflog-threshold
  --queue-num --queue-balance --queue-bypass --queue-cpu-fanout
  --on-port --on-ip --tproxy-mark --notrack --zone --zone-orig --zone-reply --helper --ctevents --expevents --timeout
  --set-mss --clamp-mss-to-pmtu --gateway --checksum-fill --set-class --set-dscp --set-dscp-class --set-tos --and-tos --or-tos
  --ttl-set --ttl-dec --ttl-inc --hl-set --hl-dec --hl-inc --add-set --del-set --map-set --exist --map-mark --map-prio --map-queue
  --type --sack-perm --timestamp --wscale --mss --ecn --label --led-trigger-id --save --restore --selctx`.split(
    /\s+/,
  ),
);
