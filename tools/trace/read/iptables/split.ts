import { isIP } from "node:net";

import { DumpProblem } from "../../model/dump";
import { builtIn, type Columns, withoutComments } from "../../model/iptables";
import type { Rule } from "../../model/statement";

/** A run of chains that belong to one table, before it is known to which. */
export interface Section {
  table: string | null;
  family: 4 | 6 | null;
  whole: boolean;
  readonly line: number;
  readonly chains: Map<string, DraftChain>;
}

interface DraftChain {
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

const title = /^\s*Chain (\S+) \((?:policy (\w+)(?: [^)]*)?|[-\d]+ references?)\)/;

const head =
  /^\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot\s+opt\s+(in\s+out\s+)?source\s+destination/;

const anyBuiltIn = new Set(Object.values(builtIn).flat());

export function isListing(text: string): boolean {
  return text.split("\n").some((line) => title.test(line));
}

/**
 * `iptables -L` in each of its forms, also pasted with bullets and blank lines, as runs of chains
 * of one table each.
 */
export function splitListing(text: string, file: string, firstLine: number): Section[] {
  const sections: Section[] = [];
  let section: Section | null = null;
  let chain: DraftChain | null = null;
  let policy: string | null = null;
  let name: string | null = null;
  let line = firstLine - 1;
  for (const raw of text.split("\n")) {
    line += 1;
    const at = raw.replace(/^\s*[•*·]\s+/, "").trimEnd();
    if (at.trim() === "") continue;
    const titled = title.exec(at);
    if (titled !== null) {
      expectHead(name, chain, file, line, at);
      [name, policy, chain] = [titled[1]!, titled[2] ?? null, null];
      continue;
    }
    const headed = head.exec(at);
    if (headed !== null) {
      if (name === null)
        throw new DumpProblem(file, line, "`Chain NAME (…)` before the columns", at.trim());
      const columns: Columns = {
        verbose: headed[3] !== undefined,
        numbered: headed[1] !== undefined,
      };
      chain = { name, policy, rules: [], columns };
      if (section === null || section.chains.has(name) || startsAnother(section, name)) {
        section = { table: null, family: null, whole: false, line, chains: new Map() };
        sections.push(section);
      }
      section.chains.set(name, chain);
      continue;
    }
    if (chain === null) {
      throw new DumpProblem(
        file,
        line,
        name === null ? "`Chain NAME (…)`" : "the line `target prot opt source destination`",
        at.trim(),
      );
    }
    chain.rules.push({ text: at.trim() === at ? at : keepEmptyTarget(at), line });
  }
  expectHead(name, chain, file, line, "");
  return sections;
}

function expectHead(
  name: string | null,
  chain: DraftChain | null,
  file: string,
  line: number,
  got: string,
): void {
  if (name === null || chain !== null) return;
  throw new DumpProblem(
    file,
    line,
    `the columns of chain ${name}`,
    got,
    "the listing is cut off: take it again",
  );
}

/** A listing of a whole table begins with the chains that are built in. */
function startsAnother(section: Section, name: string): boolean {
  return anyBuiltIn.has(name) && [...section.chains.keys()].some((other) => !anyBuiltIn.has(other));
}

/** A rule without a target leaves its column blank; one space keeps that visible. */
function keepEmptyTarget(text: string): string {
  return /^\s{8,}/.test(text) ? ` ${text.trim()}` : text.trim();
}

/**
 * `iptables-save` and `iptables -S`, also with lines cut out of them, as runs of chains of one
 * table each.
 */
export function splitSave(text: string, file: string, firstLine: number): Section[] {
  const sections: Section[] = [];
  let current: Section | null = null;
  let headed = false;
  let family: 4 | 6 | null = null;
  let before: "chain" | "rule" | "user rule" | null = null;
  const begin = (table: string | null, line: number): Section => {
    const section: Section = { table, family, whole: false, line, chains: new Map() };
    sections.push(section);
    before = null;
    return section;
  };
  const chainOf = (section: Section, name: string): DraftChain => {
    const chain = section.chains.get(name) ?? { name, policy: null, rules: [], columns: null };
    section.chains.set(name, chain);
    return chain;
  };
  let line = firstLine - 1;
  let last = "";
  for (const raw of text.split("\n")) {
    line += 1;
    const at = raw.trim();
    if (at === "") continue;
    if (at.startsWith("#")) {
      if (/Generated by ip6tables/i.test(at)) family = 6;
      if (/Generated by iptables/i.test(at)) family = 4;
      if (/Completed on/i.test(at)) family = null;
      continue;
    }
    if (at.startsWith("*")) {
      if (current !== null && headed) truncated(file, line, current.table ?? "", at);
      current = begin(at.slice(1).trim(), line);
      headed = true;
    } else if (at === "COMMIT") {
      if (current !== null) current.whole = headed;
      current = null;
      headed = false;
    } else if (at.startsWith(":")) {
      if (current === null || (!headed && before !== "chain" && before !== null))
        current = begin(null, line);
      const words = at.slice(1).split(/\s+/);
      const policy = words[1];
      if (words[0] === undefined || policy === undefined) {
        throw new DumpProblem(file, line, "`:CHAIN POLICY [packets:bytes]`", at);
      }
      chainOf(current, words[0]).policy = policy === "-" ? null : policy;
      before = "chain";
    } else if (/^-[PN]\s/.test(at)) {
      const [option, name, policy] = at.split(/\s+/);
      if (name === undefined || (option === "-P" && policy === undefined)) {
        throw new DumpProblem(file, line, "`-N CHAIN` or `-P CHAIN POLICY`", at);
      }
      if (current === null || (before !== "chain" && before !== null)) current = begin(null, line);
      chainOf(current, name).policy = option === "-P" ? policy! : null;
      before = "chain";
    } else {
      const start = at.startsWith("[") ? at.indexOf("-A ") : 0;
      if (start < 0 || !at.startsWith("-A ", start)) {
        throw new DumpProblem(
          file,
          line,
          "a line of iptables-save (`*table`, `:CHAIN`, `-A CHAIN …`, `COMMIT`)",
          at,
        );
      }
      checkAddresses(at, file, line);
      const space = at.indexOf(" ", start + 3);
      const name = at.slice(start + 3, space < 0 ? undefined : space);
      const builtin = anyBuiltIn.has(name);
      if (current === null || (!headed && before === "user rule" && builtin))
        current = begin(null, line);
      chainOf(current, name).rules.push({ text: start === 0 ? at : at.slice(start), line });
      before = before === "user rule" || !builtin ? "user rule" : "rule";
    }
    last = at;
  }
  if (current !== null && headed) truncated(file, line, current.table ?? "", last);
  return sections;
}

function truncated(file: string, line: number, table: string, got: string): never {
  const fix = "the dump is cut off: take it again, or leave the `*` line out with grep";
  throw new DumpProblem(file, line, `COMMIT at the end of table ${table}`, got, fix);
}

/** What nearly all rules have; the others take longer to check. */
const plain =
  /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?=\d)|(?=[/:]|$))){4}(\/(3[0-2]|[12]?\d)|:\d{1,4})?$/;

const options = / (?:-[sd]|--to-destination) (?:! )?(\S+)/g;

/**
 * What iptables-save prints for an address is one; a misprint would match nothing, and nobody would
 * see why.
 */
function checkAddresses(rule: string, file: string, line: number): void {
  const wrong = misprinted(rule) && misprinted(withoutComments(rule));
  if (wrong)
    throw new DumpProblem(
      file,
      line,
      "an address such as 10.0.0.1, 10.0.0.0/8 or 10.0.0.1:80",
      wrong,
    );
}

function misprinted(rule: string): string | undefined {
  for (const [, text = ""] of rule.matchAll(options)) {
    if (!text.split(",").every(isAddress)) return text;
  }
  return undefined;
}

/** `10.0.0.1`, `10.0.0.0/255.0.0.0`, `10.0.0.1:80`, `[fd00::1]:80`, `:80`, and ranges of them. */
function isAddress(text: string): boolean {
  if (plain.test(text) || text.split("-").every((each) => isIP(each) > 0)) return true;
  const [address = "", mask] = text.split("/");
  if (mask !== undefined) return isIP(address) > 0 && isMask(mask, isIP(address));
  const socket = /^(?:\[(.+)\]|([^[\]:]*)):(\d+)(?:-\d+)?$/.exec(text);
  if (socket === null || Number(socket[3]) > 65_535) return false;
  const ends = socket[1] ?? socket[2];
  return ends === "" || ends!.split("-").every((each) => isIP(each) > 0);
}

const isMask = (mask: string, family: number): boolean =>
  /^\d+$/.test(mask) ? Number(mask) <= (family === 4 ? 32 : 128) : isIP(mask) === family;
