/** Words of iptables-save for what an extension prints in a listing, and whether they are the target's. */
interface Said {
  readonly target: boolean;
  readonly words: readonly string[];
}

type Reading = readonly [RegExp, (match: RegExpExecArray) => Said];

const match = (...words: string[]): Said => ({
  target: false,
  words: words.filter((word) => word !== ""),
});
const option = (...words: string[]): Said => ({ target: true, words });
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
export const listingMatches: readonly Reading[] = [
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
  [/^to:(\S+)/, (m) => option("--to-destination", m[1]!)],
  [/^(random-fully|random|persistent)(?=\s|$)/, (m) => option(`--${m[1]}`)],
  [/^masq ports: (\S+)/, (m) => option("--to-ports", m[1]!)],
  [/^redir ports (\S+)/, (m) => option("--to-ports", m[1]!)],
  [/^MARK (or|and|xor) (\S+)/, (m) => option(`--${m[1]}-mark`, m[2]!)],
  [/^MARK (x?)set (\S+)/, (m) => option(m[1] === "x" ? "--set-xmark" : "--set-mark", m[2]!)],
  [/^CONNMARK (or|and|xor) (\S+)/, (m) => option(`--${m[1]}-mark`, m[2]!)],
  [/^CONNMARK (x?)set (\S+)/, (m) => option(m[1] === "x" ? "--set-xmark" : "--set-mark", m[2]!)],
  [
    /^CONNMARK (save|restore)(?: mask (\S+))?/,
    (m) => option(`--${m[1]}-mark`, ...(m[2] === undefined ? [] : ["--mask", m[2]])),
  ],
  [/^CT notrack/, () => option("--notrack")],
  [
    /^TPROXY redirect (\S+):(\d+)(?: mark (\S+))?/,
    (m) => option("--on-port", m[2]!, ...(m[3] === undefined ? [] : ["--tproxy-mark", mark(m[3])])),
  ],
  [/^reject-with (\S+)/, (m) => option("--reject-with", m[1]!)],
  [/^LOG (?:flags \d+ )?level \S+(?: prefix "[^"]*")?/, () => option()],
  [/^nflog-(?:prefix|group|threshold|size)\s+(?:"[^"]*"|\S+)/, () => option()],
  [/^TCPMSS (?:clamp to PMTU|set \d+)/, () => option()],
];
