import { readData, readExpression } from "./read-expression";
import type { Elements, Expression, Statement } from "./statement";
import type { Words } from "./tokens";

const signs: { readonly [word: string]: string } = {
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

/** Selectors whose values are bits: `established,related` and a lone `new` are there as soon as one is set. */
const bits = /^(ct (state|status|label|event)|tcp flags)$/;

/** `ip saddr 10.0.0.0/8`, `ct state established,related`, `… vmap @service-ips`, `meta mark set …`. */
export function readMatch(words: Words): Statement {
  const left = readExpression(words);
  if (words.take("vmap")) return { kind: "vmap", key: left, data: readData(words) };
  if (left.kind === "selector" && words.take("set")) {
    return { kind: "set", name: left.name, value: readExpression(words) };
  }
  const written = signs[words.peek()];
  if (written !== undefined) words.next();
  const ofBits = left.kind === "selector" && bits.test(left.name);
  if (words.peek() === "{" || /^@[^,]/.test(words.peek())) {
    return { kind: "match", left, sign: written ?? "==", right: readData(words) };
  }
  const right = readValue(words, left);
  if (ofBits && words.take("/")) return masked(words, left, written ?? "==", right);
  const sign = written ?? (ofBits ? "in" : "==");
  return {
    kind: "match",
    left,
    sign,
    right: { kind: "written", elements: [{ key: right, value: null }] },
  };
}

/** `tcp flags syn / fin,syn`: of the bits behind the stroke, those before it. */
function masked(words: Words, left: Expression, sign: string, right: readonly string[]): Statement {
  const mask: Expression = { kind: "literal", text: readValue(words, left).join(",") };
  const both: Expression = { kind: "binary", sign: "&", left, right: mask };
  return { kind: "match", left: both, sign, right: one(right) };
}

function one(key: readonly string[]): Elements {
  return { kind: "written", elements: [{ key, value: null }] };
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
