import type { Chain } from "../../model/iptables";
import type { Rule } from "../../model/statement";
import type { Flow } from "../flow";

/** Indexes of a chain's rules by their only destination or port, and of all other rules. */
interface Index {
  readonly byKey: ReadonlyMap<string, readonly number[]>;
  readonly others: readonly number[];
}

const indexes = new WeakMap<Chain, Index>();

const few = 16;

/**
 * The rules that may match the packet, in order. Long chains have a rule per Service, and few are
 * for this one.
 */
export function candidates(chain: Chain, flow: Flow): readonly Rule[] {
  if (chain.rules.length <= few) return chain.rules;
  const index = indexes.get(chain) ?? indexOf(chain);
  indexes.set(chain, index);
  const own = [
    ...(index.byKey.get(flow.destination) ?? []),
    ...(index.byKey.get(`:${flow.port}`) ?? []),
  ];
  if (own.length === 0 && index.others.length === chain.rules.length) return chain.rules;
  return [...own, ...index.others].sort((a, b) => a - b).map((at) => chain.rules[at]!);
}

/** Rules of `chain` whose only destination is `address`. */
export function rulesFor(chain: Chain, address: string): readonly Rule[] {
  const index = indexes.get(chain) ?? indexOf(chain);
  indexes.set(chain, index);
  return (index.byKey.get(address) ?? []).map((at) => chain.rules[at]!);
}

function indexOf(chain: Chain): Index {
  const byKey = new Map<string, number[]>();
  const others: number[] = [];
  chain.rules.forEach((rule, at) => {
    const key = chain.columns === null ? keyOf(rule.text) : keyOfListed(rule.text);
    if (key === null) others.push(at);
    else if (byKey.has(key)) byKey.get(key)!.push(at);
    else byKey.set(key, [at]);
  });
  return { byKey, others };
}

const whole = /^([0-9a-fA-F.:]+)(\/32|\/128)?$/;

/**
 * Read without taking the rule apart; what is quoted before an option would be a comment that looks
 * like one.
 */
function keyOf(text: string): string | null {
  const destination = optionOf(text, " -d ");
  if (destination !== null) {
    const address = whole.exec(destination);
    const family = address?.[1]!.includes(":") ? "/128" : "/32";
    return address !== null && (address[2] ?? family) === family ? address[1]! : null;
  }
  const port = optionOf(text, " --dport ");
  return port !== null && /^\d+$/.test(port) && !text.includes(" -d ") ? `:${port}` : null;
}

function optionOf(text: string, name: string): string | null {
  const at = text.indexOf(name);
  if (at < 0 || text.endsWith("!", at) || text[at + name.length] === "!") return null;
  if (text.slice(0, at).replace(/\\./g, "").split('"').length % 2 === 0) return null;
  const end = text.indexOf(" ", at + name.length);
  return text.slice(at + name.length, end < 0 ? undefined : end);
}

/**
 * The destination is the last column; addresses that stand alone there are two, or one behind
 * `anywhere`.
 */
function keyOfListed(text: string): string | null {
  const columns = text.split(/\/\*/)[0]!.trim().split(/\s+/);
  const any = /^(anywhere|0\.0\.0\.0\/0|::\/0)$/;
  const source = columns.findIndex(
    (word) => any.test(word) || /^!?[0-9a-f.:]*[.:][0-9a-f.:]*(\/\d+)?$/i.test(word),
  );
  const destination = source < 0 ? undefined : columns[source + 1];
  return destination !== undefined && /^\d+(\.\d+){3}$/.test(destination) ? destination : null;
}
