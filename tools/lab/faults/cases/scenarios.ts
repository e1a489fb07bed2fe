import type { LoggedRequest } from "../../../local-azure/arm/requests";
import type { Operation } from "../../../local-azure/daemon/operation-log";

type Settings = Readonly<Record<string, unknown>>;

/** What is done to a stack while things go wrong. */
export interface Scenario {
  readonly key: string;
  readonly name: string;
  readonly stack: string;
  /** Settings of the cluster that is there already; without it there is nothing yet. */
  readonly before?: Settings;
  readonly operation: "up" | "destroy";
  readonly settings: Settings;
}

/** Without what needs the internet at deploy time. */
const offline = { cni: "flannel", diskDriver: false };

/** Nothing but the machines is of interest, so the add-ons are the smallest. */
export const small = { ...offline, cloudProvider: false, storageClasses: false };

export const firstUp: Scenario = {
  key: "first-up",
  name: "the first update of dev",
  stack: "dev",
  operation: "up",
  settings: offline,
};

export const scenarios: readonly Scenario[] = [
  firstUp,
  {
    key: "replacement",
    name: "a rolling replacement of prod",
    stack: "prod",
    before: small,
    operation: "up",
    settings: { ...small, imageVersion: "24.04.202608110" },
  },
  {
    key: "resize",
    name: "a resize of prod's control planes",
    stack: "prod",
    before: small,
    operation: "up",
    settings: { ...small, controlPlaneSize: "Standard_D4s_v5" },
  },
  {
    key: "labels",
    name: "new labels of prod's workers",
    stack: "prod",
    before: small,
    operation: "up",
    settings: {
      ...small,
      workerPools: [
        { name: "workers", count: 3, size: "Standard_D4s_v5", labels: { tier: "front" } },
      ],
    },
  },
  {
    key: "destroy",
    name: "a destroy of prod",
    stack: "prod",
    before: small,
    operation: "destroy",
    settings: small,
  },
];

export const scenarioOf = (key: string): Scenario => scenarios.find((one) => one.key === key)!;

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
