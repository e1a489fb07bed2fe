import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

import { quoted, toRemove } from "../settings/problem";
import { Settings } from "../settings/settings";
import { MachinePlan, machinesOf } from "../settings/topology";
import { spotCores } from "./hardware";
import { type Comparison, settingsFor, shownComparisons } from "./policy-restrictions";
import { groupWord } from "./resource-names";
import { lacksMfa, withMfa } from "./resource-manager";
import { poolPath, sizeCommand } from "./size-offers";

/**
 * Says beside Azure's refusal of a resource what it means for this stack, and asks again where a moment helps.
 *
 * One hook for all resources, since the engine looks for it by its name when it deletes one that has
 * left the program. A `pulumi destroy`, which runs no program, shows Azure's error alone.
 */
export async function explainRefusals(
  settings: Settings,
  machines: readonly MachinePlan[] = machinesOf(settings),
): Promise<void> {
  const hook = new pulumi.ErrorHook(
    "explain-refusal",
    async ({ name, type, newInputs, errors }) => {
      if (passes(type, errors)) {
        if (errors.length === 1) {
          void pulumi.log.info(
            `${type} ${name}: asked again for three minutes, since a part of Azure has yet to hear of what was done before: ${errors[0]}`,
          );
        }
        await pause(secondsBetween * 1000);
        return true;
      }
      const machine = machines.find((one) => one.name === newInputs?.["vmName"]);
      const text =
        explainedPolicy(`${type} ${name}`, errors) ??
        explainedCredential(`${type} ${name}`, errors) ??
        explainedAssignment(`${type} ${name}`, errors, newInputs) ??
        (machine && explained(machine, settings, errors));
      // Not on the resource: this program learns its URN only when it has been made.
      if (text !== undefined) void pulumi.log.error(text);
      return false;
    },
  );
  if (!(await isSupported(hook))) return;
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
    type.startsWith("azure-native:")
      ? { props, opts: { ...opts, hooks: { onError: [hook] } } }
      : undefined,
  );
}

/**
 * Language hosts that are older than their engine hand no hooks on, and a resource with one could
 * not be made.
 */
const isSupported = (hook: pulumi.ErrorHook): Promise<boolean> =>
  (hook as unknown as { __registered: Promise<void> }).__registered.then(
    () => true,
    () => false,
  );

const secondsBetween = 10;
/** Three minutes of them. */
const mostAttempts = 18;

/** Codes by which a part of Azure has yet to hear of a new principal or role, or that nobody has a role any more. */
const unheard: Readonly<Record<string, RegExp>> = {
  "azure-native:authorization:RoleAssignment": /\b(PrincipalNotFound|RoleDefinitionDoesNotExist)\b/,
  "azure-native:authorization:RoleDefinition": /\bRoleDefinitionHasAssignments\b/,
};

/**
 * Whether the same request may be answered in a moment, which azure-native does not know of these.
 *
 * @param errors the newest first
 */
export const passes = (type: string, errors: readonly string[]): boolean =>
  errors.length < mostAttempts && unheard[type]?.test(errors[0] ?? "") === true;

interface Refusal {
  /** Azure's codes for it, wherever they stand in the provider's text. */
  readonly pattern: RegExp;
  readonly means: (machine: MachinePlan, settings: Settings) => string;
  /** Whether it means this of spot machines alone. */
  readonly isOfSpot?: boolean;
}

const place = ({ zone }: MachinePlan, { location }: Settings) => `zone ${zone} of ${location}`;

const otherSize = (machine: MachinePlan, settings: Settings) =>
  `${sizeCommand(settings, machine)} SIZE (az vm list-skus -l ${settings.location} --zone -o table)`;

const regularMachines = (machine: MachinePlan, settings: Settings) =>
  `take regular machines: ${toRemove(`${poolPath(settings, machine)}.spot`)}`;

const quota = /\bQuotaExceeded\b|\bOperationNotAllowed\b.*\b(quota|cores)\b/is;

const forMore = ({ location }: Settings) =>
  `See what is used: az vm list-usage -l ${location} -o table. Ask for more in the Azure portal ` +
  "(Quotas, Compute), then run pulumi up again.";

const withoutIt =
  "All else is made without it by pulumi up --continue-on-error, and each pulumi up tries it again.";

const refusals: readonly Refusal[] = [
  {
    isOfSpot: true,
    pattern: /\bSpotPriceGreaterThanProvidedMaxPrice\b|lower than the current spot price/,
    means: (machine, settings) =>
      `a spot machine of size ${machine.size} in ${place(machine, settings)} costs more than its pool's maxPrice now.\n` +
      `  ${withoutIt} Or raise it, or pay up to the regular price: ` +
      toRemove(`${poolPath(settings, machine)}.spot.maxPrice`),
  },
  {
    isOfSpot: true,
    pattern: /\bSkuNotAvailable\b|AllocationFailed\b|\bOverconstrained(Zonal)?AllocationRequest\b/,
    means: (machine, settings) =>
      `Azure has no capacity to spare for a spot machine of size ${machine.size} in ${place(machine, settings)} at the moment, ` +
      `and promises none.\n  ${withoutIt} ` +
      `If it stays so, take another size: ${otherSize(machine, settings)}, or ${regularMachines(machine, settings)}`,
  },
  {
    pattern: /\b(Zonal)?AllocationFailed\b|\bOverconstrained(Zonal)?AllocationRequest\b/,
    means: (machine, settings) =>
      `Azure has no room for another ${machine.size} in ${place(machine, settings)} at the moment.\n` +
      "  Wait and run pulumi up again: it goes on where it stopped. " +
      `If it stays so, take another size: ${otherSize(machine, settings)}`,
  },
  {
    pattern: /\bSkuNotAvailable\b|\bNotAvailableForSubscription\b/,
    means: (machine, settings) =>
      `this subscription cannot have size ${machine.size} in ${place(machine, settings)}, ` +
      "or it is sold out there.\n" +
      `  Take another size, then run pulumi up again: ${otherSize(machine, settings)}`,
  },
  {
    isOfSpot: true,
    pattern: quota,
    means: (machine, settings) =>
      `the quota ${spotCores}, which spot machines of all sizes share, has no room for another ${machine.size} in ${place(machine, settings)}.\n` +
      `  ${forMore(settings)} Or take a smaller size: ${otherSize(machine, settings)}, ` +
      `or fewer machines: pulumi config set --path '${poolPath(settings, machine)}.count' COUNT, ` +
      `or ${regularMachines(machine, settings)}`,
  },
  {
    pattern: quota,
    means: (machine, settings) =>
      `the vCPU quota of this subscription has no room for another ${machine.size} in ${place(machine, settings)}.\n` +
      `  ${forMore(settings)} Or take a size of another family: ${otherSize(machine, settings)}`,
  },
  {
    pattern: /\bMultiple VMExtensions per handler\b/i,
    means: ({ name }, settings) =>
      "the machine has a custom script extension of somebody else's, and Azure takes one of this kind.\n" +
      `  See which: az vm extension list --resource-group ${groupWord(settings)} --vm-name ${name} --output table. ` +
      "Delete it (az vm extension delete), have whoever assigned it, such as a policy (deployIfNotExists), leave out this resource group, and run pulumi up again",
  },
];

/**
 * What a machine's refusal means and how to go on; undefined where Azure's own words have to do.
 */
export function explained(
  machine: MachinePlan,
  settings: Settings,
  errors: readonly string[],
): string | undefined {
  const refusal = refusals.find(
    ({ pattern, isOfSpot }) =>
      (!isOfSpot || machine.spot !== undefined) && errors.some((error) => pattern.test(error)),
  );
  return refusal && `${machine.name}: ${refusal.means(machine, settings)}`;
}

/**
 * What it means that Azure takes no federated credential, and how to go on; undefined where it is not that.
 *
 * @see https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations#errors
 */
export const explainedCredential = (
  resource: string,
  errors: readonly string[],
): string | undefined =>
  errors.some((error) => /federated identity credentials not enabled/i.test(error))
    ? `${resource}: Azure has no federated credentials of managed identities in the region of this one.\n` +
      "  Make one in another region and another resource group (az identity create --resource-group GROUP --name NAME --location REGION --query id), " +
      "and name it: identityId of the entry in workloadIdentities, or identityId for machineIdentity false. Then run pulumi up again."
    : undefined;

/** What it means that somebody else has assigned a role, and how to go on; undefined where it is not that. */
export const explainedAssignment = (
  resource: string,
  errors: readonly string[],
  { principalId, roleDefinitionId, scope }: Readonly<Record<string, unknown>> = {},
): string | undefined =>
  errors.some((error) => /\bRoleAssignmentExists\b/.test(error))
    ? `${resource}: somebody else has given the identity this role at ${String(scope)}, and Azure assigns a role once.\n` +
      `  Take that away: az role assignment delete --assignee ${String(principalId)} --role ${String(roleDefinitionId).split("/").at(-1)} --scope ${quoted(String(scope))}. ` +
      "Then run pulumi up again, which assigns it."
    : undefined;

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
  if (lacksMfa(text)) return `${resource}: ${withMfa}`;
  const policies = policiesIn(text);
  const looked = comparisonsIn(text);
  const reasons = /Reasons: '?(.+?)'?\.? See error details/s.exec(text)?.[1];
  const settings = settingsFor(looked, [resource]);
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
