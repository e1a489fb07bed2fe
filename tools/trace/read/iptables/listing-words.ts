import type { Columns } from "../../model/iptables";

/** What stands in a listing's fixed columns, and the text that extensions print behind them. */
interface ListedRule {
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
export function wordsOfListed(rule: ListedRule, chain: string): string[] {
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
  // To an endpoint's chain comes one protocol only; a listing typed off by hand may name another.
  if (!chain.startsWith("KUBE-SEP-")) put("-p", rule.protocol, ["all", "0"]);
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
      .map(([pattern, read]) => ({ match: pattern.exec(rest), read }))
      .find((each) => each.match !== null);
    if (found?.match == null) {
      const [unknown] = rest.split(/\s+/);
      words.push("--listed", unknown!);
      rest = rest.slice(unknown!.length).trim();
      continue;
    }
    const { target, words: read } = found.read(found.match);
    (target ? options : words).push(...read);
    rest = rest.slice(found.match[0].length).trim();
  }
  if (rule.target !== "") words.push(jump, rule.target, ...options);
  return words;
}

/**
 * Words of iptables-save for what an extension prints in a listing, and whether they are the
 * target's.
 */
interface Said {
  readonly target: boolean;
  readonly words: readonly string[];
}

type Reading = readonly [RegExp, (match: RegExpExecArray) => Said];

const match = (...words: string[]): Said => ({
  target: false,
  words: words.filter((word) => word !== ""),
});

const targetOption = (...words: string[]): Said => ({ target: true, words });

const not = (sign: string | undefined): string =>
  sign === undefined || sign.trim() === "" ? "" : "!";

const port: Readonly<Record<string, string>> = {
  spt: "--sport",
  dpt: "--dport",
  spts: "--sport",
  dpts: "--dport",
};

const mark = (value: string): string => (value.startsWith("0x") ? value : `0x${value}`);

/** How each extension prints itself; the first that fits the beginning of the text is taken. */
const listingMatches: readonly Reading[] = [
  [/^\/\* ?(.*?) ?\*\//, (m) => match("-m", "comment", "--comment", m[1] === "" ? " " : m[1]!)],
  [/^(?:tcp|udp|sctp) ([sd]pts?):(!?)(\S+)/, (m) => match(not(m[2]), port[m[1]!]!, m[3]!)],
  [/^([sd]pts?):(!?)(\S+)/, (m) => match(not(m[2]), port[m[1]!]!, m[3]!)],
  [/^(?:tcp )?flags:(!?)(\S+)\/(\S+)/, (m) => match(not(m[1]), "--tcp-flags", m[2]!, m[3]!)],
  [/^(?:tcp|udp|sctp)(?=\s|$)/, () => match()],
  [
    /^multiport (dports|sports|ports) (!?) ?(\S+)/,
    (m) => match("-m", "multiport", not(m[2]), `--${m[1]}`, m[3]!),
  ],
  [/^ADDRTYPE match/, () => match("-m", "addrtype")],
  [/^(src|dst)-type (!?)(\S+)/, (m) => match("-m", "addrtype", not(m[2]), `--${m[1]}-type`, m[3]!)],
  [/^limit-(in|out)/, (m) => match("--limit-iface-" + m[1]!)],
  [/^(connmark|mark) match\s+(! ?)?(\S+)/, (m) => match("-m", m[1]!, not(m[2]), "--mark", m[3]!)],
  [/^(! )?ctstate (\S+)/, (m) => match("-m", "conntrack", not(m[1]), "--ctstate", m[2]!)],
  [/^(! )?state (\S+)/, (m) => match("-m", "state", not(m[1]), "--state", m[2]!)],
  [
    /^(! )?match-set (\S+) (\S+)/,
    (m) => match("-m", "set", not(m[1]), "--match-set", m[2]!, m[3]!),
  ],
  [
    /^statistic mode random( !)? ?probability (\S+)/,
    (m) => match("-m", "statistic", "--mode", "random", not(m[1]), "--probability", m[2]!),
  ],
  [
    /^statistic mode nth( !)? ?every (\S+)(?: packet (\S+))?/,
    (m) =>
      match(
        "-m",
        "statistic",
        "--mode",
        "nth",
        not(m[1]),
        "--every",
        m[2]!,
        "--packet",
        m[3] ?? "0",
      ),
  ],
  [
    /^(!)?\s*recent: (SET|CHECK|UPDATE|REMOVE)(?: seconds: (\d+))?( reap)?(?: hit_count: (\d+))?(?: TTL-Match)? name: (\S+) side: (\S+)(?: mask: \S+)?/,
    (m) =>
      match(
        "-m",
        "recent",
        not(m[1]),
        { SET: "--set", CHECK: "--rcheck", UPDATE: "--update", REMOVE: "--remove" }[m[2]!]!,
        ...(m[3] === undefined ? [] : ["--seconds", m[3]]),
        ...(m[5] === undefined ? [] : ["--hitcount", m[5]]),
        "--name",
        m[6]!,
      ),
  ],
  [/^nfacct-name\s+(\S+)/, (m) => match("-m", "nfacct", "--nfacct-name", m[1]!)],
  [/^PHYSDEV match/, () => match("-m", "physdev")],
  [/^(! )?--(physdev-is-(?:in|out|bridged))/, (m) => match(not(m[1]), `--${m[2]}`)],
  [/^(! )?--(physdev-(?:in|out)) (\S+)/, (m) => match(not(m[1]), `--${m[2]}`, m[3]!)],
  [/^limit: avg (\S+) burst (\d+)/, (m) => match("-m", "limit", "--limit", m[1]!)],
  [
    /^(source|destination) IP range (! )?(\S+)/,
    (m) =>
      match("-m", "iprange", not(m[2]), m[1] === "source" ? "--src-range" : "--dst-range", m[3]!),
  ],
  [
    /^owner (! ?)?(UID|GID) match (\S+)/,
    (m) => match("-m", "owner", not(m[1]), m[2] === "UID" ? "--uid-owner" : "--gid-owner", m[3]!),
  ],
  [
    /^(?:icmp ?|icmptype |ipv6-icmp ?|ipv6-icmptype )(!?)([\w-]+)?(?: code \d+)?/,
    (m) => match(not(m[1]), "--icmp-type", m[2] ?? "any"),
  ],
  [/^rpfilter(?: (?:loose|validmark|accept-local))*( invert)?/, () => match("-m", "rpfilter")],
  [/^to:(\S+)/, (m) => targetOption("--to-destination", m[1]!)],
  [/^(random-fully|random|persistent)(?=\s|$)/, (m) => targetOption(`--${m[1]}`)],
  [/^masq ports: (\S+)/, (m) => targetOption("--to-ports", m[1]!)],
  [/^redir ports (\S+)/, (m) => targetOption("--to-ports", m[1]!)],
  [/^MARK (or|and|xor) (\S+)/, (m) => targetOption(`--${m[1]}-mark`, m[2]!)],
  [/^MARK (x?)set (\S+)/, (m) => targetOption(m[1] === "x" ? "--set-xmark" : "--set-mark", m[2]!)],
  [/^CONNMARK (or|and|xor) (\S+)/, (m) => targetOption(`--${m[1]}-mark`, m[2]!)],
  [
    /^CONNMARK (x?)set (\S+)/,
    (m) => targetOption(m[1] === "x" ? "--set-xmark" : "--set-mark", m[2]!),
  ],
  [
    /^CONNMARK (save|restore)(?: mask (\S+))?/,
    (m) => targetOption(`--${m[1]}-mark`, ...(m[2] === undefined ? [] : ["--mask", m[2]])),
  ],
  [/^CT notrack/, () => targetOption("--notrack")],
  [
    /^TPROXY redirect (\S+):(\d+)(?: mark (\S+))?/,
    (m) =>
      targetOption(
        "--on-port",
        m[2]!,
        ...(m[3] === undefined ? [] : ["--tproxy-mark", mark(m[3])]),
      ),
  ],
  [/^reject-with (\S+)/, (m) => targetOption("--reject-with", m[1]!)],
  [/^LOG (?:flags \d+ )?level \S+(?: prefix "[^"]*")?/, () => targetOption()],
  [/^nflog-(?:prefix|group|threshold|size)\s+(?:"[^"]*"|\S+)/, () => targetOption()],
  [/^TCPMSS (?:clamp to PMTU|set \d+)/, () => targetOption()],
];
