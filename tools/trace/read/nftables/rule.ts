import type { Elements, Expression, Nat, Rule, Statement, Verdict } from "../../model/statement";
import { beginsExpression, readData, readExpression, tokens, unquoted, Words } from "./expression";

const read = new WeakMap<Rule, readonly Statement[]>();

/** A rule's statements, parsed on first use. Unknown ones become undecidable. */
export function statementsOf(rule: Rule): readonly Statement[] {
  let statements = read.get(rule);
  if (statements === undefined) {
    statements = readStatements(rule.text);
    read.set(rule, statements);
  }
  return statements;
}

export function readStatements(text: string): Statement[] {
  const words = new Words(tokens(text));
  const statements: Statement[] = [];
  while (!words.done) {
    const last = statements.at(-1);
    const ended = last?.kind === "verdict" || last?.kind === "nat";
    // A comment after the rule.
    if (ended && words.peek() === "#") break;
    const statement = readStatement(words);
    if (statement !== null) statements.push(statement);
  }
  return statements;
}

/** The rule's comment; null if it has none. */
export function commentOf({ text }: Rule): string | null {
  const words = tokens(text);
  const at = words.indexOf("comment");
  return at < 0 ? null : unquoted(words[at + 1] ?? "");
}

/** The verdict that a map holds: `goto service-…`, `drop`. */
export function readVerdict(text: string): Verdict | null {
  const statement = readStatement(new Words(tokens(text)));
  return statement?.kind === "verdict" ? statement.verdict : null;
}

function readStatement(words: Words): Statement | null {
  const start = words.position;
  const first = words.peek();
  if (/^(accept|drop|continue|return)$/.test(first)) {
    words.next();
    return { kind: "verdict", verdict: { kind: first as "accept" } };
  }
  if (/^(jump|goto)$/.test(first) && words.peek(1) !== "{") {
    words.next();
    return { kind: "verdict", verdict: { kind: first as "jump", chain: unquoted(words.next()) } };
  }
  if (first === "reject")
    return { kind: "verdict", verdict: { kind: "reject", with: readReject(words) } };
  if (/^(dnat|snat|masquerade|redirect)$/.test(first)) return readNat(words);
  if (words.take("comment")) {
    words.next();
    return null;
  }
  if (first === "xt") return readForeign(words);
  if (first === "ct" && words.peek(1) === "count")
    return readUndecidable(words, start, 2, "how many connections there are");
  if (/^(limit|quota|meter)$/.test(first))
    return readUndecidable(words, start, 1, `whether the ${first} is reached`);
  if (readNoop(words)) return { kind: "noop" };
  if (words.take("notrack")) return { kind: "notrack" };
  if (/^(add|update|delete)$/.test(first) && words.peek(1).startsWith("@")) {
    words.next();
    const set = words.next().slice(1);
    words.braces();
    return { kind: "update", set };
  }
  if (/^(queue|tproxy|synproxy|fwd)$/.test(first)) {
    skip(words);
    const why = { queue: "a program decides on it", tproxy: "a proxy on the node takes it" }[first];
    return {
      kind: "untraceable",
      text: words.since(start),
      why: why ?? `${first} takes it out of the rules`,
    };
  }
  if (beginsExpression(words)) return readMatch(words);
  skip(words);
  const text = words.since(start);
  return { kind: "undecidable", text, why: `what "${text}" matches or does` };
}

/** Words that begin a statement; those before, if not understood, end there. */
const beginnings =
  /^(accept|drop|continue|return|jump|goto|reject|counter|log|dnat|snat|masquerade|redirect|limit|comment|meta|notrack|xt)$/;

/** Goes on to where a statement begins that may be understood. */
function skip(words: Words): void {
  words.next();
  while (!words.done && !beginnings.test(words.peek())) {
    if (words.peek() === "#") break;
    if (words.braces() === null) words.next();
  }
}

function readUndecidable(words: Words, start: number, length: number, why: string): Statement {
  for (let i = 0; i < length; i++) words.next();
  while (!words.done && !beginnings.test(words.peek()) && !beginsExpression(words)) {
    if (words.braces() === null) words.next();
  }
  return { kind: "undecidable", text: words.since(start), why };
}

function readReject(words: Words): string {
  words.next();
  if (!words.take("with")) return "";
  const type = words.next();
  if (type === "tcp") return `${type} ${words.next()}`;
  words.take("type");
  return `${type} ${words.next()}`;
}

/** `xt match "recent"`, `xt target "LOG"`: what nft knows of iptables' extensions is their name. */
function readForeign(words: Words): Statement {
  words.next();
  const what = words.next();
  const name = unquoted(words.next());
  if (what === "match") {
    if (name === "comment") return { kind: "noop" };
    return {
      kind: "undecidable",
      text: `xt match ${name}`,
      why: `what iptables' match ${name} says, which nft does not show`,
    };
  }
  if (/^(LOG|NFLOG|TCPMSS|TRACE|CHECKSUM|AUDIT)$/.test(name)) return { kind: "noop" };
  if (name === "REJECT") return { kind: "verdict", verdict: { kind: "reject", with: "" } };
  if (name === "MASQUERADE")
    return { kind: "nat", nat: { kind: "masquerade", address: null, port: null } };
  return {
    kind: "untraceable",
    text: `xt target ${name}`,
    why: `what iptables' target ${name} does, nft does not show`,
  };
}

const operators: { readonly [word: string]: string } = {
  "==": "==",
  eq: "==",
  "!=": "!=",
  ne: "!=",
  "<": "<",
  lt: "<",
  "<=": "<=",
  le: "<=",
  ">": ">",
  gt: ">",
  ">=": ">=",
  ge: ">=",
  "!": "!",
};

/**
 * Selectors whose values are bits: `established,related` and a lone `new` are there as soon as one
 * is set.
 */
const bits = /^(ct (state|status|label|event)|tcp flags)$/;

/**
 * `ip saddr 10.0.0.0/8`, `ct state established,related`, `… vmap @service-ips`, `meta mark set …`.
 */
function readMatch(words: Words): Statement {
  const left = readExpression(words);
  if (words.take("vmap")) return { kind: "vmap", key: left, data: readData(words) };
  if (left.kind === "selector" && words.take("set")) {
    return { kind: "set", name: left.name, value: readExpression(words) };
  }
  const written = operators[words.peek()];
  if (written !== undefined) words.next();
  const ofBits = left.kind === "selector" && bits.test(left.name);
  if (words.peek() === "{" || /^@[^,]/.test(words.peek())) {
    return { kind: "match", left, op: written ?? "==", right: readData(words) };
  }
  const right = readValue(words, left);
  if (ofBits && words.take("/")) return masked(words, left, written ?? "==", right);
  const op = written ?? (ofBits ? "in" : "==");
  return {
    kind: "match",
    left,
    op,
    right: { kind: "anonymous", elements: [{ key: right, value: null }] },
  };
}

/** `tcp flags syn / fin,syn`: of the bits behind the stroke, those before it. */
function masked(words: Words, left: Expression, op: string, right: readonly string[]): Statement {
  const mask: Expression = { kind: "literal", text: readValue(words, left).join(",") };
  const both: Expression = { kind: "binary", op: "&", left, right: mask };
  return { kind: "match", left: both, op, right: one(right) };
}

function one(key: readonly string[]): Elements {
  return { kind: "anonymous", elements: [{ key, value: null }] };
}

/** One value: parts with dots between where the left side has them, and a list of bits as `a,b`. */
function readValue(words: Words, left: Expression): string[] {
  const parts = [readPart(words)];
  while (left.kind === "concat" && words.take(".")) parts.push(readPart(words));
  return parts;
}

function readPart(words: Words): string {
  const enclosed = words.take("(");
  let text = words.next();
  while (/^(,|\||or)$/.test(words.peek())) {
    words.next();
    text += `,${words.next()}`;
  }
  if (enclosed) words.take(")");
  return text;
}

/**
 * `dnat ip to numgen random mod 2 map { … }`, `dnat to 10.0.0.1:80`, `masquerade fully-random`,
 * `redirect to :8080`.
 */
function readNat(words: Words): Statement {
  const kind = words.next() as Nat["kind"];
  const start = words.position;
  words.take("ip6");
  words.take("ip");
  words.take("prefix");
  if (words.take("addr")) words.take(".", "port");
  if (!words.take("to")) {
    // Older listings leave the word out.
    words.position = start;
    if (!beginsTarget(words.peek())) return finish(words, { kind, address: null, port: null });
  }
  if (words.peek().startsWith(":")) {
    return finish(words, { kind, address: null, port: literal(words.next().slice(1)) });
  }
  const address = beginsExpression(words) ? readExpression(words) : literal(words.next());
  if (address.kind === "literal") {
    const split = /^\[(.+)\](?::(.+))?$|^([^:]+):([^:]+)$/.exec(address.text);
    if (split !== null) {
      const port = split[2] ?? split[4];
      const text = (split[1] ?? split[3]!).replace(/[[\]]/g, "");
      return finish(words, {
        kind,
        address: literal(text),
        port: port === undefined ? null : literal(port),
      });
    }
  }
  const port =
    words.peek().startsWith(":") && words.peek().length > 1 ? literal(words.next().slice(1)) : null;
  return finish(words, { kind, address, port });
}

function beginsTarget(word: string): boolean {
  return /^[[\d:@]/.test(word) || word.includes("::");
}

function literal(text: string): Expression {
  return { kind: "literal", text };
}

/** NAT flags do not affect where the packet goes. */
function finish(words: Words, nat: Nat): Statement {
  while (/^(random|fully-random|persistent|netmap|,)/.test(words.peek())) words.next();
  return { kind: "nat", nat };
}

/** What follows a word of a statement, and how many words that is. */
type Options = { readonly [word: string]: number };

const log: Options = { prefix: 1, level: 1, group: 1, snaplen: 1, "queue-threshold": 1 };

const counter: Options = { packets: 1, bytes: 1, name: 1 };

/** Skips a statement that does not affect where the packet goes. */
function readNoop(words: Words): boolean {
  if (words.take("counter")) return readOptions(words, counter);
  if (words.take("log")) {
    readOptions(words, log);
    while (words.take("flags")) readFlags(words);
    return true;
  }
  if (words.take("last")) return readOptions(words, { used: 1 });
  if (words.take("dup")) return readOptions(words, { to: 1, device: 1 });
  if (words.take("flow")) return readOptions(words, { add: 1, offload: 1 });
  if (
    words.peek() === "ct" &&
    /^(helper|timeout|expectation)$/.test(words.peek(1)) &&
    words.peek(2) === "set"
  ) {
    words.position += 4;
    return true;
  }
  return false;
}

function readOptions(words: Words, options: Options): boolean {
  for (let count = options[words.peek()]; count !== undefined; count = options[words.peek()]) {
    words.position += 1 + count;
  }
  return true;
}

/** `all`, `skuid`, `tcp sequence,options`. */
function readFlags(words: Words): void {
  if (/^(tcp|ip)$/.test(words.next())) words.next();
  while (words.take(",")) words.next();
}
