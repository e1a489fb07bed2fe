import type { NodeDump } from "../../model/dump";
import type { Rule, Statement } from "../../model/statement";
import { type Range, rangeOf } from "../../model/range";
import { statementsOf as ofIptables } from "../../read/iptables/rule";
import { statementsOf as ofNftables } from "../../read/nftables/rule";
import { devicePattern } from "../rules/match/kinds";

/** Where pods are: ranges of addresses, or interfaces that they come by. */
export interface Pods {
  readonly ranges: readonly Range[];
  readonly devices: readonly string[];
}

/** One of kube-proxy's chains, and how its rules are read. */
interface Rules {
  readonly chain: string;
  readonly rules: readonly Rule[];
  /** What a rule's text has that may compare a source or an interface. */
  readonly worthReading: RegExp;
  statementsOf(rule: Rule): readonly Statement[];
}

const known = new WeakMap<NodeDump, Map<4 | 6, Pods>>();

/** Where pods are, by the first chain of kube-proxy that distinguishes pods from others. */
export function podsOf(dump: NodeDump, family: 4 | 6): Pods {
  const before = known.get(dump)?.get(family);
  if (before !== undefined) return before;
  const pods = look(dump, family);
  known.set(dump, (known.get(dump) ?? new Map<4 | 6, Pods>()).set(family, pods));
  return pods;
}

function look(dump: NodeDump, family: 4 | 6): Pods {
  for (const chain of chainsOf(dump, family)) {
    const matches = detectors(chain);
    const ranges = matches
      .filter(({ name }) => name !== "meta iifname")
      .map(({ value }) => rangeOf(value))
      // A single address would be an endpoint that reaches itself.
      .filter((range) => range?.family === family && range.low !== range.high);
    const devices = matches.filter(({ name }) => name === "meta iifname");
    if (ranges.length + devices.length > 0) {
      return {
        ranges: ranges.filter((range) => range !== null),
        devices: devices.map(({ value }) => devicePattern(value)),
      };
    }
  }
  return { ranges: [], devices: [] };
}

function* chainsOf(dump: NodeDump, family: 4 | 6): Generator<Rules> {
  const iptables = family === 4 ? dump.iptables4 : dump.iptables6;
  for (const table of iptables?.tables.values() ?? []) {
    for (const chain of table.chains.values()) {
      yield {
        chain: chain.name,
        rules: chain.rules,
        worthReading: chain.columns === null ? / -[si] / : /KUBE-MARK-MASQ|\/\d/,
        statementsOf: (rule) => ofIptables(rule, chain, iptables!.file),
      };
    }
  }
  const [ip, { nftables }] = [family === 4 ? "ip" : "ip6", dump];
  const table = nftables?.tables.get(`${ip} kube-proxy`) ?? nftables?.tables.get(`${ip} nat`);
  for (const { name, rules } of table?.chains.values() ?? []) {
    yield { chain: name, rules, worthReading: /saddr|iifname/, statementsOf: ofNftables };
  }
}

/** Chains with rules for all but pods, which mark for masquerade, and with rules for pods only. */
const operators: readonly (readonly [RegExp, string])[] = [
  [/^(services$|service-|KUBE-SERVICES$|KUBE-SV[CL]-)/, "!="],
  [/^(external-|KUBE-(EXT|XLB)-|KUBE-FORWARD$)/, "=="],
];

/** What the chain's rules compare a packet's source or interface with to find out pods. */
function detectors({
  chain,
  rules,
  worthReading,
  statementsOf,
}: Rules): { name: string; value: string }[] {
  const op = operators.find(([names]) => names.test(chain))?.[1];
  if (op === undefined) return [];
  const read = rules.filter(({ text }) => worthReading.test(text)).flatMap(statementsOf);
  return read.flatMap((statement) => {
    if (statement.kind !== "match" || statement.op !== op) return [];
    const { left, right } = statement;
    if (left.kind !== "selector" || right.kind !== "anonymous") return [];
    if (!/^(ip6? saddr|meta iifname)$/.test(left.name)) return [];
    return right.elements.map(({ key: [value = ""] }) => ({ name: left.name, value }));
  });
}
