import type { LoggedRequest } from "../../../local-azure/arm/requests";
import type { Operation } from "../../../local-azure/daemon/operation-log";

/** A request of a good run, findable in another run of the same. */
export interface Request {
  readonly method: string;
  /** Regular expression over its id, in which what a run makes up is left open. */
  readonly id: string;
  /** Which of those that look the same, counted from 1. */
  readonly nth: number;
  /** For people: `PUT virtualMachines/zoned-dev-cp-1`. */
  readonly title: string;
  /** ARM's type, or the type in the URN. */
  readonly type: string;
}

const reads = new Set(["GET"]);

/** All that a run asked Azure and other plugins to change, in the order in which it asked. */
export const writesIn = (
  azure: readonly LoggedRequest[],
  operations: readonly Operation[],
): Request[] =>
  numbered(
    [
      ...azure.filter(({ method }) => !reads.has(method)),
      ...operations.map((one) => ({ ...one, type: typeOfUrn(one.id) })),
    ].sort((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt)),
  );

/** What the program read of Azure by itself. */
export const readsIn = (azure: readonly LoggedRequest[]): Request[] =>
  numbered(azure.filter(({ method }) => reads.has(method)));

function numbered(
  all: readonly { readonly method: string; readonly id: string; readonly type: string }[],
): Request[] {
  const met = new Map<string, number>();
  const count = (what: string): number => {
    met.set(what, (met.get(what) ?? 0) + 1);
    return met.get(what)!;
  };
  return all.map(({ method, id, type }) => {
    const pattern = patternOf(id);
    const short = `${method} ${shortOf(id)}`;
    const another = count(short);
    const title = another > 1 ? `${short} (${another})` : short;
    return { method, id: pattern, nth: count(`${method} ${pattern}`), title, type };
  });
}

const typeOfUrn = (urn: string): string => urn.split("::").at(-2)?.split("$").at(-1) ?? "";

const guid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";

/** Names of role assignments come from principals, whose ids Azure makes up. */
const patternOf = (id: string): string =>
  `^${id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(new RegExp(guid, "gi"), guid)}$`;

function shortOf(id: string): string {
  if (id.startsWith("urn:")) return `${typeOfUrn(id)} ${id.split("::").at(-1)}`;
  const [, own = id] = /\/providers\/[^/]+\/((?:(?!\/providers\/).)+)$/i.exec(id) ?? [];
  return own.replace(/^\/subscriptions\/[^/]+\//i, "").replaceAll(new RegExp(guid, "gi"), "…");
}
