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
import { readElements } from "./expression";
import { fromJson } from "./json";

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

/** A statement with its line, and what ended it. */
interface Piece {
  readonly text: string;
  readonly line: number;
  readonly end: "{" | "}" | ";" | "eof";
}

const NEWLINE = 10;

const QUOTE = 34;

const HASH = 35;

const SEMICOLON = 59;

const OPEN = 123;

const CLOSE = 125;

/** Cuts a listing into statements and blocks, without understanding what they say. */
class Scanner {
  private position = 0;
  /** Of the place that is read next. */
  line: number;
  /** Comments that stand alone, such as nft's warnings. */
  readonly remarks: string[] = [];

  constructor(
    private readonly text: string,
    readonly file: string,
    firstLine: number,
  ) {
    this.line = firstLine;
  }

  /**
   * The next statement; with `blocks` a brace opens a block, without it belongs to the statement.
   */
  next(blocks: boolean): Piece {
    const text = this.text;
    const length = text.length;
    let start = -1;
    let stop = -1;
    let startLine = this.line;
    let depth = 0;
    for (; this.position < length; this.position++) {
      const code = text.charCodeAt(this.position);
      if (code === NEWLINE) {
        this.line++;
        if (start < 0 || depth > 0) continue;
        this.position++;
        return this.piece(start, stop, startLine, ";");
      }
      if (code <= 32) continue;
      if (code === HASH) {
        const end = this.endOfLine();
        const remark = text.slice(this.position, end);
        this.position = end - 1;
        if (start < 0) this.remarks.push(remark);
        // Within a rule, what is not its handle stands for a match that nft could not write.
        else if (!/^#\s*handle \d+\s*$/.test(remark)) {
          stop = this.position + 1 - (/\s*# handle \d+\s*$/.exec(remark)?.[0].length ?? 0);
        }
        continue;
      }
      if (depth === 0 && (code === CLOSE || code === SEMICOLON || (code === OPEN && blocks))) {
        if (code === SEMICOLON && start < 0) continue;
        if (code === CLOSE && start >= 0) return this.piece(start, stop, startLine, ";");
        this.position++;
        const end = code === OPEN ? "{" : code === CLOSE ? "}" : ";";
        return this.piece(start, stop, start < 0 ? this.line : startLine, end);
      }
      if (start < 0) {
        start = this.position;
        startLine = this.line;
      }
      if (code === OPEN) depth++;
      else if (code === CLOSE) depth--;
      else if (code === QUOTE) this.skipQuoted();
      stop = this.position + 1;
    }
    if (depth > 0) throw this.cutOff("}", text.slice(start, start + 60));
    return this.piece(start, stop, startLine, start < 0 ? "eof" : ";");
  }

  /** Leaves a block whose content does not matter. */
  skipBlock(what: string): void {
    for (let depth = 1; depth > 0;) {
      const piece = this.next(true);
      if (piece.end === "eof") throw this.cutOff("}", what);
      if (piece.end === "{") depth++;
      if (piece.end === "}") depth--;
    }
  }

  cutOff(expected: string, after: string): DumpProblem {
    const line = this.text.endsWith("\n") ? this.line - 1 : this.line;
    return new DumpProblem(
      this.file,
      line,
      `"${expected}" that ends ${after.split("\n")[0]!.trim()}`,
      "the end of the text",
      "the listing is cut off; take it again, whole",
    );
  }

  private piece(start: number, stop: number, line: number, end: Piece["end"]): Piece {
    return { text: start < 0 ? "" : this.text.slice(start, stop), line, end };
  }

  private endOfLine(): number {
    const end = this.text.indexOf("\n", this.position);
    return end < 0 ? this.text.length : end;
  }

  private skipQuoted(): void {
    const opened = this.position;
    for (this.position++; this.position < this.text.length; this.position++) {
      const code = this.text.charCodeAt(this.position);
      if (code === QUOTE) return;
      if (code === NEWLINE) break;
    }
    throw this.cutOff('"', this.text.slice(opened, opened + 40));
  }
}
