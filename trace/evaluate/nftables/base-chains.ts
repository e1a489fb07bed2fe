import { type Base, type Chain, type Ruleset, type Table, tableName } from "../../model/nftables";
import type { BaseChain, Hook } from "../context";
import { end } from "../flow";
import type { Place } from "./place";
import { walkChain } from "./walk";

const hooks: readonly string[] = ["prerouting", "input", "forward", "output", "postrouting"];

/** The chains that the kernel calls for packets of a family, of the tables that are `asked`. */
export function baseChains(
  ruleset: Ruleset,
  family: 4 | 6,
  asked: (table: Table) => boolean,
): BaseChain[] {
  const families = family === 4 ? ["ip", "inet"] : ["ip6", "inet"];
  return [...ruleset.tables.values()]
    .filter((table) => families.includes(table.family) && !table.dormant && asked(table))
    .flatMap((table) => [...table.chains.values()].flatMap((chain) => baseChain(table, chain)));
}

/**
 * The kernel asks all chains of type nat at one place of the hook; their own priorities only order
 * them among themselves.
 */
function orderOf({ type, hook, priority }: Base): number {
  if (type !== "nat") return priority;
  const place = hook === "prerouting" || hook === "output" ? -100 : 100;
  return place + (priority - place) / 2 ** 33;
}

function baseChain(table: Table, chain: Chain): BaseChain[] {
  const { base } = chain;
  if (base === null || !hooks.includes(base.hook)) return [];
  return [
    {
      table: tableName(table),
      name: chain.name,
      hook: base.hook as Hook,
      priority: orderOf(base),
      nat: base.type === "nat",
      walk: (flow, context) => {
        const place: Place = { table, base: chain, chain, rule: null, context, depth: 0 };
        return walkChain(chain.name, flow, place).map(({ flow: way, on }) => {
          if (on === "out" || base.policy === "accept" || way.verdict !== null) return way;
          context.path.step(tableName(table), chain.name, "policy drop", "drop");
          return end(
            way,
            "drop",
            `The policy of chain ${chain.name} of table ${tableName(table)} is drop.`,
          );
        });
      },
    },
  ];
}
