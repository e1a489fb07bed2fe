import { AzureError, refuse } from "../../azure-error";
import { ResourceType } from "../resource-type";
import { definitionOf } from "./policy-definition";

export type PolicyAssignmentBody = {
  readonly displayName?: string;
  readonly policyDefinitionId: string;
  readonly parameters?: Readonly<Record<string, { readonly value: unknown }>>;
  readonly notScopes?: readonly string[];
  /** DoNotEnforce: only what Azure reports changes by it. */
  readonly enforcementMode?: string;
  /** What is said to whoever it refuses something. */
  readonly nonComplianceMessages?: readonly { readonly message: string }[];
};

export const policyAssignmentType = "Microsoft.Authorization/policyAssignments";

export const policyAssignment: ResourceType<PolicyAssignmentBody> = {
  token: "azure-native:authorization:PolicyAssignment",
  type: policyAssignmentType,
  isStateless: true,
  // Needed by effects that the local Azure does not know.
  readOnly: ["location"],
  required: ["policyDefinitionId"],
  name: /^[^<>*%&:\\?.+/]{1,128}$/,

  accept({ id, body }, view) {
    const { policyDefinitionId, enforcementMode = "Default" } = body;
    const definition = definitionOf(policyDefinitionId, view);
    if (definition === undefined) {
      throw new AzureError(
        404,
        "PolicyDefinitionNotFound",
        `The policy definition '${policyDefinitionId}' could not be found.`,
      );
    }
    const { parameters: known = {} } = definition;
    const given = body.parameters ?? {};
    const unknown = Object.keys(given).filter((name) => !(name in known));
    const missing = Object.entries(known)
      .filter(([name, { defaultValue }]) => defaultValue === undefined && !(name in given))
      .map(([name]) => name);
    if (unknown.length > 0) {
      throw refuse(
        "UndefinedPolicyParameter",
        `The policy assignment '${id.name}' has defined parameters '${unknown.join(",")}' which are not defined in the policy definition '${policyDefinitionId}'.`,
      );
    }
    if (missing.length > 0) {
      throw refuse(
        "MissingPolicyParameter",
        `The policy assignment '${id.name}' is missing the parameter(s) '${missing.join(",")}' as defined in the policy definition '${policyDefinitionId}'.`,
      );
    }
    for (const [name, { value }] of Object.entries(given)) {
      const allowed = known[name]!.allowedValues;
      if (allowed === undefined || allowed.includes(value)) continue;
      throw refuse(
        "PolicyParameterValueNotAllowed",
        `The value '${String(value)}' is not allowed for policy parameter '${name}' in policy definition '${policyDefinitionId}'. ` +
          `The allowed values are '${allowed.join(", ")}'.`,
      );
    }
    return { body: { ...body, enforcementMode } };
  },
};
