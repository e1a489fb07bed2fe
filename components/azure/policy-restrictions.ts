import { entry, toSet } from "../settings/problem";
import { dnsTagName } from "../settings/rules/names";
import type { AzureConnection } from "./resource-manager";

/** What is known of a resource before it is made, in the shape of Azure's REST API. */
export interface PlannedContent {
  /** Azure's type. */
  readonly type: string;
  readonly name: string;
  readonly location?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly sku?: { readonly name: string };
  readonly zones?: readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** Machines that are equal but for their names and zones. */
export interface PlannedMachines {
  readonly size: string;
  readonly names: readonly string[];
}

/** A resource that this stack makes. */
export interface PlannedResource {
  readonly content: PlannedContent;
  /** The version of the API that has this shape. */
  readonly apiVersion: string;
  /** The id of the resource that it is a part of. */
  readonly parent?: string;
  /** The machines of which it is one. */
  readonly standsFor?: PlannedMachines;
}

/** A resource group, which is made in a subscription, and is no resource of it. */
export const isGroup = ({ content }: PlannedResource): boolean =>
  content.type.endsWith("/resourceGroups");

/** A policy that would refuse a resource. */
export interface PolicyViolation {
  readonly resource: PlannedResource;
  /** Their ids. */
  readonly assignment: string;
  readonly definition?: string;
  readonly comparisons: readonly Comparison[];
}

/** What is known of the policies that would refuse what is to be made. */
export interface PolicyAnswer {
  readonly violations: readonly PolicyViolation[];
  /** Why some of it is not known. */
  readonly unread?: string;
}

interface PolicyReference {
  readonly policyAssignmentId: string;
  readonly policyDefinitionId?: string;
  readonly policyDefinitionReferenceId?: string;
}

/** Azure's answer. What it says of a part of a resource and of a single field are two lists. */
interface Restrictions {
  readonly contentEvaluationResult?: {
    readonly policyEvaluations?: readonly {
      readonly policyInfo: PolicyReference;
      readonly evaluationResult: string;
      readonly effectDetails?: { readonly policyEffect?: string };
      readonly evaluationDetails?: { readonly evaluatedExpressions?: readonly Comparison[] };
    }[];
  };
  readonly fieldRestrictions?: readonly {
    readonly field: string;
    readonly restrictions?: readonly {
      readonly result: string;
      readonly policyEffect?: string;
      readonly policy: PolicyReference;
      readonly values?: readonly string[];
    }[];
  }[];
}

interface Exemption {
  readonly properties: {
    readonly policyAssignmentId: string;
    readonly policyDefinitionReferenceIds?: readonly string[];
    readonly expiresOn?: string;
  };
}

interface Found extends Pick<PolicyViolation, "comparisons"> {
  readonly policy: PolicyReference;
}

/**
 * Asks Azure which policies would refuse these resources. Nothing is made by it, and Reader has the right to
 * ask. Effects other than deny refuse nothing.
 *
 * @param scope the resource group, if it is there, else the subscription
 * @see https://learn.microsoft.com/rest/api/policyinsights/policy-restrictions
 */
export async function getPolicyViolations(
  resources: readonly PlannedResource[],
  scope: string,
  { arm, subscriptionId }: AzureConnection,
): Promise<PolicyAnswer> {
  let unread: string | undefined;
  const found = await Promise.all(
    resources.map(async (resource) => {
      const at = isGroup(resource) ? `/subscriptions/${subscriptionId}` : scope;
      const answer = await arm
        .query<Restrictions>(
          `${at}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions`,
          { "api-version": "2024-10-01" },
          questionOf(resource, /\/resourceGroups\//i.test(at)),
          {},
        )
        .catch(({ message }: Error) => void (unread ??= message.split("\n")[0]));
      return deniedIn(answer ?? {}, resource).map((one) => ({ ...one, resource }));
    }),
  );
  const all = found.flat();
  const exemptions = all.length > 0 ? await getExemptions(scope, arm) : [];
  return {
    violations: all
      .filter(({ policy }) => !exemptions.some((one) => isOf(one, policy)))
      .map(({ policy, resource, comparisons }) => ({
        resource,
        assignment: policy.policyAssignmentId,
        definition: policy.policyDefinitionId,
        comparisons,
      })),
    unread,
  };
}

/** A tag that is missing Azure may name as a restriction of the field alone. */
const questionOf = (
  { content, apiVersion, parent }: PlannedResource,
  isGroupThere: boolean,
): object => ({
  resourceDetails: {
    resourceContent: content,
    apiVersion,
    ...(isGroupThere && parent !== undefined && { scope: parent }),
  },
  pendingFields: [{ field: "tags" }],
});

const isDeny = (effect: string | undefined): boolean => effect?.toLowerCase() === "deny";

function deniedIn(
  { contentEvaluationResult, fieldRestrictions = [] }: Restrictions,
  { content }: PlannedResource,
): Found[] {
  const evaluated = (contentEvaluationResult?.policyEvaluations ?? [])
    .filter(
      ({ evaluationResult, effectDetails }) =>
        evaluationResult === "NonCompliant" && isDeny(effectDetails?.policyEffect),
    )
    .map(({ policyInfo, evaluationDetails }): Found => ({
      policy: policyInfo,
      comparisons: evaluationDetails?.evaluatedExpressions ?? [],
    }));
  const isEvaluated = (policy: PolicyReference) =>
    evaluated.some((one) => keyOf(one.policy) === keyOf(policy));
  const missing = fieldRestrictions.flatMap(({ field, restrictions = [] }): Found[] => {
    const [, tag] = /^tags\.(.+)$/i.exec(field) ?? [];
    const isRefused = tag !== undefined && !hasTag(content.tags, tag);
    return restrictions
      .filter(({ result, policyEffect }) => result === "Required" && isDeny(policyEffect))
      .filter(({ policy }) => isRefused && !isEvaluated(policy))
      .map(({ policy, values }) => ({
        policy,
        comparisons: [
          values === undefined
            ? { path: field, operator: "Exists", targetValue: "false" }
            : { path: field, operator: "NotIn", targetValue: values },
        ],
      }));
  });
  return [...evaluated, ...missing];
}

/** Azure compares ids and names of tags case-insensitively. */
const hasTag = (tags: Readonly<Record<string, string>> = {}, name: string): boolean =>
  Object.keys(tags).some((one) => one.toLowerCase() === name.toLowerCase());

const keyOf = (policy: PolicyReference): string =>
  `${policy.policyAssignmentId} ${policy.policyDefinitionReferenceId ?? ""}`.toLowerCase();

/**
 * What is exempt at a scope, or above it: Azure's reference does not say whether its answer heeds that. Where
 * the login may not read it, nothing is known.
 */
const getExemptions = (scope: string, arm: AzureConnection["arm"]): Promise<Exemption[]> =>
  arm
    .list<Exemption>(
      `${scope}/providers/Microsoft.Authorization/policyExemptions`,
      { "api-version": "2022-07-01-preview", $filter: "atScope()" },
      { properties: { policyAssignmentId: "" } },
    )
    .catch(() => []);

/** Of an initiative, an exemption can name single policies. */
function isOf({ properties }: Exemption, policy: PolicyReference): boolean {
  const { policyAssignmentId, policyDefinitionReferenceIds: only = [], expiresOn } = properties;
  return (
    policyAssignmentId.toLowerCase() === policy.policyAssignmentId.toLowerCase() &&
    (only.length === 0 ||
      only.some((id) => id.toLowerCase() === policy.policyDefinitionReferenceId?.toLowerCase())) &&
    (expiresOn === undefined || Date.parse(expiresOn) > Date.now())
  );
}

/** What a policy has compared, as Azure shows it among `evaluatedExpressions`. */
export interface Comparison {
  readonly expression?: string;
  /** Where the field is in the resource. */
  readonly path?: string;
  /** Missing where the resource does not have it. */
  readonly expressionValue?: unknown;
  readonly operator?: string;
  readonly targetValue?: unknown;
}

const fieldOf = ({ path, expression }: Comparison): string => String(path ?? expression);

/** The name of the tag that a field is. */
const tagIn = (field: string): string | undefined =>
  (/^tags\[['"]?(.+?)['"]?\]$/i.exec(field) ?? /^tags\.(.+)$/i.exec(field))?.[1];

/** Whether all that it looked at is known before the resource is made: a tag is there or not. */
export const isKnown = (comparison: Comparison): boolean =>
  comparison.expressionValue !== undefined || tagIn(fieldOf(comparison)) !== undefined;

/** What was looked at, for people; of the type, by which a policy finds what it is for, only if that is all. */
export function shownComparisons(comparisons: readonly Comparison[]): string[] {
  const others = comparisons.filter((one) => !/^(type|\[field\('type'\)\])$/i.test(fieldOf(one)));
  const shown = (others.length > 0 ? others : comparisons.slice(0, 1)).map((one) => {
    const { expressionValue: value, operator, targetValue } = one;
    const is = value === undefined ? "missing" : JSON.stringify(value);
    return `${fieldOf(one)}, which is ${is}, by ${String(operator)} ${JSON.stringify(targetValue)}`;
  });
  return [...new Set(shown)];
}

/** Properties of Azure's, and what decides them: after "Set". */
const decided: readonly (readonly [property: RegExp, by: string])[] = [
  [/^location$/i, `location to what it allows (${toSet("location", "REGION")})`],
  [/virtualMachines\/sku|vmSize/i, "controlPlaneSize or workerPools to what it allows"],
  [/osDisk\..*storageAccountType/i, `osDiskSku to what it allows (${toSet("osDiskSku", "SKU")})`],
  [/osDisk\.diskSizeGB/i, `osDiskSizeGb to what it allows (${toSet("osDiskSizeGb", "GB")})`],
  [/encryptionAtHost/i, `encryptionAtHost to what it allows (${toSet("encryptionAtHost", true)})`],
  [
    /diskEncryptionSet/i,
    `diskEncryptionSetId to what it allows (${toSet("diskEncryptionSetId", "ID")})`,
  ],
];

const ownName = `apiName to a name in DNS of your own (${toSet("apiName", "NAME")})`;

/** The way on without it, by what is not allowed. */
const without: readonly (readonly [type: RegExp, by: string])[] = [
  [
    /\/publicIPAddresses$/i,
    `apiAccess to private and egress to none (${toSet("apiAccess", "private")}; ${toSet("egress", "none")})`,
  ],
  [/\/natGateways$/i, `egress to none (${toSet("egress", "none")})`],
  [
    /\/(virtualNetworks|networkSecurityGroups|routeTables)$/i,
    `nodeSubnets to subnets that exist already (${toSet("nodeSubnets[0]", "ID")})`,
  ],
  [/\/privateDnsZones$/i, ownName],
  [
    /\/userAssignedIdentities$/i,
    `identityId, and kubeletIdentityId where there are registries, to identities that exist already (${toSet("identityId", "ID")}; ${toSet("kubeletIdentityId", "ID")})`,
  ],
  [
    /\/resourceGroups$/i,
    `resourceGroup to one that exists already (${toSet("resourceGroup", "NAME")})`,
  ],
];

/**
 * The settings that decide what was compared, each as the end of a sentence that begins with "Set".
 *
 * @param types what was refused, in Azure's or Pulumi's words
 */
export function settingsFor(
  comparisons: readonly Comparison[],
  types: readonly string[],
): string[] {
  const ofZones = types.filter((type) => /privatedns/i.test(type));
  const found = comparisons.flatMap((one): string[] => {
    const field = fieldOf(one);
    const tag = tagIn(field);
    if (tag !== undefined) {
      const setting = entry("tags", tag);
      const set = `${setting} to what it allows (${toSet(setting, "VALUE")})`;
      if (dnsTagName.test(tag) || ofZones.length === 0) return [set];
      return [
        ...(ofZones.length < types.length ? [set] : []),
        `${ownName}, since Azure keeps no tag of that name on a private DNS zone`,
      ];
    }
    const type = field === "type" ? String(one.expressionValue) : "";
    return [
      ...decided.filter(([property]) => property.test(field)),
      ...without.filter(([of]) => of.test(type)),
    ].map(([, by]) => by);
  });
  return [...new Set(found)];
}
