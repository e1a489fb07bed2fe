import type { Fault, Method } from "../../../local-azure/arm/faults/faults";
import { type Case, whatOf } from "./case";
import type { FaultAt } from "./disturbances";
import type { Request } from "./requests";
import type { Scenario } from "./scenarios";

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
/** What machine-refusal.ts adds to Azure's own. */
const machineWords = [/zone/i, /Standard_/, /pulumi config set|npm start|pulumi up/];
const verbs = new Set(["PUT", "DELETE"]);
const machineType = "microsoft.compute/virtualmachines";

/**
 * Each error at the first request of every type and verb that a good run used, all in one case; and
 * what Azure lacks for machines at the first of them.
 */
export function azureFaults(
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
