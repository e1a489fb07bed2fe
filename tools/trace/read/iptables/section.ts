import { type Columns, withoutComments } from "../../model/iptables";
import type { Rule } from "../../model/statement";

/** A run of chains that belong to one table, before it is known to which. */
export interface Section {
  table: string | null;
  family: 4 | 6 | null;
  whole: boolean;
  readonly line: number;
  readonly chains: Map<string, DraftChain>;
}

export interface DraftChain {
  readonly name: string;
  policy: string | null;
  readonly rules: Rule[];
  readonly columns: Columns | null;
}

const evidence: readonly (readonly [string, RegExp])[] = [
  ["raw", /\s(NOTRACK\b|CT\b.*\bnotrack)/],
  ["mangle", /\s(TPROXY|TCPMSS|DSCP|TOS|TTL|HL|CHECKSUM)\b/],
  [
    "nat",
    /\s(DNAT|SNAT|MASQUERADE|REDIRECT|NETMAP)\b|\sKUBE-(MARK-MASQ|MARK-DROP|SVC-|SVL-|SEP-|FW-|XLB-|EXT-)|--dst-type LOCAL -j KUBE-NODEPORT|^KUBE-NODEPORTS? .*dst-type LOCAL/,
  ],
  ["filter", /\s(REJECT|DROP)\b/],
];

const ofChain: readonly (readonly [string, RegExp])[] = [
  ["nat", /^KUBE-(SVC-|SVL-|SEP-|FW-|XLB-|EXT-|MARK-|POSTROUTING|LOAD-BALANCER)/],
  ["filter", /^KUBE-(FORWARD|FIREWALL|EXTERNAL-SERVICES|PROXY-FIREWALL|IPVS-|SOURCE-RANGES)/],
];

/**
 * Which table a section of a cut-down dump was cut from, inferred from its chains and targets; null
 * when nothing shows it.
 */
export function inferTable(section: Section): string | null {
  const names = [...section.chains.keys()];
  const rules = [...section.chains.values()].flatMap((chain) =>
    chain.rules.map(({ text }) => withoutComments(text)),
  );
  if (rules.some((rule) => evidence[0]![1].test(rule))) return "raw";
  if (section.chains.has("FORWARD")) return section.chains.has("POSTROUTING") ? "mangle" : "filter";
  if (names.some((name) => ofChain[0]![1].test(name))) return "nat";
  for (const [table, target] of evidence) {
    if (table !== "filter" && rules.some((rule) => target.test(rule))) return table;
  }
  if (names.some((name) => ofChain[1]![1].test(name))) return "filter";
  if (names.some((name) => name === "PREROUTING" || name === "POSTROUTING")) return "nat";
  // In filter kube-proxy asks for new connections before it goes there, in nat it need not.
  if (
    section.chains
      .get("OUTPUT")
      ?.rules.some((rule) => /KUBE-SERVICES/.test(rule.text) && !/ctstate/.test(rule.text))
  )
    return "nat";
  if (rules.some((rule) => evidence[3]![1].test(rule))) return "filter";
  if (section.chains.has("INPUT")) return "filter";
  return section.chains.has("KUBE-SERVICES") ? "nat" : null;
}

const address6 = /(^|[\s![])([0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}([/\]\s]|$)/i;

const address4 = /(^|[\s!:])\d{1,3}(\.\d{1,3}){3}([/:\s]|$)/;

const mac = /(?<![:\w])[0-9a-f]{2}(:[0-9a-f]{2}){5}(?![:\w])/gi;

/**
 * Comments carry times and names with colons, and MAC addresses have them; neither says anything of
 * the family.
 */
export function inferFamily(section: Section): 4 | 6 | null {
  for (const chain of section.chains.values()) {
    for (const rule of chain.rules) {
      const bare = withoutComments(rule.text).replace(mac, "");
      if (address6.test(bare)) return 6;
      if (address4.test(bare)) return 4;
    }
  }
  return null;
}
