import type { Fault, Method, Stage } from "../../../local-azure/arm/faults";
import { subscriptionPath } from "../../../local-azure/arm/resources/resource";
import type { Life, Victim } from "../life";
import { type Disturbance, type FaultAt, isLost, type UnhealthyCluster } from "./disturbances";
import { type Request, type Scenario, scenarioOf } from "./scenarios";

/** One thing that goes wrong in a scenario. */
export interface Case {
  readonly scenario: Scenario;
  /** A row of the report. */
  readonly kind: string;
  /** Verb and type of the request at which it does; for others what it is. */
  readonly what: string;
  readonly title: string;
  readonly disturbance: Disturbance;
}

/** A case, or one of a report, which has its scenario's key alone. */
type Known = Omit<Case, "scenario" | "disturbance"> & { readonly scenario: Scenario | string };

/** By which a case is chosen, and found again in a report. */
export const nameOf = ({ scenario, kind, title }: Omit<Known, "what">): string =>
  `${typeof scenario === "string" ? scenario : scenario.key}: ${kind}: ${title}`;

/** Cases of one class are likely to end the same. */
export const classOf = ({ scenario, kind, what }: Omit<Known, "title">): string =>
  nameOf({ scenario, kind, title: what });

const whatOf = ({ method, type }: Request): string => `${method} ${wayOf(type)}`;

/**
 * Azure's types are made each in its own way; the tls plugin makes all of its alike, and the
 * kubernetes plugin all objects that it does not wait for.
 */
function wayOf(type: string): string {
  if (type.startsWith("tls:")) return "tls";
  if (!type.startsWith("kubernetes:")) return type.toLowerCase();
  if (type.endsWith("Patch")) return "kubernetes patch";
  return type.startsWith("kubernetes:apps/") ? "kubernetes workload" : "kubernetes object";
}

/** What a good run asked. */
export interface Asked {
  readonly writes: readonly Request[];
  readonly reads: readonly Request[];
}

/** All that can go wrong in a scenario whose good run asked this. */
export const casesOf = (scenario: Scenario, { writes, reads }: Asked): Case[] => [
  ...writes.flatMap((request) => killPoints(scenario, request)),
  ...(writes.length < fewest
    ? []
    : killedIn(scenario).flatMap(([victim]) => killedAgain(scenario, victim))),
  ...azureFaults(scenario, writes, reads),
  ...unhealthyMembers.filter((one) => one.scenario.key === scenario.key),
];

/** Requests of the first of several killed commands. */
const fewest = 4;

const stages: readonly Stage[] = ["arrived", "accepted", "answered"];

/** Where a process that only leads on to the engine is killed makes no difference to Azure. */
const killed: readonly (readonly [Victim, readonly Stage[]])[] = [
  ["engine", stages],
  ["provider", stages],
  ["language host", ["accepted"]],
  ["program", ["accepted"]],
];

/** The engine runs the program for an update alone. */
const killedIn = ({ operation }: Scenario) =>
  killed.filter(([victim]) => victim !== "program" || operation === "up");

const killedAgain = (scenario: Scenario, victim: Victim): Case[] =>
  (["arrived", "accepted"] as const).map((stage) => ({
    scenario,
    kind: `${victim} killed again and again`,
    what: stage,
    title: `${fewest}th request ${stage}, then one more each time`,
    disturbance: { killAgain: victim, from: fewest, stage },
  }));

function killPoints(scenario: Scenario, request: Request): Case[] {
  const { method, id, nth, title } = request;
  return killedIn(scenario).flatMap(([victim, when]) =>
    when.map((stage) => ({
      scenario,
      kind: `${victim} killed, request ${stage}`,
      what: whatOf(request),
      title,
      disturbance: {
        kill: victim,
        at: { method, id, nth, stage, drop: isLost(victim, stage) },
      },
    })),
  );
}

/**
 * Cases in the order in which they are tried: each class once before any is repeated, and within
 * such a round scenarios and kinds in turn, so that the first few differ most.
 */
export function inOrder(cases: readonly Case[]): Case[] {
  const rounds: Case[][] = [];
  for (const ofClass of groups(cases, classOf)) {
    ofClass.forEach((one, round) => (rounds[round] ??= []).push(one));
  }
  return rounds.flatMap((round) =>
    inTurn(groups(round, ({ scenario }) => scenario.key).map(byKind)),
  );
}

const byKind = (cases: readonly Case[]): Case[] => inTurn(groups(cases, ({ kind }) => kind));

function groups<T>(all: readonly T[], keyOf: (one: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  return [...found.values()];
}

/** The first of each, then the second of each, and so on. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
}

/** azure-native asks three times more; what lasts longer is seen by the engine. */
const beyondRetries = 4;

type Refusal = Omit<Fault, "method" | "id">;

/** What azure-native meets by asking again, and what is lasting. */
const passing: Readonly<Record<string, Refusal>> = {
  "429": { status: 429, code: "TooManyRequests" },
  "429 with Retry-After": { status: 429, code: "TooManyRequests", retryAfter: 30 },
  "409 AnotherOperationInProgress": { status: 409, code: "AnotherOperationInProgress" },
  "500": { status: 500, code: "InternalServerError" },
  "503": { status: 503, code: "ServiceUnavailable" },
  "connection lost before the request was accepted": { lost: "request" },
  "connection lost after the request was accepted": { lost: "answer" },
};

const lasting: Readonly<Record<string, Refusal>> = {
  ...Object.fromEntries(
    Object.entries(passing).map(([name, refusal]) => [
      `${name}, ${beyondRetries} times`,
      { ...refusal, times: beyondRetries },
    ]),
  ),
  "429 with a Retry-After beyond two minutes": {
    ...{ status: 429, code: "TooManyRequests", retryAfter: 600 },
  },
  "409 Conflict": { status: 409, code: "Conflict" },
};

/** What a region or a subscription lacks for machines: by zone and size, each with what to do. */
const machineOnly: Readonly<Record<string, Refusal>> = {
  AllocationFailed: {
    ...{ accepted: true, code: "AllocationFailed" },
    message:
      "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
  },
  ZonalAllocationFailed: {
    ...{ accepted: true, code: "ZonalAllocationFailed" },
    message:
      "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.",
  },
  SkuNotAvailable: {
    ...{ status: 409, code: "SkuNotAvailable" },
    message:
      "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions' " +
      "is currently not available in location 'southeastasia'.",
  },
  "quota exceeded": {
    ...{ status: 409, code: "OperationNotAllowed" },
    message:
      "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.",
  },
};
/** What refusals.ts adds to Azure's own. */
const machineWords = [/zone/i, /Standard_/, /pulumi config set|npm start|pulumi up/];
const verbs = new Set(["PUT", "DELETE"]);
const machineType = "microsoft.compute/virtualmachines";

/**
 * Each error at the first request of every type and verb that a good run used, all in one case; and
 * what Azure lacks for machines at the first of them.
 */
function azureFaults(
  scenario: Scenario,
  writes: readonly Request[],
  reads: readonly Request[],
): Case[] {
  const firsts = [...writes.filter(({ method }) => verbs.has(method)), ...reads].filter(
    ({ method, type }, index, all) =>
      all.findIndex((one) => one.method === method && one.type === type) === index,
  );
  const machine = firsts.find(
    ({ method, type }) => method === "PUT" && type.toLowerCase() === machineType,
  );
  const everywhere = (refusals: typeof passing, mustEndWell: boolean): Case[] =>
    Object.entries(refusals).map(([kind, refusal]) => ({
      ...{ scenario, kind, title: "each type and verb", what: "each type and verb" },
      disturbance: { faults: firsts.map((one) => failing(one, refusal)), mustEndWell },
    }));
  return [
    ...everywhere(passing, true),
    ...everywhere(lasting, false),
    ...(machine === undefined
      ? []
      : Object.entries(machineOnly).map(([kind, refusal]) => ({
          ...{ scenario, kind, title: machine.title, what: whatOf(machine) },
          disturbance: { faults: [failing(machine, refusal, machineWords)], mustEndWell: false },
        }))),
  ];
}

const failing = (
  { method, id, nth, type }: Request,
  refusal: Refusal,
  explains: readonly RegExp[] = [],
): FaultAt => ({
  fault: { ...refusal, method: method as Method, id, nth },
  says: wordsOf(method, type),
  explains,
});

/** The engine names what it failed at by type and by a name of the program's own. */
function wordsOf(method: string, type: string): RegExp[] {
  if (method === "GET") return [];
  const one = type
    .split("/")
    .at(-1)!
    .replace(/(ies|es|s)$/, "");
  return [new RegExp(one, "i")];
}

const vmOf = (machine: string): string => `zoned-prod-${machine}`;
const machines = `${subscriptionPath}/resourceGroups/zoned-prod/providers/Microsoft.Compute/virtualMachines`;

const injectFailure = (life: Life, machine: string, component: string): Promise<unknown> =>
  life.send("POST", `/local/machines/${vmOf(machine)}/failures`, { component });

/** Somebody sees to it on the machine, as a message that names the machine asks for. */
const clearFailures =
  (...names: readonly string[]) =>
  async (life: Life): Promise<void> => {
    for (const machine of names) {
      // One that was replaced meanwhile is healthy.
      await life.send("DELETE", `/local/machines/${vmOf(machine)}/failures`).catch(() => undefined);
    }
  };

/**
 * A component of one control plane. That machine may be replaced first; without space, etcd takes no
 * writes.
 */
const oneUnhealthy = (component: string, machine: string): readonly [string, UnhealthyCluster] => [
  `${component} of ${machine} is unhealthy`,
  {
    setUp: async (life) => void (await injectFailure(life, machine, component)),
    says: [new RegExp(vmOf(machine))],
    mayGoOn: component !== "etcd-space",
    repair: clearFailures(machine),
  },
];

/** Etcd has no majority then, and nobody answers. */
const majorityLost: readonly [string, UnhealthyCluster] = [
  "etcd of two control planes is unhealthy",
  {
    setUp: async (life) => {
      for (const machine of ["cp-2", "cp-3"]) await injectFailure(life, machine, "etcd");
    },
    says: [/etcd|API/],
    mayGoOn: false,
    repair: clearFailures("cp-2", "cp-3"),
  },
];

/** Somebody deletes machines behind Pulumi's back; a refresh sees it. */
const deleted = (...names: readonly string[]): readonly [string, UnhealthyCluster] => [
  `deleted behind Pulumi's back: ${names.join(" and ")}`,
  {
    setUp: async (life) => {
      for (const name of names) await life.send("DELETE", `${machines}/${vmOf(name)}`);
    },
    says: [new RegExp(names.map(vmOf).join("|")), /--refresh/],
    mayGoOn: true,
    repair: async (life, scenario) => void (await life.command("refresh", scenario.settings)),
  },
];

const unhealthy: readonly (readonly [string, UnhealthyCluster])[] = [
  ...[
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "etcd-space",
  ].flatMap((component) => [oneUnhealthy(component, "cp-1"), oneUnhealthy(component, "cp-2")]),
  majorityLost,
  deleted("cp-1"),
  deleted("cp-2"),
  deleted("workers-1"),
];

/** What a change that touches no machine is not held up by. */
const harmless: readonly (readonly [string, UnhealthyCluster])[] = [
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
].map((component) => {
  const [title, one] = oneUnhealthy(component, "cp-2");
  return [title, { ...one, says: [], mustGoOn: true }] as const;
});

const casesIn = (key: string, ones: typeof unhealthy): Case[] =>
  ones.map(([title, disturbance]) => ({
    ...{ scenario: scenarioOf(key), kind: "unhealthy cluster", what: title, title, disturbance },
  }));

/** Clusters that are unhealthy when a change comes, and what has to become of the change. */
const unhealthyMembers: readonly Case[] = [
  ...casesIn("replacement", unhealthy),
  ...casesIn("resize", unhealthy),
  ...casesIn("labels", harmless),
];
