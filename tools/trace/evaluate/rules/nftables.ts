import { ofKubeProxy } from "../../model/iptables";
import {
  type Base,
  type Chain,
  isKubeProxy,
  type Ruleset,
  type Table,
  tableName,
} from "../../model/nftables";
import type { Rule, Statement } from "../../model/statement";
import { commentOf, statementsOf } from "../../read/nftables/rule";
import type { BaseChain, Hook, RuleTable } from "../context";
import { missingBaseChains, missingNftablesChain, withoutTerseSets } from "./missing-chains";
import { baseChain } from "./walk";

const hooks: readonly string[] = ["prerouting", "input", "forward", "output", "postrouting"];

/** The registered base chains for packets of a family, of those tables that `asked` accepts. */
export function baseChains(
  ruleset: Ruleset,
  family: 4 | 6,
  asked: (table: Table) => boolean,
): BaseChain[] {
  const families = family === 4 ? ["ip", "inet"] : ["ip6", "inet"];
  return [...ruleset.tables.values()]
    .filter((table) => families.includes(table.family) && !table.dormant && asked(table))
    .map(withoutTerseSets)
    .flatMap((table) => [
      ...[...table.chains.values()].flatMap(({ name, base }) =>
        base === null || !hooks.includes(base.hook) ? [] : [called(table, name, base)],
      ),
      ...missingBaseChains(table).map((chain) => assumed(table, chain)),
    ]);
}

const called = (table: Table, name: string, base: Base, rules?: readonly Rule[]): BaseChain =>
  baseChain(ruleTable(table, rules && { name, rules }), name, {
    hook: base.hook as Hook,
    priority: orderOf(base),
    nat: base.type === "nat",
    policy: base.policy,
  });

function assumed(table: Table, { name, base, rules }: Chain & { readonly base: Base }): BaseChain {
  const chain = called(table, name, base, rules);
  const to = rules.map(({ text }) => text.replace("jump ", "")).join(" and ");
  return {
    ...chain,
    walk(flow, context) {
      context.path.note(
        `Chain ${name} of table ${tableName(table)} is not in the dump; it is taken to go to ${to}, as kube-proxy makes it.`,
      );
      return chain.walk(flow, context);
    },
  };
}

/**
 * All chains of type nat run at one fixed priority of the hook; their own priorities only order
 * them among themselves.
 */
function orderOf({ type, hook, priority }: Base): number {
  if (type !== "nat") return priority;
  const place = hook === "prerouting" || hook === "output" ? -100 : 100;
  return place + (priority - place) / 2 ** 33;
}

/** `base` is the base chain, which a partial dump may lack. */
const ruleTable = (table: Table, base?: Pick<Chain, "name" | "rules">): RuleTable => ({
  name: tableName(table),
  sets: table.sets,
  rulesOf: (chain) => (chain === base?.name ? base.rules : table.chains.get(chain)?.rules) ?? null,
  statementsOf(rule, chain) {
    const statements = statementsOf(rule);
    return table.ofIptables && ofKubeProxy.test(chain) && statements.every(isMatch)
      ? [...statements, ...targetOf(chain)]
      : statements;
  },
  isKubeProxys: (chain) => isKubeProxy(table) || (table.ofIptables && ofKubeProxy.test(chain)),
  missing: (chain, flow, place) => missingNftablesChain(chain, flow, place, table),
  commentOf,
  reasonOf: (verdict, name) =>
    (isKubeProxy(table) &&
      reasons.find((each) => each.verdict === verdict && each.by.test(name))?.why) ||
    null,
});

const isMatch = ({ kind }: Statement): boolean =>
  kind === "match" || kind === "noop" || kind === "undecidable";

/**
 * kube-proxy writes no rule without a target, but nft has no words for some that iptables has. Only
 * in one chain it cannot be but one.
 */
const targetOf = (chain: string): Statement[] =>
  chain === "KUBE-POSTROUTING"
    ? [
        {
          kind: "note",
          sentence:
            "nft does not show what the last rule of KUBE-POSTROUTING does; it is taken to masquerade, as kube-proxy writes it.",
        },
        { kind: "nat", nat: { kind: "masquerade", address: null, port: null } },
      ]
    : [
        {
          kind: "untraceable",
          text: "a target of iptables",
          why: "nft does not show what it does; take `iptables-save`",
        },
      ];

/** Why kube-proxy drops or rejects by a map of its own, or in a chain of its own. */
const reasons: readonly { readonly verdict: string; readonly by: RegExp; readonly why: string }[] =
  [
    { verdict: "reject", by: /^no-endpoint-/, why: "The Service has no endpoints" },
    {
      verdict: "drop",
      by: /^no-endpoint-/,
      why: "The Service's traffic policy is Local and it has no endpoint on this node",
    },
    {
      verdict: "drop",
      by: /^firewall-/,
      why: "The source is in none of the Service's source ranges",
    },
    { verdict: "reject", by: /^cluster-ips-check$/, why: "The cluster IP has no such port" },
    {
      verdict: "drop",
      by: /^cluster-ips-check$/,
      why: "The address is in the range of Services, and no Service has it",
    },
  ];
