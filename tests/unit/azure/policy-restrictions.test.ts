import { text } from "node:stream/consumers";

import {
  getPolicyViolations,
  type PlannedResource,
  type PolicyAnswer,
} from "../../../components/azure/policy-restrictions";
import { ArmClient } from "../../../components/azure/resource-manager";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { serve } from "../../support/listen";

const authorization = "providers/Microsoft.Authorization";
const group = `${subscriptionPath}/resourceGroups/platform`;
const policy = (name: string) => `/${authorization}/policyDefinitions/${name}`;
const requireTag = policy("871b6d14-10aa-478d-b590-94f262ecfa99");
const assignmentAt = (scope: string) => `${scope}/${authorization}/policyAssignments/tags`;

const location = "westeurope";
const resource = (type: string, tags?: Record<string, string>): PlannedResource => ({
  content: { type, name: "a", location, tags },
  apiVersion: "2024-05-01",
});
const guard = resource("Microsoft.Network/networkSecurityGroups");
const ofGroup = resource("Microsoft.Resources/subscriptions/resourceGroups");

/** What Azure says of resources to be made in a group, under a policy that demands the tag costCenter. */
async function underPolicy(
  resources: readonly PlannedResource[],
  more: { readonly at?: string; readonly definition?: string; readonly exemption?: object } = {},
): Promise<PolicyAnswer> {
  const { at = subscriptionPath, definition = requireTag, exemption } = more;
  const { arm } = newArm();
  await arm.put(group, { location });
  const parameters = { tagName: { value: "costCenter" } };
  await arm.put(assignmentAt(at), { policyDefinitionId: definition, parameters });
  if (exemption) {
    await arm.put(`${group}/${authorization}/policyExemptions/ours`, {
      ...{ policyAssignmentId: assignmentAt(at), exemptionCategory: "Waiver" },
      ...exemption,
    });
  }
  return getPolicyViolations(resources, group, await connectionTo(arm));
}

it("names the policy that would refuse a resource, and what it looks at", async () => {
  const { violations, unread } = await underPolicy([guard]);

  expect(unread).toBeUndefined();
  expect(violations).toEqual([
    {
      resource: guard,
      assignment: assignmentAt(subscriptionPath),
      definition: requireTag,
      comparisons: [expect.objectContaining({ path: "tags[costCenter]", operator: "Exists" })],
    },
  ]);
});

it("asks of each resource, also of what was assigned at the group alone", async () => {
  const tagged = resource("Microsoft.Network/routeTables", { costCenter: "4711" });
  const untagged = resource("Microsoft.Network/loadBalancers");

  const { violations } = await underPolicy([tagged, guard, untagged], { at: group });

  expect(violations.map((one) => one.resource)).toEqual([guard, untagged]);
});

it("asks of a resource group at the subscription, in which it is made", async () => {
  const onGroups = policy("96670d01-0a4d-4649-9c89-2d3abc0a5025");

  const here = await underPolicy([ofGroup, guard], { definition: onGroups });
  const below = await underPolicy([ofGroup], { definition: onGroups, at: group });

  expect(here.violations.map((one) => one.resource)).toEqual([ofGroup]);
  expect(below.violations).toEqual([]);
});

it.each([
  ["holds for good", {}, 0],
  ["has not expired", { expiresOn: "2999-01-01T00:00:00Z" }, 0],
  ["has expired", { expiresOn: "2020-01-01T00:00:00Z" }, 1],
])("heeds an exemption that %s", async (_, more, left) => {
  const exemption = { description: "theirs", ...more };

  expect((await underPolicy([guard], { exemption })).violations).toHaveLength(left);
});

/** What is made of this answer of Azure's, and what it was asked. */
async function answered(
  status: number,
  body: object,
  resources = [guard],
  more: { readonly exemptions?: readonly object[]; readonly scope?: string } = {},
) {
  const { exemptions = [], scope = group } = more;
  const asked: { readonly url?: string; readonly body: string }[] = [];
  const azure = await serve(async (request, response) => {
    asked.push({ url: request.url, body: await text(request) });
    const isQuestion = request.method === "POST";
    response.writeHead(isQuestion ? status : 200);
    response.end(JSON.stringify(isQuestion ? body : { value: exemptions }));
  });
  const connection = { ...account, arm: new ArmClient(azure, "token", () => Promise.resolve()) };
  return { ...(await getPolicyViolations(resources, scope, connection)), asked };
}

const policyInfo = { policyAssignmentId: assignmentAt(group), policyDefinitionId: requireTag };

const evaluation = (result: string, effect: string) => ({
  contentEvaluationResult: {
    policyEvaluations: [
      { policyInfo, evaluationResult: result, effectDetails: { policyEffect: effect } },
    ],
  },
});

it.each([
  ["NonCompliant", "Deny", 1],
  ["NonCompliant", "deny", 1],
  ["NonCompliant", "Audit", 0],
  ["Error", "Deny", 0],
])("takes %s with effect %s for %i refusals", async (result, effect, count) => {
  expect((await answered(200, evaluation(result, effect))).violations).toHaveLength(count);
});

const restriction = (field: string, more: object = {}) => ({
  fieldRestrictions: [
    {
      field,
      restrictions: [{ result: "Required", policyEffect: "Deny", policy: policyInfo, ...more }],
    },
  ],
});

it.each([
  ["that is missing", {}, 1],
  ["by a policy that adds it", { policyEffect: "modify" }, 0],
  ["that is not demanded", { result: "Removed" }, 0],
])("takes a tag %s from the restrictions of fields", async (_, more, count) => {
  const { violations } = await answered(200, restriction("tags.costCenter", more));

  expect(violations.flatMap((one) => one.comparisons)).toEqual(
    Array(count).fill({ path: "tags.costCenter", operator: "Exists", targetValue: "false" }),
  );
});

it("takes a tag that is there for given, and no other field", async () => {
  const tagged = resource("Microsoft.Network/routeTables", { COSTCENTER: "4711" });

  const ofTag = await answered(200, restriction("tags.costCenter"), [tagged]);
  const ofField = await answered(200, restriction("location"));

  expect([...ofTag.violations, ...ofField.violations]).toEqual([]);
});

it("names a policy once that both lists have", async () => {
  const both = { ...evaluation("NonCompliant", "Deny"), ...restriction("tags.costCenter") };

  expect((await answered(200, both)).violations).toHaveLength(1);
});

it("asks for no exemptions where nothing is refused", async () => {
  const { asked } = await answered(200, {});

  expect(asked).toEqual([
    expect.objectContaining({ url: expect.stringContaining("checkPolicyRestrictions") }),
  ]);
});

it.each([
  ["in a group that is there", group, { scope: "/ids/vnet" }],
  ["in one that is not, without what the resource is a part of", subscriptionPath, {}],
])("asks with all that is known, and of tags in particular, %s", async (_, scope, parent) => {
  const subnet = { ...resource("Microsoft.Network/virtualNetworks/subnets"), parent: "/ids/vnet" };

  const { asked } = await answered(200, {}, [subnet], { scope });

  expect(asked.map(({ url }) => url?.split("?")[0])).toEqual([
    `${scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions`,
  ]);
  expect(JSON.parse(asked[0]!.body)).toEqual({
    resourceDetails: {
      resourceContent: JSON.parse(JSON.stringify(subnet.content)),
      apiVersion: "2024-05-01",
      ...parent,
    },
    pendingFields: [{ field: "tags" }],
  });
});

it.each([
  ["all of an initiative", {}, 0],
  ["this policy of it", { policyDefinitionReferenceIds: ["tags", "regions"] }, 0],
  ["this policy, in another case", { policyDefinitionReferenceIds: ["Tags"] }, 0],
  ["another policy of it", { policyDefinitionReferenceIds: ["regions"] }, 1],
])("heeds an exemption from %s", async (_, more, left) => {
  const ofInitiative = { ...policyInfo, policyDefinitionReferenceId: "tags" };
  const { policyAssignmentId } = policyInfo;
  const body = restriction("tags.costCenter", { policy: ofInitiative });
  const exemptions = [{ properties: { policyAssignmentId, ...more } }];

  const { violations } = await answered(200, body, [guard], { exemptions });

  expect(violations).toHaveLength(left);
});

it("says of a login that may not ask why nothing is known, and refuses nothing", async () => {
  const error = { code: "AuthorizationFailed", message: "The client has no authorization." };

  const { violations, unread } = await answered(403, { error }, [guard, ofGroup]);

  expect(violations).toEqual([]);
  expect(unread).toMatch(/POST \S+checkPolicyRestrictions\S*: 403 AuthorizationFailed/);
  expect(unread).not.toContain("\n");
});
