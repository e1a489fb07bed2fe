import type { Elements, Expression } from "../../model/statement";
import { readElements } from "./elements";
import { unquoted, type Words } from "./tokens";

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
