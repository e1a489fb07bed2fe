import { DumpProblem } from "../../model/dump";
import { type Chain, wordsOf } from "../../model/iptables";
import type { Rule, Statement } from "../../model/statement";
import { columnsOf, wordsOfListed } from "./listing-words";
import { type Draft, matches, undecidable, spellings } from "./matches";
import { statementOf, targetOptions } from "./targets";

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
