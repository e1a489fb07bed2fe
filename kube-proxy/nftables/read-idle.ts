import type { Words } from "./tokens";

/** What follows a word of a statement, and how many words that is. */
type Options = { readonly [word: string]: number };

const log: Options = { prefix: 1, level: 1, group: 1, snaplen: 1, "queue-threshold": 1 };
const counter: Options = { packets: 1, bytes: 1, name: 1 };

/** Passes over a statement that counts, logs or prepares something, and lets the packet go on as it is. */
export function readIdle(words: Words): boolean {
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
