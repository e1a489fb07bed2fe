import type { Element } from "../../model/nftables";
import type { Elements, Expression } from "../../model/statement";

/** Words that begin a selector of two words, such as `ip saddr`. */
const headers = new Set(
  "ip ip6 tcp udp udplite sctp dccp th icmp icmpv6 igmp ether vlan arp ah esp comp gre frag hbh dst srh mh".split(
    " ",
  ),
);

/** Selectors of meta that older listings write without the word. */
const bare = new Set(
  "mark iif oif iifname oifname iiftype oiftype iifgroup oifgroup skuid skgid nftrace pkttype cpu cgroup rtclassid priority length protocol l4proto nfproto".split(
    " ",
  ),
);

/** Whether an expression begins here, and not a value or a statement. */
export function beginsExpression(words: Words): boolean {
  const word = words.peek();
  return (
    headers.has(word) ||
    bare.has(word) ||
    /^(meta|ct|fib|numgen|jhash|symhash|socket|rt|exthdr|\()$/.test(word) ||
    /^@(ll|nh|th|ih)$/.test(word)
  );
}

const operators: { readonly [word: string]: string } = {
  "&": "&",
  and: "&",
  "|": "|",
  or: "|",
  "^": "^",
  xor: "^",
  "<<": "<<",
  lshift: "<<",
  ">>": ">>",
  rshift: ">>",
};

const looseness = ["|", "^", "&", "<<>>"];

/** `ip daddr . meta l4proto . th dport`, `meta mark & 0xff`, `numgen random mod 3 map { … }`. */
export function readExpression(words: Words): Expression {
  const parts = [readBinary(words, 0)];
  while (words.take(".")) parts.push(readBinary(words, 0));
  const key: Expression = parts.length === 1 ? parts[0]! : { kind: "concat", parts };
  return words.take("map") ? { kind: "map", key, data: readData(words) } : key;
}

function readBinary(words: Words, level: number): Expression {
  if (level === looseness.length) return readOperand(words);
  let left = readBinary(words, level + 1);
  for (;;) {
    const op = operators[words.peek()];
    if (op === undefined || !looseness[level]!.includes(op)) return left;
    words.next();
    left = { kind: "binary", op, left, right: readBinary(words, level + 1) };
  }
}

function readOperand(words: Words): Expression {
  if (words.take("(")) {
    const inner = readFlags(words);
    words.take(")");
    return asBits(inner) ?? inner;
  }
  return beginsExpression(words) ? readSelector(words) : { kind: "literal", text: words.next() };
}

/** Within parentheses; `fin,syn` there is another way to write `fin | syn`. */
function readFlags(words: Words): Expression {
  let left = readExpression(words);
  while (words.take(",")) {
    left = { kind: "binary", op: "|", left, right: readExpression(words) };
  }
  return left;
}

/** `fin | syn` as `fin,syn`, the other way that bits are listed. */
function asBits(expression: Expression): Expression | null {
  if (expression.kind === "literal") return expression;
  if (expression.kind !== "binary" || expression.op !== "|") return null;
  const [left, right] = [asBits(expression.left), asBits(expression.right)];
  if (left?.kind !== "literal" || right?.kind !== "literal") return null;
  return { kind: "literal", text: `${left.text},${right.text}` };
}

function readSelector(words: Words): Expression {
  const first = words.next();
  if (first === "numgen") return readNumgen(words, words.next());
  if (first === "symhash") return readNumgen(words, first);
  if (first === "jhash") {
    readExpression(words);
    return readNumgen(words, first);
  }
  if (bare.has(first)) return { kind: "selector", name: `meta ${first}` };
  if (first.startsWith("@")) return { kind: "selector", name: readRaw(words, first) };
  if (first === "fib") return { kind: "selector", name: readFib(words) };
  if (first === "ct") return { kind: "selector", name: readConntrack(words) };
  if (first === "rt" && /^ip6?$/.test(words.peek())) {
    return { kind: "selector", name: `rt ${words.next()} ${words.next()}` };
  }
  if (words.peek() === "option")
    return { kind: "selector", name: `${first} ${words.next()} ${words.next()} ${words.next()}` };
  return { kind: "selector", name: `${first} ${words.next()}` };
}

/** `@nh,96,32`: bits at a place. */
function readRaw(words: Words, first: string): string {
  const start = words.position - 1;
  while (words.take(",")) words.next();
  return first + words.since(start).slice(first.length).replace(/ /g, "");
}

/** `fib daddr . iif type`. */
function readFib(words: Words): string {
  const start = words.position;
  words.next();
  while (words.take(".")) words.next();
  words.next();
  return `fib ${words.since(start)}`;
}

/** `ct state`, `ct original ip daddr`, `ct reply proto-dst`. */
function readConntrack(words: Words): string {
  const start = words.position;
  if (/^(original|reply)$/.test(words.next())) {
    if (/^(ip|ip6)$/.test(words.next())) words.next();
  }
  return `ct ${words.since(start)}`;
}

function readNumgen(words: Words, mode: string): Expression {
  let mod = 1;
  let offset = 0;
  for (;;) {
    if (words.take("mod")) mod = Number(words.next());
    else if (words.take("offset")) offset = Number(words.next());
    else if (words.take("seed")) words.next();
    else return { kind: "numgen", mode, mod, offset };
  }
}

/** What stands behind `vmap` and `map`. */
export function readData(words: Words): Elements {
  const written = words.braces();
  if (written !== null) return { kind: "anonymous", elements: readElements(written) };
  return { kind: "named", name: unquoted(words.next().replace(/^@/, "")) };
}

const word =
  /\s*(?:([{}(),;])|((?:==|!=|<=|>=|<<|>>|[<>&|^])(?=[\s"\w(]|$))|(!)(?=\s)|(#)|((?:"[^"]*"|[^\s{}(),;"])+))/y;

/**
 * The words of a rule: braces, commas and operators stand alone, everything else is cut at blanks.
 */
export function tokens(text: string): string[] {
  const words: string[] = [];
  word.lastIndex = 0;
  for (;;) {
    const found = word.exec(text);
    if (found === null) return words;
    words.push(found[0].trimStart());
  }
}

/** Walks over the words of a rule. */
export class Words {
  position = 0;

  constructor(private readonly words: readonly string[]) {}

  get done(): boolean {
    return this.position >= this.words.length;
  }

  peek(ahead = 0): string {
    return this.words[this.position + ahead] ?? "";
  }

  next(): string {
    return this.words[this.position++] ?? "";
  }

  /** Takes the next words if they are these. */
  take(...expected: readonly string[]): boolean {
    if (!expected.every((each, ahead) => this.peek(ahead) === each)) return false;
    this.position += expected.length;
    return true;
  }

  /** `{ … }` as text, with the braces inside; null when the next word opens none. */
  braces(): string | null {
    if (this.peek() !== "{") return null;
    const start = this.position;
    let depth = 0;
    do {
      const each = this.next();
      if (each === "{") depth++;
      if (each === "}") depth--;
    } while (depth > 0 && !this.done);
    return this.since(start);
  }

  since(start: number): string {
    return this.words.slice(start, this.position).join(" ");
  }
}

export function unquoted(text: string): string {
  return text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** Where an element's options begin: everything between its key and its value. */
const options =
  /\s+(?:comment\s+"|timeout\s|expires\s|counter\b|limit\s|quota\s|last\s|ct count\s)/;

/** Cuts `{ a . b comment "x" : goto c, d-e }` (with or without its braces) into elements. */
export function readElements(text: string): Element[] {
  const elements: Element[] = [];
  const inner = text.trimStart().startsWith("{")
    ? text.slice(text.indexOf("{") + 1, text.lastIndexOf("}"))
    : text;
  let start = 0;
  let quoted = false;
  let depth = 0;
  for (let i = 0; i <= inner.length; i++) {
    const code = i === inner.length ? 44 : inner.charCodeAt(i);
    if (code === 34) quoted = !quoted;
    else if (quoted && i < inner.length) continue;
    else if (code === 123) depth++;
    else if (code === 125) depth--;
    else if (code === 44 && depth === 0) {
      const element = inner.slice(start, i).trim();
      if (element !== "") elements.push(readElement(element));
      start = i + 1;
    }
  }
  return elements;
}

function readElement(text: string): Element {
  const colon = text.includes('"') ? colonOutsideQuotes(text) : colonAt(text);
  const left = colon < 0 ? text : text.slice(0, colon).trimEnd();
  const end = left.search(options);
  const key = end < 0 ? left : left.slice(0, end);
  return {
    key: key.split(" . ").map((part) => part.trim()),
    value: colon < 0 ? null : text.slice(colon + 1).trim(),
    comment: end < 0 ? null : (/\scomment\s+"([^"]*)"/.exec(left)?.[1] ?? null),
  };
}

/** The colon before a value has a blank behind it; those of IPv6 addresses have not. */
function colonAt(text: string): number {
  const spaced = text.indexOf(" : ");
  return spaced >= 0 ? spaced + 1 : text.search(/:\s/);
}

function colonOutsideQuotes(text: string): number {
  return colonAt(text.replace(/"[^"]*"/g, (quoted) => "_".repeat(quoted.length)));
}
