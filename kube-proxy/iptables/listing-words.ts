import { listingMatches } from "./listing-matches";
import type { Columns } from "./iptables";

/** What stands in a listing's fixed columns, and the text that extensions print behind them. */
export interface ListedRule {
  readonly target: string;
  readonly protocol: string;
  readonly input: string;
  readonly output: string;
  readonly source: string;
  readonly destination: string;
  readonly rest: string;
}

const protocol =
  /^!?(all|tcp|udp|sctp|icmp|icmpv6|ipv6-icmp|esp|ah|gre|igmp|ipencap|ipv6|ipip|dccp|udplite|\d+)$/;
const option = /^(--|-f|!f)$/;

/** The columns of one line; null when they are not all there. */
export function columnsOf(text: string, columns: Columns): ListedRule | null {
  const words = [...text.matchAll(/\S+/g)];
  let at = (columns.numbered ? 1 : 0) + (columns.verbose ? 2 : 0);
  const word = (index: number): string => words[index]?.[0] ?? "";
  const bare =
    option.test(word(at + 1)) || (protocol.test(word(at)) && !protocol.test(word(at + 1)));
  const target = bare ? "" : word(at++);
  const proto = word(at++);
  if (option.test(word(at))) at += 1;
  const [input, output] = columns.verbose ? [word(at++), word(at++)] : ["*", "*"];
  const [source, destination] = [word(at++), word(at++)];
  if (!protocol.test(proto) || destination === "") return null;
  const last = words[at - 1]!;
  const rest = text.slice(last.index + last[0].length).trim();
  return { target, protocol: proto, input, output, source, destination, rest };
}

/** A listed rule in the words of iptables-save; what is not understood comes as `--listed TEXT`. */
export function wordsOfListed(rule: ListedRule): string[] {
  const words: string[] = [];
  const put = (name: string, value: string, any: readonly string[]): void => {
    const plain = value.replace(/^!/, "");
    if (any.includes(plain)) return;
    words.push(...(value.startsWith("!") ? ["!", name, plain] : [name, plain]));
  };
  put("-s", rule.source, ["anywhere", "0.0.0.0/0", "::/0"]);
  put("-d", rule.destination, ["anywhere", "0.0.0.0/0", "::/0"]);
  put("-i", rule.input, ["*", "any"]);
  put("-o", rule.output, ["*", "any"]);
  // Of kube-proxy's chains only an endpoint's is for one protocol without a port.
  const endpoint = rule.target === "DNAT" && /^(tcp|udp|sctp)$/.test(rule.protocol);
  put(endpoint ? "--listed-protocol" : "-p", rule.protocol, ["all", "0"]);
  let rest = rule.rest;
  let jump = "-j";
  const options: string[] = [];
  while (rest !== "") {
    if (rest.startsWith("[goto]")) {
      jump = "-g";
      rest = rest.slice("[goto]".length).trim();
      continue;
    }
    const found = listingMatches
      .map(([pattern, say]) => ({ match: pattern.exec(rest), say }))
      .find((each) => each.match !== null);
    if (found?.match == null) {
      const [unknown] = rest.split(/\s+/);
      words.push("--listed", unknown!);
      rest = rest.slice(unknown!.length).trim();
      continue;
    }
    const { target, words: said } = found.say(found.match);
    (target ? options : words).push(...said);
    rest = rest.slice(found.match[0].length).trim();
  }
  if (rule.target !== "") words.push(jump, rule.target, ...options);
  return words;
}
