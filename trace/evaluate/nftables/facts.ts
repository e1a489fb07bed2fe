import { type Chain, isKubeProxy, type Ruleset, type Table } from "../../model/nftables";
import type { Statement, WrittenElement } from "../../model/statement";
import { statementsOf } from "../../read/nftables/rule";
import { intervalOf } from "../rules/kinds";
import { contains } from "../rules/subject";

type Match = Extract<Statement, { kind: "match" }>;

/** kube-proxy's own table for a family. */
function ownTable(ruleset: Ruleset, family: 4 | 6): Table | undefined {
  const table = ruleset.tables.get(family === 4 ? "ip kube-proxy" : "ip6 kube-proxy");
  return table !== undefined && isKubeProxy(table) ? table : undefined;
}

/**
 * Where pods live, or by which interfaces they send, as the rules show that distinguish them.
 */
export function podsOf(
  ruleset: Ruleset,
  family: 4 | 6,
): { readonly ranges: string[]; readonly devices: string[] } {
  const ranges: string[] = [];
  const devices: string[] = [];
  const byIptables = ruleset.tables.get(family === 4 ? "ip nat" : "ip6 nat");
  for (const chain of (ownTable(ruleset, family) ?? byIptables)?.chains.values() ?? []) {
    for (const match of detectors(chain)) {
      const texts = written(match).map(({ key }) => key[0]!);
      if (match.left.kind === "selector" && match.left.name === "meta iifname") {
        devices.push(...texts.map((text) => text.replace(/"/g, "").replace(/\*$/, "+")));
      } else ranges.push(...texts);
    }
    if (ranges.length + devices.length > 0) break;
  }
  return { ranges, devices };
}

/** `ip saddr != PODS` before a mark, `ip saddr PODS goto service-…` in chains of Services. */
function* detectors(chain: Chain): Generator<Match> {
  const sign = /^(services$|service-|KUBE-SV[CL]-)/.test(chain.name)
    ? "!="
    : /^(external-|KUBE-(EXT|XLB)-)/.test(chain.name)
      ? "=="
      : null;
  if (sign === null) return;
  for (const rule of chain.rules.filter(({ text }) => /saddr|iifname/.test(text))) {
    for (const match of matchesOf(rule, /^ip6? saddr$|^meta iifname$/)) {
      if (match.sign === sign && match.right.kind === "written") yield match;
    }
  }
}

function matchesOf(rule: Chain["rules"][number], selector: RegExp): Match[] {
  return statementsOf(rule).filter(
    (statement): statement is Match =>
      statement.kind === "match" &&
      statement.left.kind === "selector" &&
      selector.test(statement.left.name),
  );
}

function written(match: Match): readonly WrittenElement[] {
  return match.right.kind === "written" ? match.right.elements : [];
}

/** What kube-proxy's sets and rules say of addresses. */
interface KnownAddresses {
  readonly clusterAddresses: ReadonlySet<string>;
  readonly serviceRanges: readonly string[];
  readonly nodeAddresses: ReadonlySet<string>;
}

const cached = new WeakMap<Table, KnownAddresses>();

/** Whether kube-proxy takes `address` for a cluster IP, given away or not: no interface has one. */
export function isClusterAddress(ruleset: Ruleset, family: 4 | 6, address: string): boolean {
  const table = ownTable(ruleset, family);
  if (table === undefined) return false;
  const { clusterAddresses, serviceRanges } = addressesIn(table);
  if (clusterAddresses.has(address)) return true;
  const value = intervalOf("address", address)?.low;
  return (
    value !== undefined &&
    serviceRanges.some((range) => contains(intervalOf("address", range)!, value))
  );
}

/** Whether kube-proxy names `address` as one of the node's own that has NodePorts. */
export function isNodePortAddress(ruleset: Ruleset, family: 4 | 6, address: string): boolean {
  const table = ownTable(ruleset, family);
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

function firsts(elements: readonly WrittenElement[]): string[] {
  return elements.map(({ key }) => key[0]!);
}
