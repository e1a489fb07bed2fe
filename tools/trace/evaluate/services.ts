import type { NodeDump } from "../model/dump";
import type { Chain, Table } from "../model/nftables";
import { type Range, rangeOf } from "../model/packet";
import type { Rule, SetElement, Statement } from "../model/statement";
import { statementsOf as ofIptables } from "../read/iptables/rule";
import { statementsOf as ofNftables, statementsOf } from "../read/nftables/rule";
import { rulesFor } from "./rules/candidates";
import { contains, devicePattern, intervalOf } from "./rules/match/kinds";

type Match = Extract<Statement, { kind: "match" }>;

/** kube-proxy's own table for a family. */
const ownTable = ({ nftables }: NodeDump, family: 4 | 6): Table | undefined =>
  nftables?.tables.get(family === 4 ? "ip kube-proxy" : "ip6 kube-proxy");

function matchesOf(rule: Chain["rules"][number], selector: RegExp): Match[] {
  return statementsOf(rule).filter(
    (statement): statement is Match =>
      statement.kind === "match" &&
      statement.left.kind === "selector" &&
      selector.test(statement.left.name),
  );
}

function written(match: Match): readonly SetElement[] {
  return match.right.kind === "anonymous" ? match.right.elements : [];
}

/** What kube-proxy's sets and rules say of addresses. */
interface KnownAddresses {
  readonly clusterAddresses: ReadonlySet<string>;
  readonly serviceRanges: readonly string[];
  readonly nodeAddresses: ReadonlySet<string>;
}

const cached = new WeakMap<Table, KnownAddresses>();

/**
 * Whether kube-proxy's rules take `address` for a cluster IP: no interface has one, unless IPVS
 * does. In nftables mode that is so of addresses that no Service has, too.
 */
export function isClusterAddress(dump: NodeDump, family: 4 | 6, address: string): boolean {
  if (dump.ipvs === null && isInIptables(dump, family, address)) return true;
  const table = ownTable(dump, family);
  if (table === undefined) return false;
  const { clusterAddresses, serviceRanges } = addressesIn(table);
  if (clusterAddresses.has(address)) return true;
  const value = intervalOf("address", address)?.low;
  return (
    value !== undefined &&
    serviceRanges.some((range) => contains(intervalOf("address", range)!, value))
  );
}

function isInIptables({ iptables4, iptables6 }: NodeDump, family: 4 | 6, address: string): boolean {
  const iptables = family === 4 ? iptables4 : iptables6;
  return ["nat", "filter"].some((name) => {
    const chain = iptables?.tables.get(name)?.chains.get("KUBE-SERVICES");
    return (
      chain !== undefined &&
      rulesFor(chain, address).some((rule) => /cluster IP|has no endpoints/.test(rule.text))
    );
  });
}

/** Whether kube-proxy names `address` as one of the node's own that has NodePorts. */
export function isNodePortAddress(dump: NodeDump, family: 4 | 6, address: string): boolean {
  const table = ownTable(dump, family);
  return table !== undefined && addressesIn(table).nodeAddresses.has(address);
}

function addressesIn(table: Table): KnownAddresses {
  const known = cached.get(table);
  if (known !== undefined) return known;
  const set = table.sets.get("cluster-ips");
  const unallocated =
    table.chains.get("cluster-ips-check")?.rules.filter(({ text }) => /\bdrop\b/.test(text)) ?? [];
  const all: KnownAddresses = {
    clusterAddresses: new Set(
      set === undefined ? straightToEndpoints(table) : firsts(set.elements()),
    ),
    serviceRanges: unallocated
      .flatMap((rule) => matchesOf(rule, /^ip6? daddr$/))
      .flatMap((match) => firsts(written(match)))
      .filter((range) => intervalOf("address", range) !== null),
    nodeAddresses: new Set(firsts(table.sets.get("nodeport-ips")?.elements() ?? [])),
  };
  cached.set(table, all);
  return all;
}

/**
 * kube-proxy before 1.31 has no set of cluster IPs; theirs are the entries that lead straight to
 * endpoints.
 */
function straightToEndpoints(table: Table): string[] {
  const entries = table.sets.get("service-ips")?.elements() ?? [];
  return firsts(entries.filter(({ value }) => /^goto service-/.test(value ?? "")));
}

function firsts(elements: readonly SetElement[]): string[] {
  return elements.map(({ key }) => key[0]!);
}

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
