import { beginsExpression, readExpression } from "./read-expression";
import type { Expression, Nat, Statement } from "./statement";
import type { Words } from "./tokens";

/** `dnat ip to numgen random mod 2 map { … }`, `dnat to 10.0.0.1:80`, `masquerade fully-random`, `redirect to :8080`. */
export function readNat(words: Words): Statement {
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

/** How ports are chosen does not change where the packet goes. */
function finish(words: Words, nat: Nat): Statement {
  while (/^(random|fully-random|persistent|netmap|,)/.test(words.peek())) words.next();
  return { kind: "nat", nat };
}
