import { DumpProblem } from "../../model/dump";
import {
  type Base,
  type Chain,
  type Element,
  looksLikeIptables,
  type NamedSet,
  type Ruleset,
  type Table,
} from "../../model/nftables";
import type { Rule } from "../../model/statement";
import { readElements } from "./elements";
import { fromJson } from "./json";
import { type Piece, Scanner } from "./scan";

const tableHead = /^(?:(?:add|create)\s+)?table\s+(?:(ip6?|inet|arp|bridge|netdev)\s+)?(\S+)$/;

const warning = /table (\S+) (\S+) is managed by iptables-nft/;

/**
 * What `nft list ruleset` and `nft list table` print, with or without -a, -j, -n, -s, -S and -y.
 * Throws a DumpProblem where a listing is cut off or contradicts itself.
 */
export function parse(text: string, file: string, firstLine: number): Ruleset {
  const listing = /^\s*\{/.test(text) ? fromJson(text, file, firstLine) : text;
  const scanner = new Scanner(listing, file, firstLine);
  const tables = new Map<string, Table>();
  for (;;) {
    const piece = scanner.next(true);
    if (piece.end === "eof") break;
    const head = tableHead.exec(unquote(piece.text));
    if (head === null || piece.end !== "{") {
      if (/^flush ruleset$/.test(piece.text)) continue;
      throw new DumpProblem(file, piece.line, '"table FAMILY NAME {"', piece.text || piece.end);
    }
    const family = head[1] ?? "ip";
    const name = `${family} ${head[2]!}`;
    const earlier = tables.get(name);
    if (earlier !== undefined) throw twice(file, piece.line, `table ${name}`, earlier.line);
    tables.set(name, readTable(scanner, family, head[2]!, piece.line));
  }
  for (const remark of scanner.remarks) {
    const managed = warning.exec(remark);
    const table = managed === null ? undefined : tables.get(`${managed[1]!} ${managed[2]!}`);
    if (table !== undefined)
      tables.set(`${table.family} ${table.name}`, { ...table, ofIptables: true });
  }
  return { file, tables };
}

function twice(file: string, line: number, what: string, firstLine: number): DumpProblem {
  return new DumpProblem(
    file,
    line,
    `one ${what}`,
    `a second one; the first is in line ${String(firstLine)}`,
    "keep one listing of it per folder",
  );
}

function readTable(scanner: Scanner, family: string, name: string, line: number): Table {
  const chains = new Map<string, Chain>();
  const sets = new Map<string, NamedSet>();
  let dormant = false;
  for (;;) {
    const piece = scanner.next(true);
    if (piece.end === "eof") throw scanner.cutOff("}", `table ${family} ${name}`);
    if (piece.end === "}") break;
    if (piece.end !== "{") {
      if (/^flags\b.*\bdormant\b/.test(piece.text)) dormant = true;
      continue;
    }
    const space = piece.text.indexOf(" ");
    const kind = piece.text.slice(0, Math.max(space, 0));
    const called = unquote(piece.text.slice(space + 1).trim());
    if (kind === "chain") {
      const earlier = chains.get(called);
      if (earlier !== undefined)
        throw twice(
          scanner.file,
          piece.line,
          `chain ${called} in table ${family} ${name}`,
          earlier.line,
        );
      chains.set(called, readChain(scanner, family, called, piece.line));
    } else if (kind === "set" || kind === "map") {
      const earlier = sets.get(called);
      if (earlier !== undefined)
        throw twice(
          scanner.file,
          piece.line,
          `${kind} ${called} in table ${family} ${name}`,
          earlier.line,
        );
      sets.set(called, readSet(scanner, called, kind === "map", piece.line));
    } else scanner.skipBlock(piece.text);
  }
  const ofIptables = looksLikeIptables(family, name, chains.values());
  return { family, name, line, dormant, ofIptables, chains, sets };
}

function readChain(scanner: Scanner, family: string, name: string, line: number): Chain {
  const rules: Rule[] = [];
  let base: Base | null = null;
  let policy: Base["policy"] = "accept";
  for (;;) {
    const piece = scanner.next(false);
    if (piece.end === "eof") throw scanner.cutOff("}", `chain ${name}`);
    if (piece.end === "}") break;
    if (/^type\s+\S+\s+hook\s/.test(piece.text)) base = readBase(scanner.file, piece, family);
    else if (/^policy\s/.test(piece.text)) policy = /drop/.test(piece.text) ? "drop" : "accept";
    else if (!/^comment\s+"[^"]*"$/.test(piece.text) && !/^flags\s/.test(piece.text)) {
      rules.push({ text: piece.text, line: piece.line });
    }
  }
  return { name, line, base: base && { ...(base as Base), policy }, rules };
}

function readBase(file: string, piece: Piece, family: string): Base {
  const head = /^type\s+(\S+)\s+hook\s+(\S+)\s.*?priority\s+(.+)$/.exec(piece.text);
  const priority = head === null ? null : readPriority(head[3]!, family);
  if (head === null || priority === null) {
    throw new DumpProblem(
      file,
      piece.line,
      "type, hook and priority (a number, or one of raw, mangle, dstnat, filter, security, srcnat with + or - a number)",
      piece.text,
    );
  }
  return { type: head[1]!, hook: head[2]!, priority, policy: "accept" };
}

function readSet(scanner: Scanner, name: string, map: boolean, line: number): NamedSet {
  let timeoutSeconds: number | null = null;
  let text = "";
  for (;;) {
    const piece = scanner.next(false);
    if (piece.end === "eof") throw scanner.cutOff("}", `${map ? "map" : "set"} ${name}`);
    if (piece.end === "}") break;
    const timeout = /^timeout\s+(\S+)$/.exec(piece.text);
    if (timeout !== null) timeoutSeconds = readSeconds(timeout[1]!);
    else if (/^elements\s*=/.test(piece.text)) text = piece.text.slice(piece.text.indexOf("=") + 1);
  }
  let elements: readonly Element[] | null = null;
  return { name, line, timeoutSeconds, elements: () => (elements ??= readElements(text)) };
}

/** Names are quoted where they would read as a word of nft's own. */
function unquote(text: string): string {
  return text.includes('"') ? text.replace(/"/g, "") : text;
}

const ofInternet = { raw: -300, mangle: -150, dstnat: -100, filter: 0, security: 50, srcnat: 100 };

const ofBridge = { dstnat: -300, filter: -200, out: 100, srcnat: 300 };

/** `-110`, `dstnat`, `srcnat - 5`, `filter + 10`; null for anything else. */
function readPriority(text: string, family: string): number | null {
  const parts = /^(?:(-?\d+)|([a-z]+)(?:\s*([+-])\s*(\d+))?)$/.exec(text.trim());
  if (parts === null) return null;
  const [, number, name, sign, offset] = parts;
  if (number !== undefined) return Number(number);
  const names: { readonly [name: string]: number } = family === "bridge" ? ofBridge : ofInternet;
  const base = names[name!];
  if (base === undefined) return null;
  return offset === undefined ? base : base + (sign === "-" ? -1 : 1) * Number(offset);
}

/** `3h`, `1m30s`, `10800s`, `1d2h`, `250ms`, or seconds alone. */
function readSeconds(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const parts = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(
    text,
  );
  if (parts === null || text === "") return null;
  const [weeks, days, hours, minutes, seconds, milliseconds] = parts
    .slice(1)
    .map((part) => Number(part ?? 0)) as [number, number, number, number, number, number];
  return (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds + milliseconds / 1000;
}
