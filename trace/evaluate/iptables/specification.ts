import { DumpProblem } from "../../model/dump";
import { type Chain, type Rule, wordsOf } from "../../model/iptables";
import { columnsOf, wordsOfListed } from "../../read/iptables/listing-words";
import { addressMatches } from "./address-matches";
import type { Match, Specification } from "./match";
import { protocolMatches } from "./protocol-matches";
import { stateMatches } from "./state-matches";

const read = new WeakMap<Rule, Specification>();

export function specificationOf(rule: Rule, chain: Chain, file: string): Specification {
  const before = read.get(rule);
  if (before !== undefined) return before;
  const specification = interpret(wordsIn(rule, chain, file), rule, file);
  askRecent(specification);
  hideInterfaces(specification, chain, rule);
  knowWorkloads(specification, chain);
  read.set(rule, specification);
  return specification;
}

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
  return wordsOfListed(listed);
}

function interpret(words: readonly string[], rule: Rule, file: string): Specification {
  const specification: Specification = {
    tests: [],
    chance: null,
    affinitySeconds: null,
    recent: {},
    comment: "",
    target: null,
  };
  const options = new Map<string, readonly string[]>();
  let inTarget = false;
  let module = "";
  for (let at = 0; at < words.length;) {
    let negated = words[at] === "!";
    if (negated) at += 1;
    const name = words[at++];
    if (name === undefined) throw cut("!", rule, file);
    if (words[at] === "!" && name.startsWith("-")) {
      negated = true;
      at += 1;
    }
    const value = (): string => {
      const word = words[at++];
      if (word === undefined) throw cut(name, rule, file);
      return word;
    };
    if (name === "-j" || name === "-g" || name === "--jump" || name === "--goto") {
      specification.target = { name: value(), goto: name === "-g" || name === "--goto", options };
      inTarget = true;
    } else if (inTarget && name !== "-m" && targetOptions.has(name)) {
      const values: string[] = [];
      while (at < words.length && !/^(--?[a-z]|!$)/.test(words[at]!)) values.push(words[at++]!);
      options.set(name, values);
    } else if (name === "-m" || name === "--match") {
      module = value();
      inTarget = false;
      matches[`-m ${module}`]?.read([], false, specification);
    } else if ((matches[`${module} ${name}`] ?? matches[name]) !== undefined) {
      const match = (matches[`${module} ${name}`] ?? matches[name])!;
      match.read(Array.from({ length: match.values }, value), negated, specification);
      // A shell takes the quotes off when it passes a rule on.
      while (name === "--comment" && at < words.length && !/^(-|!$)/.test(words[at]!)) at += 1;
    } else if (!name.startsWith("-")) {
      throw new DumpProblem(file, rule.line, "an option of iptables", name);
    } else {
      const said = [name];
      while (at < words.length && !/^(--?[a-z]|!$)/.test(words[at]!)) said.push(words[at++]!);
      const why = `what \`${module === "" ? "" : `-m ${module} `}${said.join(" ")}\` says of the packet`;
      specification.tests.push(() => ({ why }));
    }
  }
  return specification;
}

function cut(after: string, rule: Rule, file: string): DumpProblem {
  return new DumpProblem(
    file,
    rule.line,
    `a value after \`${after}\``,
    `the end of \`${rule.text}\``,
    "the dump is cut off: take it again",
  );
}

/** kube-proxy remembers the clients of an endpoint in a list that has the name of its chain. */
function askRecent(specification: Specification): void {
  const { asks, list, seconds } = specification.recent;
  if (asks !== true) return;
  if (list?.startsWith("KUBE-SEP-") === true) specification.affinitySeconds = seconds ?? null;
  else
    specification.tests.push(() => ({
      why: `whether list ${list ?? "DEFAULT"} of recent clients holds this one`,
    }));
}

const ending = new Set(["ACCEPT", "DROP", "REJECT", "MASQUERADE", "SNAT", "DNAT"]);

/**
 * A listing without `-v` shows no interfaces: what looks like a rule for all packets may be one for
 * `-i lo`.
 */
function hideInterfaces(specification: Specification, chain: Chain, rule: Rule): void {
  if (chain.columns === null || chain.columns.verbose || chain.name.startsWith("KUBE-")) return;
  if (!ending.has(specification.target?.name ?? "") || specification.tests.length > 0) return;
  specification.tests.push(() => ({
    why: `which interfaces \`${rule.text.replace(/\s+/g, " ")}\` is for: a listing without -v does not show them`,
  }));
}

/**
 * Calico drops what comes by an interface of a workload that it does not know; which one a packet
 * takes is in no dump.
 */
function knowWorkloads(specification: Specification, chain: Chain): void {
  if (!chain.name.startsWith("cali-") || specification.comment !== "Unknown interface") return;
  specification.tests.push((_flow, { path }) => {
    path.note(
      `The pod's interface is taken for one of those that ${chain.name} names, since Calico knows the pods of its node.`,
    );
    return false;
  });
}

/**
 * Every option of a match that is understood, and modules that mean something by themselves (`-m
 * socket`).
 */
export const matches: Readonly<Record<string, Match>> = {
  ...addressMatches,
  ...protocolMatches,
  ...stateMatches,
};

/** Options that belong to targets; what is not one of them belongs to a match. */
export const targetOptions = new Set(
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
