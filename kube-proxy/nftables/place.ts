import type { Flow } from "../flow";
import { ofKubeProxy } from "../iptables/act";
import type { Meeting } from "../kernel";
import type { Chain, Rule, Table } from "./ruleset";
import type { Question } from "./question";

/** Where in a ruleset a packet is. */
export interface Place {
  readonly table: Table;
  /** The chain that the kernel called. */
  readonly base: Chain;
  readonly chain: Chain;
  readonly rule: Rule | null;
  readonly meeting: Meeting;
  /** How many chains have called each other. */
  readonly depth: number;
}

/** The name that upstream gives to kube-proxy's own tables, in both families. */
export function isKubeProxy(table: Table): boolean {
  return table.name === "kube-proxy" && (table.family === "ip" || table.family === "ip6");
}

/** Whether kube-proxy wrote the chain: in a table of its own, or by iptables-nft. */
export function isByKubeProxy({ table, chain }: Pick<Place, "table" | "chain">): boolean {
  return isKubeProxy(table) || (table.ofIptables && ofKubeProxy.test(chain.name));
}

export function tableName(table: Table): string {
  return `${table.family} ${table.name}`;
}

const longestName = 160;

/** A rule as a person would look for it: of one that lists a thousand endpoints, its beginning. */
export function ruleName({ table, chain, rule }: Place): string {
  const text = oneLine((rule?.text ?? "").slice(0, longestName + 1));
  const shown = text.length > longestName ? `${text.slice(0, longestName)}…` : text;
  return `table ${tableName(table)}, chain ${chain.name}: ${shown}`;
}

export function tell(place: Place, effect: string, doubt: string | null): void {
  const { meeting, table, chain, rule } = place;
  const perhaps = doubt === null ? effect : `perhaps (it cannot be decided ${doubt}): ${effect}`;
  meeting.path.step(tableName(table), chain.name, oneLine(rule?.text ?? ""), perhaps);
}

function oneLine(text: string): string {
  return /[\n\t]/.test(text) ? text.replace(/\s+/g, " ") : text;
}

/** kube-proxy compares a source for equality only to find a pod that reaches itself. */
export function ask(sign: string, flow: Flow, place: Place): Question {
  return { flow, meeting: place.meeting, ownEndpoint: isByKubeProxy(place) && sign === "==" };
}

const mostChoices = 8;

/** What a packet may get, each with its chance; of many only the first. */
export function choices(
  given: readonly { readonly what: string; readonly share: number }[],
): string {
  const told = given.map(({ what, share }) =>
    share === 1 ? what : `${what} with a chance of ${share.toFixed(4)}`,
  );
  return told.length > mostChoices
    ? `one of ${String(told.length)}, the first ${told[0]!}`
    : told.join(", ");
}
