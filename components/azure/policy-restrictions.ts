import type { AzureConnection } from "./connection";
import type { Comparison } from "./policy-comparisons";

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
    (only.length === 0 || only.includes(policy.policyDefinitionReferenceId ?? "")) &&
    (expiresOn === undefined || Date.parse(expiresOn) > Date.now())
  );
}
