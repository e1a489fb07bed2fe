import { builtIn, type Chain, type Iptables, type Table } from "../../model/iptables";
import type { BaseChain, Hook, HookContext } from "../context";
import { end, type Flow } from "../flow";
import { walkChain } from "./walk";

const priorities: Readonly<Record<string, number>> = {
  raw: -300,
  mangle: -150,
  filter: 0,
  security: 50,
};

/** The chains that the kernel calls, table by table. */
export function baseChains(iptables: Iptables): BaseChain[] {
  return [...iptables.tables.values()].flatMap((table) =>
    (builtIn[table.name] ?? []).flatMap((name) => {
      const written = table.chains.get(name);
      const chain = written ?? supposed(table, name);
      if (chain === null) return [];
      const hook = name.toLowerCase() as Hook;
      return [
        {
          table: table.name,
          name,
          hook,
          priority:
            table.name === "nat"
              ? hook === "prerouting" || hook === "output"
                ? -100
                : 100
              : priorities[table.name]!,
          nat: table.name === "nat",
          walk: (flow: Flow, context: HookContext) =>
            walkTable(iptables, table, chain, written === undefined, flow, context),
        },
      ];
    }),
  );
}

function walkTable(
  iptables: Iptables,
  table: Table,
  chain: Chain,
  assumed: boolean,
  flow: Flow,
  context: HookContext,
): Flow[] {
  if (assumed) {
    const to = chain.rules.map((rule) => rule.text.slice(rule.text.indexOf("-j ") + 3)).join(", ");
    context.path.note(
      `Chain ${chain.name} of table ${table.name} is not in the dump; it is taken to go to ${to}, as kube-proxy makes it.`,
    );
  }
  const { ended, returned } = walkChain(chain, flow, { iptables, table, context, depth: 0 });
  return [...ended, ...returned.map((each) => byPolicy(table, chain, each, context))];
}

function byPolicy(table: Table, chain: Chain, flow: Flow, context: HookContext): Flow {
  if (chain.policy === "DROP") {
    context.path.step(
      table.name,
      chain.name,
      "policy DROP",
      "drops the packet: no rule of the chain took it",
    );
    return end(
      flow,
      "drop",
      `The policy of chain ${chain.name} in table ${table.name} is DROP, and no rule accepts the packet before.`,
    );
  }
  if (chain.policy === null && table.name === "filter" && chain.columns === null) {
    context.path.note(
      `The dump does not show the policy of chain ${chain.name} in table ${table.name}; it is taken for ACCEPT.`,
    );
  }
  return flow;
}

function kubeProxyIn(table: Table): boolean {
  return (
    table.chains.has("KUBE-SERVICES") ||
    [...table.chains.keys()].some((name) => name.startsWith("KUBE-SVC-"))
  );
}

/**
 * kube-proxy's own jumps, in the order in which it makes them stand, for dumps that were cut down
 * to its chains.
 */
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
