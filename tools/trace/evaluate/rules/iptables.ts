import { builtIn, type Chain, type Iptables, ofKubeProxy, type Table } from "../../model/iptables";
import { commentOf, statementsOf } from "../../read/iptables/rule";
import type { BaseChain, Hook, RuleTable } from "../context";
import { baseChain } from "./walk";
import { candidates } from "./candidates";
import { missingIptablesChain } from "./missing-chains";

const priorities: Readonly<Record<string, number>> = {
  raw: -300,
  mangle: -150,
  filter: 0,
  security: 50,
};

/** The built-in chains of all tables. */
export const baseChains = (iptables: Iptables): BaseChain[] =>
  [...iptables.tables.values()].flatMap((table) =>
    (builtIn[table.name] ?? []).flatMap((name) => {
      const chain = table.chains.get(name) ?? supposed(table, name);
      if (chain === null) return [];
      const hook = name.toLowerCase() as Hook;
      const nat = table.name === "nat";
      const base = baseChain(ruleTable(iptables, table, chain), name, {
        hook,
        priority: nat ? (/^(prerouting|output)$/.test(hook) ? -100 : 100) : priorities[table.name]!,
        nat,
        policy: chain.policy === "DROP" ? "drop" : "accept",
      });
      return [{ ...base, walk: noting(base, assumptions(table, chain)) }];
    }),
  );

const noting =
  ({ walk }: BaseChain, sentences: readonly string[]): BaseChain["walk"] =>
  (flow, context) => {
    sentences.forEach((sentence) => context.path.note(sentence));
    return walk(flow, context);
  };

/** Assumptions about a built-in chain that the dump lacks, or whose policy it lacks. */
function assumptions(table: Table, chain: Chain): string[] {
  const place = `hain ${chain.name} of table ${table.name}`;
  if (!table.chains.has(chain.name)) {
    const to = chain.rules.map((rule) => rule.text.slice(rule.text.indexOf("-j ") + 3)).join(", ");
    return [`C${place} is not in the dump; it is taken to go to ${to}, as kube-proxy makes it.`];
  }
  return chain.policy === null && table.name === "filter" && chain.columns === null
    ? [`The dump does not show the policy of c${place}; it is taken for ACCEPT.`]
    : [];
}

/** `base` is the built-in chain, which a partial dump may lack. */
function ruleTable(iptables: Iptables, table: Table, base: Chain): RuleTable {
  const chainOf = (name: string): Chain | undefined =>
    name === base.name ? base : table.chains.get(name);
  return {
    name: table.name,
    sets: new Map(),
    rulesOf(name, flow) {
      const chain = chainOf(name);
      return chain === undefined ? null : candidates(chain, flow);
    },
    statementsOf: (rule, name) => statementsOf(rule, chainOf(name)!, iptables.file),
    isKubeProxys: (name) => ofKubeProxy.test(name),
    missing: (name, flow, place) => missingIptablesChain(name, flow, place, iptables),
    commentOf: (rule, name) => commentOf(rule, chainOf(name)!, iptables.file),
    reasonOf: () => null,
  };
}

function kubeProxyIn(table: Table): boolean {
  return (
    table.chains.has("KUBE-SERVICES") ||
    [...table.chains.keys()].some((name) => name.startsWith("KUBE-SVC-"))
  );
}

/** kube-proxy's jumps from built-in chains, in order, for partial dumps that lack them. */
const jumps: Readonly<Record<string, readonly string[]>> = {
  "nat PREROUTING": ["KUBE-SERVICES"],
  "nat OUTPUT": ["KUBE-SERVICES"],
  "nat POSTROUTING": ["KUBE-POSTROUTING"],
  "filter INPUT": [
    "KUBE-IPVS-FILTER",
    "KUBE-PROXY-FIREWALL",
    "KUBE-NODE-PORT",
    "KUBE-NODEPORTS",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-FIREWALL",
  ],
  "filter FORWARD": [
    "KUBE-PROXY-FIREWALL",
    "KUBE-FORWARD",
    "KUBE-SERVICES",
    "KUBE-EXTERNAL-SERVICES",
  ],
  "filter OUTPUT": [
    "KUBE-IPVS-OUT-FILTER",
    "KUBE-PROXY-FIREWALL",
    "KUBE-SERVICES",
    "KUBE-FIREWALL",
  ],
};

function supposed(table: Table, name: string): Chain | null {
  const has = (chain: string): boolean =>
    table.chains.has(chain) ||
    (chain === "KUBE-POSTROUTING" && table.name === "nat" && kubeProxyIn(table));
  const to = (jumps[`${table.name} ${name}`] ?? []).filter(has);
  if (to.length === 0) return null;
  return {
    name,
    policy: null,
    columns: null,
    rules: to.map((each) => ({ text: `-A ${name} -j ${each}`, line: 0 })),
  };
}
