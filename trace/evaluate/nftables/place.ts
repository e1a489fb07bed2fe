import { ofKubeProxy } from "../../model/iptables";
import { type Chain, isKubeProxy, type Rule, type Table, tableName } from "../../model/nftables";
import type { HookContext } from "../context";
import type { Flow } from "../flow";
import type { Question } from "./select";

/** Where in a ruleset a packet is. */
export interface Place {
  readonly table: Table;
  /** The chain that the kernel called. */
  readonly base: Chain;
  readonly chain: Chain;
  readonly rule: Rule | null;
  readonly context: HookContext;
  /** How many chains have called each other. */
  readonly depth: number;
}

/** Whether kube-proxy wrote the chain: in a table of its own, or by iptables-nft. */
export function isByKubeProxy({ table, chain }: Pick<Place, "table" | "chain">): boolean {
  return isKubeProxy(table) || (table.ofIptables && ofKubeProxy.test(chain.name));
}

const longestName = 160;

/** A rule as a person would look for it: of one that lists a thousand endpoints, its beginning. */
export function ruleName({ table, chain, rule }: Place): string {
  const text = oneLine((rule?.text ?? "").slice(0, longestName + 1));
  const shown = text.length > longestName ? `${text.slice(0, longestName)}…` : text;
  return `table ${tableName(table)}, chain ${chain.name}: ${shown}`;
}

export function addStep(place: Place, effect: string, doubt: string | null): void {
  const { context, table, chain, rule } = place;
  const perhaps = doubt === null ? effect : `perhaps (it cannot be decided ${doubt}): ${effect}`;
  context.path.step(tableName(table), chain.name, oneLine(rule?.text ?? ""), perhaps);
}

function oneLine(text: string): string {
  return /[\n\t]/.test(text) ? text.replace(/\s+/g, " ") : text;
}

/** kube-proxy compares a source for equality only to find a pod that reaches itself. */
export function ask(sign: string, flow: Flow, place: Place): Question {
  return { flow, context: place.context, ownEndpoint: isByKubeProxy(place) && sign === "==" };
}

const mostChoices = 8;

/** What a packet may get, each with its chance; of many only the first. */
export function choices(
  given: readonly { readonly what: string; readonly share: number }[],
): string {
  const texts = given.map(({ what, share }) =>
    share === 1 ? what : `${what} with a chance of ${share.toFixed(4)}`,
  );
  return texts.length > mostChoices
    ? `one of ${String(texts.length)}, the first ${texts[0]!}`
    : texts.join(", ");
}
