import { beginsExpression } from "./read-expression";
import { readIdle } from "./read-idle";
import { readMatch } from "./read-match";
import { readNat } from "./read-nat";
import type { Rule } from "./ruleset";
import type { Statement, Verdict } from "./statement";
import { tokens, unquoted, Words } from "./tokens";

const read = new WeakMap<Rule, readonly Statement[]>();

/** What a rule says, read on its first visit. Words that are not known become statements that say so. */
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
    // What a person notes behind the end of a rule.
    if (ended && words.peek() === "#") break;
    const statement = readStatement(words);
    if (statement !== null) statements.push(statement);
  }
  return statements;
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
    return readOpen(words, start, 2, "how many connections there are");
  if (/^(limit|quota|meter)$/.test(first))
    return readOpen(words, start, 1, `whether the ${first} is reached`);
  if (readIdle(words)) return { kind: "idle" };
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
      kind: "away",
      text: words.since(start),
      why: why ?? `${first} takes it out of the rules`,
    };
  }
  if (beginsExpression(words)) return readMatch(words);
  skip(words);
  const text = words.since(start);
  return { kind: "open", text, why: `what "${text}" matches or does` };
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

function readOpen(words: Words, start: number, length: number, why: string): Statement {
  for (let i = 0; i < length; i++) words.next();
  while (!words.done && !beginnings.test(words.peek()) && !beginsExpression(words)) {
    if (words.braces() === null) words.next();
  }
  return { kind: "open", text: words.since(start), why };
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
    if (name === "comment") return { kind: "idle" };
    return {
      kind: "open",
      text: `xt match ${name}`,
      why: `what iptables' match ${name} says, which nft does not show`,
    };
  }
  if (/^(LOG|NFLOG|TCPMSS|TRACE|CHECKSUM|AUDIT)$/.test(name)) return { kind: "idle" };
  if (name === "REJECT") return { kind: "verdict", verdict: { kind: "reject", with: "" } };
  if (name === "MASQUERADE")
    return { kind: "nat", nat: { kind: "masquerade", address: null, port: null } };
  return {
    kind: "away",
    text: `xt target ${name}`,
    why: `what iptables' target ${name} does, nft does not show`,
  };
}
