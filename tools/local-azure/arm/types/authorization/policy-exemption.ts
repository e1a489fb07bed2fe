import { AzureError, refuse } from "../../azure-error";
import { isWithin, keyOf, parseId } from "../../resources/ids";
import { View } from "../../resources/resource";
import { ResourceType } from "../resource-type";

type PolicyExemptionBody = {
  readonly policyAssignmentId: string;
  readonly exemptionCategory: string;
  /** ISO 8601; without it, it holds until it is deleted. */
  readonly expiresOn?: string;
};

const type = "Microsoft.Authorization/policyExemptions";

export const policyExemption: ResourceType<PolicyExemptionBody> = {
  token: "azure-native:authorization:PolicyExemption",
  type,
  isStateless: true,

  accept({ id, body }, view) {
    const { policyAssignmentId, exemptionCategory } = body;
    const assignment = view.find(policyAssignmentId);
    if (assignment === undefined) {
      throw new AzureError(
        404,
        "PolicyAssignmentNotFound",
        `The policy assignment '${policyAssignmentId}' is not found.`,
      );
    }
    if (!/^(Mitigated|Waiver)$/i.test(exemptionCategory)) {
      throw refuse(
        "InvalidPolicyExemption",
        `The policy exemption '${id.name}' has the category '${exemptionCategory}'.`,
      );
    }
    if (!isWithin(id.parent, parseId(assignment.id)!.parent)) {
      throw refuse(
        "InvalidPolicyExemption",
        `The policy exemption '${id.name}' is not within the scope of the policy assignment '${policyAssignmentId}'.`,
      );
    }
    return { body };
  },
};

/** Whether what an assignment denies is allowed at a scope all the same. */
export const isExempt = (scope: string, assignmentId: string, view: View, now: Date): boolean =>
  view.ofType(type).some(({ id, body }) => {
    const { policyAssignmentId, expiresOn } = body as PolicyExemptionBody;
    return (
      keyOf(policyAssignmentId) === keyOf(assignmentId) &&
      isWithin(scope, parseId(id)!.parent) &&
      (expiresOn === undefined || Date.parse(expiresOn) > now.getTime())
    );
  });
