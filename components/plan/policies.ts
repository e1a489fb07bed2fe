import {
  isGroup,
  isKnown,
  type PlannedResource,
  type PolicyAnswer,
  type PolicyViolation,
  settingsFor,
  shownComparisons,
} from "../azure/policy-restrictions";
import { shownPolicy } from "../azure/refusals";
import { isUnregistered } from "../azure/resource-manager";
import { isSameSize } from "../azure/size-offers";
import type { AzureAnswer } from "../azure/state";

/**
 * Those of which nothing like them is there: all of a first update, later a type or machines that are new, a new
 * size, or parts of what is new.
 */
export function newKinds(
  resources: readonly PlannedResource[],
  { isBegun, shown, machines }: Pick<AzureAnswer, "isBegun" | "shown" | "machines">,
): PlannedResource[] {
  if (!isBegun) return [...resources];
  const there = new Set([...shown.values()].map(({ type }) => String(type).toLowerCase()));
  const places = [...shown.values()].map(({ type, name }) =>
    `/${String(type)}/${name}/`.toLowerCase(),
  );
  return resources.filter((resource) => {
    const { content, parent, standsFor } = resource;
    if (standsFor !== undefined) {
      const sizes = standsFor.names.flatMap((name) => machines.get(name)?.size ?? []);
      return !sizes.some((size) => isSameSize(size, standsFor.size));
    }
    if (parent !== undefined) {
      return !places.some((place) => `${parent}/`.toLowerCase().includes(place));
    }
    return !isGroup(resource) && !there.has(content.type.toLowerCase());
  });
}

/** Which policies will refuse what this update makes, and what is to be set: a sentence for each of them. */
export const policyProblems = ({ violations }: PolicyAnswer): string[] =>
  byPolicy(violations.filter(isCertain)).map((of) => `an Azure Policy does not allow ${said(of)}`);

/** Which policies may, by what Azure gives a resource or this program says later; and what is not known. */
export const policyWarnings = ({ violations, unread }: PolicyAnswer): string[] => [
  ...byPolicy(violations.filter((one) => !isCertain(one))).map(
    (of) => `An Azure Policy may not allow ${said(of)}`,
  ),
  ...(unread === undefined
    ? []
    : [
        `It is not known which Azure Policies would refuse what is made: ${unread}. ${wayToKnow(unread)} ` +
          "Until then, pulumi up names a policy when that refuses a resource.",
      ]),
];

function wayToKnow(unread: string): string {
  if (isUnregistered(unread)) {
    return "Have it registered, once: az provider register --namespace Microsoft.PolicyInsights --wait.";
  }
  return unread.includes(": 403 ")
    ? "Have the login be given Microsoft.PolicyInsights/checkPolicyRestrictions/read, which Reader has."
    : "Run pulumi preview again when Azure answers.";
}

/** A refusal for a property that the question has left out could be a mistake. */
const isCertain = ({ comparisons }: PolicyViolation): boolean => comparisons.every(isKnown);

function byPolicy(violations: readonly PolicyViolation[]): PolicyViolation[][] {
  const all = new Map<string, PolicyViolation[]>();
  for (const one of violations) {
    const key = `${one.assignment} ${one.definition}`;
    all.set(key, [...(all.get(key) ?? []), one]);
  }
  return [...all.values()];
}

function said(violations: readonly PolicyViolation[]): string {
  const comparisons = violations.flatMap((one) => one.comparisons);
  const types = new Set(violations.map(({ resource }) => resource.content.type));
  const { assignment, definition } = violations[0]!;
  const looked = shownComparisons(comparisons);
  const settings = settingsFor(comparisons, [...types]);
  return (
    `${[...types].join(", ")}${looked.length > 0 ? `: it looks at ${looked.join("; ")}` : ""}. ` +
    (settings.length > 0 ? `Set ${settings.join(", or ")}; or have` : "Have") +
    " whoever owns the policy exempt this cluster (az policy exemption create). " +
    `See policy ${shownPolicy({ assignment, definition })}`
  );
}
