import { rangeOf } from "../../../model/packet";
import type { Decision, Undecided } from "../../flow";

/** Names that `iptables -L` prints for ports: those of IANA, and Debian's tproxy. */
const registered = `
  ftp:21 ssh:22 telnet:23 smtp:25 domain:53 bootps:67 bootpc:68 tftp:69 gopher:70 http:80
  kerberos:88 pop3:110 sunrpc:111 ntp:123 imap:143 imap2:143 snmp:161 bgp:179 ldap:389 https:443
  microsoft-ds:445 submission:587 ldaps:636 domain-s:853 rsync:873 imaps:993 pop3s:995 socks:1080
  openvpn:1194 ms-sql-s:1433 mqtt:1883 nfs:2049 etcd-client:2379 etcd-server:2380 mysql:3306
  ms-wbt-server:3389 vxlan:4789 sip:5060 xmpp-client:5222 mdns:5353 postgresql:5432 amqp:5672
  redis:6379 http-alt:8080 tproxy:8081 secure-mqtt:8883 pdl-datastream:9100 git:9418`;

export const serviceNames: Readonly<Record<string, number>> = Object.fromEntries(
  [...registered.matchAll(/(\S+):(\d+)/g)].map(([, name = "", port]) => [name, Number(port)]),
);

/** How the values of a selector are written. */
export type Kind = "address" | "port" | "protocol" | "number" | "name" | keyof typeof symbols;

export interface Interval {
  readonly low: number | bigint;
  readonly high: number | bigint;
}

const protocols: { readonly [name: string]: number } = {
  ip: 0,
  icmp: 1,
  igmp: 2,
  ipencap: 4,
  tcp: 6,
  udp: 17,
  dccp: 33,
  ipv6: 41,
  gre: 47,
  esp: 50,
  ah: 51,
  icmpv6: 58,
  "ipv6-icmp": 58,
  ospf: 89,
  ipip: 94,
  comp: 108,
  vrrp: 112,
  sctp: 132,
  udplite: 136,
};

const symbols = {
  state: { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 },
  /** iptables' names for a connection's state, of which two are about its addresses. */
  ctstate: { invalid: 1, established: 2, related: 4, new: 8, untracked: 64, dnat: 128, snat: 256 },
  status: {
    expected: 1,
    "seen-reply": 2,
    assured: 4,
    confirmed: 8,
    snat: 16,
    dnat: 32,
    dying: 512,
  },
  direction: { original: 0, reply: 1 },
  flags: { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16, urg: 32, ecn: 64, cwr: 128 },
  route: {
    unspec: 0,
    unicast: 1,
    local: 2,
    broadcast: 3,
    anycast: 4,
    multicast: 5,
    blackhole: 6,
    unreachable: 7,
    prohibit: 8,
  },
  found: { missing: 0, exists: 1, false: 0, true: 1 },
  family: { ipv4: 2, ipv6: 10 },
  ether: { ip: 0x800, ip6: 0x86dd, arp: 0x806, vlan: 0x8100 },
  pkttype: { host: 0, unicast: 0, broadcast: 1, multicast: 2, other: 3 },
} as const;

const kinds: readonly (readonly [RegExp, Kind])[] = [
  [/^(ip6?|ct (original|reply)( ip6?)?|ipvs ip6?) [sd]addr$/, "address"],
  [/^(th|tcp|udp|udplite|sctp|dccp|ipvs) [sd]?port$|^ct (original|reply) proto-(src|dst)$/, "port"],
  [/^(meta l4proto|ip protocol|ip6 nexthdr|(ct|ipvs) (original |reply )?protocol)$/, "protocol"],
  [/^meta [io]if(name)?$/, "name"],
  [/^ct state$/, "state"],
  [/^ct state with nat$/, "ctstate"],
  [/^ct status$/, "status"],
  [/^ct direction$/, "direction"],
  [/^tcp flags$/, "flags"],
  [/^fib .* type$/, "route"],
  [/^fib .* (oif|check)$/, "found"],
  [/^fib .* oifname$/, "name"],
  [/^(meta nfproto|ct (original |reply )?l3proto)$/, "family"],
  [/^meta protocol$/, "ether"],
  [/^meta pkttype$/, "pkttype"],
];

export function kindOf(selector: string): Kind {
  return kinds.find(([pattern]) => pattern.test(selector))?.[1] ?? "number";
}

/**
 * A single value as text that is the same however it was written; null for prefixes, ranges and
 * patterns.
 */
export function canonicalPart(kind: Kind, text: string): string | null {
  if (kind === "address") return /[/-]/.test(text) ? null : text.toLowerCase();
  if (kind === "name") return /\*"?$/.test(text) ? null : bare(text);
  if (kind === "port" && /^\d+$/.test(text)) return text;
  const value = numberOf(kind, text);
  return value === null ? null : String(value);
}

/** What a value, prefix or range spans; null for what is not understood. */
export function intervalOf(kind: Kind, text: string): Interval | null {
  if (kind === "name") return null;
  if (kind === "address") return addresses(text);
  const single = numberOf(kind, text);
  if (single !== null) return { low: single, high: single };
  const dash = text.indexOf("-");
  const low = numberOf(kind, text.slice(0, Math.max(dash, 0)));
  const high = numberOf(kind, text.slice(dash + 1));
  return low === null || high === null ? null : { low, high };
}

/** IPv4 as numbers, since a set may hold a hundred thousand of them. */
function addresses(text: string): Interval | null {
  if (text.includes(":")) return rangeOf(text);
  const slash = text.indexOf("/");
  const dash = text.indexOf("-");
  if (slash >= 0) {
    const low = ipv4(text.slice(0, slash));
    const length = Number(text.slice(slash + 1));
    if (low === null || !(length >= 0 && length <= 32)) return null;
    return { low, high: low + 2 ** (32 - length) - 1 };
  }
  const low = ipv4(dash < 0 ? text : text.slice(0, dash));
  const high = dash < 0 ? low : ipv4(text.slice(dash + 1));
  return low === null || high === null ? null : { low, high };
}

function ipv4(text: string): number | null {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (parts === null) return null;
  return (
    ((Number(parts[1]) * 256 + Number(parts[2])) * 256 + Number(parts[3])) * 256 + Number(parts[4])
  );
}

/** A number, a symbol, or several bits as `established,related`. */
export function numberOf(kind: Kind, text: string): number | null {
  if (/^(0x[0-9a-f]+|\d+)$/i.test(text)) return Number(text);
  if (text.includes(",")) {
    const bits = text.split(",").map((bit) => numberOf(kind, bit.trim()));
    return bits.reduce((all, bit) => (all === null || bit === null ? null : (all | bit) >>> 0), 0);
  }
  const name = bare(text);
  if (kind === "port") return serviceNames[name] ?? null;
  if (kind === "protocol") return protocols[name] ?? null;
  if (kind in symbols) {
    const table: { readonly [name: string]: number } = symbols[kind as keyof typeof symbols];
    return table[name] ?? null;
  }
  return null;
}

/** Interfaces in the spelling that the rest of the tracer has: `cali+`. */
export function devicePattern(text: string): string {
  return bare(text).replace(/\*$/, "+");
}

function bare(text: string): string {
  return text.replace(/"/g, "");
}

/** The packet's value of one part of a key. */
export type Subject =
  | { readonly is: "value"; readonly value: number | bigint; readonly text: string }
  /** A number from `offset` to `offset + mod - 1`, evenly distributed. */
  | { readonly is: "numgen"; readonly mode: string; readonly mod: number; readonly offset: number }
  /** A value that no dump contains; `ask` may still decide whether it is `text`. */
  | { readonly is: "undecidable"; readonly ask: (text: string) => Decision; readonly why: string }
  /** The packet has no such field, as UDP has no TCP flags: the rule does not match. */
  | { readonly is: "absent" };

/** An undecidable question, with an id if it is asked elsewhere too. */
export interface NamedDoubt extends Undecided {
  readonly id?: string;
}

export function known(value: number): Subject {
  return { is: "value", value, text: String(value) };
}

/** A value that no dump contains; `of` words the question for one candidate. */
export function undecidable(why: string, of: (text: string) => string = () => why): Subject {
  const ask = (text: string): NamedDoubt => ({ why: of(text), id: `${why} ${text}` });
  return { is: "undecidable", ask, why };
}

/** Whether the packet's value matches an element's part. */
export function isPart(subject: Subject, kind: Kind, text: string): Decision {
  switch (subject.is) {
    case "absent":
      return false;
    case "undecidable":
      return text === "*" ? true : subject.ask(text);
    case "numgen":
      return { why: `which of ${String(subject.mod)} numbers ${subject.mode} gives` };
    case "value": {
      if (text === "*") return true;
      const interval = intervalOf(kind, text);
      if (interval === null) return { why: `what "${text}" stands for` };
      return contains(interval, subject.value);
    }
  }
}

export function contains({ low, high }: Interval, value: number | bigint): boolean {
  return low <= value && value <= high;
}

/** The share of a numgen's numbers that are in an interval. */
export function shareOf(
  numgen: { readonly mod: number; readonly offset: number },
  interval: Interval,
): number {
  const low = Math.max(Number(interval.low), numgen.offset);
  const high = Math.min(Number(interval.high), numgen.offset + numgen.mod - 1);
  return Math.max(0, high - low + 1) / numgen.mod;
}
