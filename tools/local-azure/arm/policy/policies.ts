import { AzureError, refuse } from "../azure-error";
import { ArmId, Body, groupType, isWithin, parseId, Resource, View } from "../resources/resource";
import { toArm } from "../rest/shape";
import {
  definitionOf,
  isExempt,
  type PolicyAssignmentBody,
  policyAssignmentType,
  type PolicyDefinitionBody,
} from "../types/authorization/guardrails";
import { ResourceType, schemaOf } from "../types/resource-type";
import { typeOf } from "../types/types";
import { type Content, evaluate, type EvaluatedExpression, valueOf } from "./rule";

interface Violation {
  readonly assignment: Resource;
  readonly assigned: PolicyAssignmentBody;
  readonly definition: PolicyDefinitionBody;
  readonly expressions: readonly EvaluatedExpression[];
}

const policyGroupType = "Microsoft.Resources/subscriptions/resourceGroups";

/** The policies assigned at a scope or above it that deny a resource. */
function violations(scope: string, content: Content, view: View): Violation[] {
  const isAt = (outer: string) => isWithin(scope, outer);
  return view.ofType(policyAssignmentType).flatMap((assignment) => {
    const assigned = assignment.body as PolicyAssignmentBody;
    const { policyDefinitionId, notScopes = [], enforcementMode } = assigned;
    const definition = definitionOf(policyDefinitionId, view);
    const isHere = isAt(parseId(assignment.id)!.parent) && !notScopes.some(isAt);
    if (!isHere || definition === undefined || enforcementMode === "DoNotEnforce") return [];
    if (/^indexed$/i.test(definition.mode ?? "") && !isIndexed(content.type)) return [];
    const parameters = parametersOf(assigned, definition);
    const { policyRule } = definition;
    const effect = valueOf(policyRule.then.effect, { parameters, field: () => undefined });
    const { holds, expressions } = evaluate(policyRule.if, content, parameters);
    if (!holds || !/^deny$/i.test(String(effect))) return [];
    return [{ assignment, assigned, definition, expressions }];
  });
}

/** Resource groups have tags and a location, and are left out all the same. */
function isIndexed(name: string): boolean {
  const type = typeOf(name);
  return (
    type !== undefined && ["tags", "location"].every((one) => schemaOf(type).inputs.includes(one))
  );
}

const parametersOf = (
  { parameters = {} }: PolicyAssignmentBody,
  { parameters: known = {} }: PolicyDefinitionBody,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(known).map(([name, { defaultValue }]) => [
      name,
      parameters[name]?.value ?? defaultValue,
    ]),
  );

/** Throws where a policy denies a resource that is to be as this body says. */
export function checkPolicies(
  id: ArmId,
  type: ResourceType,
  body: Body,
  { view, now }: { readonly view: View; readonly now: Date },
): void {
  const { type: armType, ...shaped } = toArm(id, body);
  const content = {
    ...shaped,
    name: id.name,
    id: id.id,
    type: armType === groupType ? policyGroupType : type.type,
  };
  const violated = violations(id.id, content, view).filter(
    ({ assignment }) => !isExempt(id.id, assignment.id, view, now),
  );
  if (violated.length === 0) return;
  const reasons = violated.flatMap(({ assigned }) =>
    (assigned.nonComplianceMessages ?? []).map(({ message }) => message),
  );
  const why =
    reasons.length > 0
      ? `Reasons: '${reasons.join("','")}'. See error details for policy resource IDs.`
      : `Policy identifiers: '${JSON.stringify(violated.map(identifiers))}'.`;
  throw new AzureError(
    403,
    "RequestDisallowedByPolicy",
    `Resource '${id.name}' was disallowed by policy. ${why}`,
    id.name,
    undefined,
    violated.map((one) => ({ type: "PolicyViolation", info: detailsOf(one) })),
  );
}

const nameIn = (id: string): string => id.split("/").at(-1)!;

const identifiers = ({ assignment, assigned, definition }: Violation) => ({
  policyAssignment: {
    name: assigned.displayName ?? nameIn(assignment.id),
    id: assignment.id,
  },
  policyDefinition: {
    name: definition.displayName ?? nameIn(assigned.policyDefinitionId),
    id: assigned.policyDefinitionId,
  },
});

const detailsOf = ({ assignment, assigned, definition, expressions }: Violation) => ({
  evaluationDetails: { evaluatedExpressions: expressions },
  policyDefinitionId: assigned.policyDefinitionId,
  policyDefinitionName: nameIn(assigned.policyDefinitionId),
  policyDefinitionDisplayName: definition.displayName,
  policyDefinitionEffect: "deny",
  policyAssignmentId: assignment.id,
  policyAssignmentName: nameIn(assignment.id),
  policyAssignmentDisplayName: assigned.displayName,
  policyAssignmentScope: parseId(assignment.id)!.parent,
  policyAssignmentParameters: assigned.parameters ?? {},
});

/**
 * What policies would refuse of a resource, as far as it is given. Restrictions of fields are not worked out:
 * a client has to ask with the whole resource. Nor are exemptions heeded: Azure's reference does not say that
 * they are.
 *
 * @see https://learn.microsoft.com/rest/api/policyinsights/policy-restrictions
 */
export function policyRestrictions(scope: string, sent: Body, view: View): Body {
  const details = sent["resourceDetails"] as
    { readonly resourceContent?: Content; readonly scope?: string } | undefined;
  const content = details?.resourceContent;
  if (typeof content?.type !== "string") {
    throw refuse(
      "InvalidCheckRestrictionsRequest",
      "The request must have resourceDetails.resourceContent with a 'type'.",
    );
  }
  return {
    fieldRestrictions: [],
    contentEvaluationResult: {
      policyEvaluations: violations(details?.scope ?? scope, content, view).map(
        ({ assignment, assigned, expressions }) => ({
          policyInfo: {
            policyDefinitionId: assigned.policyDefinitionId,
            policyAssignmentId: assignment.id,
          },
          evaluationResult: "NonCompliant",
          evaluationDetails: { evaluatedExpressions: expressions },
          effectDetails: { policyEffect: "Deny" },
        }),
      ),
    },
  };
}
