import type { NodeDump } from "../model/dump";
import type { Chain, Table } from "../model/nftables";
import type { Statement, SetElement } from "../model/statement";
import { statementsOf } from "../read/nftables/rule";
import { rulesFor } from "./rules/candidates";
import { intervalOf } from "./rules/match/kinds";
import { contains } from "./rules/match/subject";

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
