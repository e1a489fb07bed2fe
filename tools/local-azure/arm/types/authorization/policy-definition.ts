import { refuse } from "../../azure-error";
import { builtInPolicies, type PolicyDefinitionBody } from "./policy";
import { checkExpression } from "../../policy/expressions";
import { checkCondition } from "../../policy/rule";
import { View } from "../../resources/resource";
import { ResourceType } from "../resource-type";

export const policyDefinition: ResourceType<PolicyDefinitionBody> = {
  token: "azure-native:authorization:PolicyDefinition",
  type: "Microsoft.Authorization/policyDefinitions",
  isStateless: true,
  required: ["policyRule.if", "policyRule.then.effect"],
  name: /^[^<>*%&:\\?.+/]{1,128}$/,

  accept({ id, body }) {
    const { policyRule, mode = "Indexed" } = body;
    try {
      if (!/^(all|indexed)$/i.test(mode)) throw new Error(`its mode is '${mode}'`);
      checkCondition(policyRule.if);
      checkExpression(policyRule.then.effect);
      if (!/^(\[.*\]|audit|deny|disabled)$/i.test(policyRule.then.effect)) {
        throw new Error("the local Azure knows the effects audit, deny and disabled");
      }
    } catch (error) {
      throw refuse(
        "InvalidPolicyRule",
        `Failed to parse policy rule: '${(error as Error).message}'. (${id.name})`,
      );
    }
    return { body: { ...body, mode } };
  },
};

/** A definition of the subscription, or one that every tenant has. */
export function definitionOf(id: string, view: View): PolicyDefinitionBody | undefined {
  const [, builtIn = ""] =
    /^\/providers\/Microsoft\.Authorization\/policyDefinitions\/([^/]+)$/i.exec(id) ?? [];
  return (
    builtInPolicies[builtIn.toLowerCase()] ??
    (view.find(id)?.body as PolicyDefinitionBody | undefined)
  );
}
