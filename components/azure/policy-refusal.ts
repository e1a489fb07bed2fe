import { quoted } from "../settings/problem";
import { type Comparison, settingsFor, shownComparisons } from "./policy-comparisons";

/** A policy that refuses something, by its ids; some of Azure's messages have only one of them. */
export interface Policy {
  readonly assignment?: string;
  readonly definition?: string;
  /** What people call it. */
  readonly name?: string;
}

const code = /\bRequestDisallowedByPolicy\b/;

/**
 * What it means that an Azure Policy has refused a resource, and how to go on; undefined where none
 * has. What cannot be read of Azure's text is left out.
 *
 * @param resource what was refused, for people
 * @param errors Azure's errors in the provider's words: its message alone or the whole answer, in
 *   which quotes may be escaped. A message names the policies, or, where an assignment has a message
 *   of its own for people, that one; the policies and what they looked at are then in the answer.
 * @see https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-policy-requestdisallowedbypolicy
 */
export function explainedPolicy(resource: string, errors: readonly string[]): string | undefined {
  const text = errors.find((error) => code.test(error))?.replaceAll(/\\+"/g, '"');
  if (text === undefined) return undefined;
  const policies = policiesIn(text);
  const looked = comparisonsIn(text);
  const reasons = /Reasons: '?(.+?)'?\.? See error details/s.exec(text)?.[1];
  const settings = settingsFor(looked);
  return [
    `${resource}: an Azure Policy does not allow it, and nothing of it was made or changed.`,
    ...(reasons === undefined ? [] : [`The policy says: ${reasons}`]),
    ...policies.map((policy) => `See policy ${shownPolicy(policy)}`),
    ...shownComparisons(looked).map((one) => `It looked at ${one}.`),
    ...(policies.length > 0
      ? []
      : [
          "Which policy it is: az monitor activity-log list --status Failed --offset 1h " +
            "--query '[].properties.statusMessage'",
        ]),
    (settings.length > 0
      ? `Set ${settings.join(", or ")}`
      : "If a setting of this program (docs/settings.md) decides what it refuses, change that") +
      ", or have whoever owns the policy exempt this cluster (az policy exemption create). Then run pulumi up again.",
  ].join("\n  ");
}

const field = (text: string, name: string): string | undefined =>
  new RegExp(`"${name}"\\s*:\\s*"([^"]+)"`).exec(text)?.[1];

function policiesIn(text: string): Policy[] {
  const identified = [...text.matchAll(/"policyAssignment"\s*:\s*\{([^}]*)\}([^[\]]*?\})/g)].map(
    ([, assignment = "", rest = ""]) => ({
      assignment: field(assignment, "id"),
      definition: field(rest.replace(/^.*?"policyDefinition"/s, ""), "id"),
      name: field(assignment, "name"),
    }),
  );
  const violated = [
    ...text.matchAll(/"policyAssignmentId"\s*:\s*"([^"]+)"/g),
    ...text.matchAll(/disallowed by one or more policies[^']*'([^']+)'/g),
  ].map(([, id = ""]) =>
    /\/policyAssignments\//i.test(id)
      ? { assignment: id, name: field(text, "policyAssignmentDisplayName") }
      : { definition: id },
  );
  const all: Policy[] = identified.length > 0 ? identified : violated;
  const keyOf = ({ assignment, definition }: Policy) => `${assignment} ${definition}`;
  return [...new Map(all.map((policy) => [keyOf(policy), policy])).values()];
}

/** Its name, and the commands that show its rule. */
export function shownPolicy({ assignment, definition, name }: Policy): string {
  const [, scope = "", assigned] =
    /^(.*)\/providers\/[^/]+\/policyAssignments\/([^/]+)$/i.exec(assignment ?? "") ?? [];
  const [, group, defined] =
    /(?:managementGroups\/([^/]+)\/.*)?\/policyDefinitions\/([^/]+)$/i.exec(definition ?? "") ?? [];
  const commands = [
    ...(assigned === undefined
      ? []
      : [`az policy assignment show --name ${assigned} --scope ${quoted(scope)}`]),
    ...(defined === undefined
      ? []
      : [
          `az policy definition show --name ${defined}` +
            (group === undefined ? "" : ` --management-group ${group}`),
        ]),
  ];
  return `${name ?? assigned ?? defined}: ${commands.join("; ")}`;
}

const comparisonsIn = (text: string): Comparison[] =>
  [...text.matchAll(/\{[^{}]*"targetValue"[^{}]*\}/g)].flatMap(([object]) => {
    const comparison = parsed(object);
    return comparison === undefined ? [] : [comparison];
  });

function parsed(object: string): Comparison | undefined {
  try {
    return JSON.parse(object) as Comparison;
  } catch {
    return undefined;
  }
}
