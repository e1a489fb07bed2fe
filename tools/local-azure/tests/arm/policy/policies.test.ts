import type { AzureError } from "../../../arm/azure-error";
import type { ResourceManager } from "../../../arm/resource-manager";
import type { Body } from "../../../arm/resources/resource";
import { serveRest } from "../../../arm/rest/rest";
import { createResources, newArm } from "../../support/arm/fixture";
import { itAnswers, patch, put, remove, taken } from "../../support/arm/input-tables";
import { group, network, subscription, valid, withChange } from "../../support/arm/valid-resources";

const builtIn = (name: string) => `/providers/Microsoft.Authorization/policyDefinitions/${name}`;
const requireTag = builtIn("871b6d14-10aa-478d-b590-94f262ecfa99");
const requireTagOnGroups = builtIn("96670d01-0a4d-4649-9c89-2d3abc0a5025");
const notAllowedTypes = builtIn("6c112d4e-5bc7-47ae-a041-ea2d9dccd749");
const allowedLocations = builtIn("e56962a6-4747-49cd-b67b-bf8b01975c4c");
const allowedSizes = builtIn("cccc23c7-8427-4f53-ad12-b6a63eb452b3");
const noPublicInterfaces = builtIn("83a86a26-fd1f-447c-b59d-e51f44264114");

const assignmentAt = (scope: string) =>
  `${scope}/providers/Microsoft.Authorization/policyAssignments/guardrail`;
const assign = (policyDefinitionId: string, more: Body = {}, scope = subscription) =>
  put(assignmentAt(scope), { policyDefinitionId, ...more });
const location = "westeurope";
const tagged = { location, tags: { costCenter: "4711" } };
const costCenter = { tagName: { value: "costCenter" } };
const guard = network("networkSecurityGroups/guard");
const otherGroup = `${group}-2`;
const addresses = {
  listOfResourceTypesNotAllowed: { value: ["microsoft.network/publicipaddresses"] },
};
const [address, addressBody] = valid.apiIp;
const inOtherGroup = address.replace(group, otherGroup);

const tagRequired = assign(requireTag, { parameters: costCenter });
const groupTagRequired = assign(requireTagOnGroups, { parameters: costCenter });
const noAddresses = (more: Body = {}, scope?: string) =>
  assign(notAllowedTypes, { parameters: addresses, ...more }, scope);
const allow = (policy: string, name: string, value: string) =>
  assign(policy, { parameters: { [name]: { value: [value] } } });
const exemptionAt = (scope: string) =>
  `${scope}/providers/Microsoft.Authorization/policyExemptions/here`;
const exempt = (change: Body = {}, scope: string = group) =>
  put(exemptionAt(scope), {
    ...{ policyAssignmentId: assignmentAt(subscription), exemptionCategory: "Waiver" },
    ...change,
  });

const disallowed = "RequestDisallowedByPolicy: Resource ";
const madeAddress = put(address, addressBody);
itAnswers("group", [
  // In mode Indexed it looks only at what has tags and a location, and at no resource group.
  ["a resource without the tag", disallowed, tagRequired, put(guard, { location })],
  ["a resource with the tag", taken, tagRequired, put(guard, tagged)],
  ["a group without a resource's tag", taken, tagRequired, put(otherGroup, { location })],
  [
    "a subnet without the tag",
    taken,
    tagRequired,
    put(valid.vnet[0], { ...valid.vnet[1], ...tagged }),
    put(valid.subnet[0], { addressPrefix: "172.16.9.0/24" }),
  ],
  ["the tag's end by PUT", disallowed, tagRequired, put(guard, tagged), put(guard, { location })],
  [
    "the tag's end by PATCH",
    disallowed,
    tagRequired,
    put(guard, tagged),
    patch(guard, { tags: {} }),
  ],
  ["a group without the tag", disallowed, groupTagRequired, put(otherGroup, { location })],
  ["a group with the tag", taken, groupTagRequired, put(otherGroup, tagged)],
  ["a resource without a group's tag", taken, groupTagRequired, put(guard, { location })],
  [
    "a resource without the tag, with the assignment's words",
    "RequestDisallowedByPolicy: .* Reasons: 'Say who pays.'",
    assign(requireTag, {
      ...{ parameters: costCenter, nonComplianceMessages: [{ message: "Say who pays." }] },
    }),
    put(guard, { location }),
  ],
  ["a type in any case of letters", disallowed, noAddresses(), madeAddress],
  ["another type", taken, noAddresses(), put(guard, { location })],
  [
    "a type that is audited",
    taken,
    noAddresses({ parameters: { ...addresses, effect: { value: "Audit" } } }),
    madeAddress,
  ],
  ["what is not enforced", taken, noAddresses({ enforcementMode: "DoNotEnforce" }), madeAddress],
  ["what leaves the group out", taken, noAddresses({ notScopes: [group] }), madeAddress],
  [
    "a type beside the scope",
    taken,
    noAddresses({}, group),
    put(otherGroup, { location }),
    put(inOtherGroup, addressBody),
  ],
  [
    "a type once the assignment is gone",
    taken,
    noAddresses(),
    remove(assignmentAt(subscription)),
    madeAddress,
  ],
  ["a type at an exemption", taken, noAddresses(), exempt(), madeAddress],
  [
    "a type beside an exemption",
    disallowed,
    noAddresses(),
    put(otherGroup, { location }),
    exempt(),
    put(inOtherGroup, addressBody),
  ],
  [
    "a type at an exemption that has expired",
    disallowed,
    noAddresses(),
    exempt({ expiresOn: "2020-01-01T00:00:00Z" }),
    madeAddress,
  ],
  [
    "an exemption of no assignment",
    "PolicyAssignmentNotFound",
    noAddresses(),
    exempt({ policyAssignmentId: assignmentAt(otherGroup) }),
  ],
  [
    "an exemption of no category",
    "InvalidPolicyExemption",
    noAddresses(),
    exempt({ exemptionCategory: "Mercy" }),
  ],
  [
    "an exemption above its assignment",
    "InvalidPolicyExemption",
    noAddresses({}, group),
    exempt({ policyAssignmentId: assignmentAt(group) }, subscription),
  ],
  ["no definition", "PolicyDefinitionNotFound", assign(builtIn("none"))],
  ["an assignment without a parameter", "MissingPolicyParameter", assign(requireTag)],
  [
    "an assignment with an unknown one",
    "UndefinedPolicyParameter",
    assign(requireTag, { parameters: { ...costCenter, tag: { value: "a" } } }),
  ],
  [
    "an assignment with a wrong value",
    "PolicyParameterValueNotAllowed",
    assign(notAllowedTypes, { parameters: { ...addresses, effect: { value: "deny" } } }),
  ],
]);

const inRegion = (region: string) => allow(allowedLocations, "listOfAllowedLocations", region);
const ofSize = (size: string) => allow(allowedSizes, "listOfAllowedSKUs", size);
const machine = put(...valid.machine);
const own = network("publicIPAddresses/own");
const openNic = withChange("nic", { "ipConfigurations.0.publicIPAddress": { id: own } });
itAnswers("balancer", [
  ["a machine elsewhere", disallowed, put(...valid.nic), inRegion("northeurope"), machine],
  ["a machine where it may be", taken, put(...valid.nic), inRegion(location), machine],
  ["a machine of another size", disallowed, put(...valid.nic), ofSize("Standard_D4s_v5"), machine],
  ["a machine of its size", taken, put(...valid.nic), ofSize("Standard_D2s_v5"), machine],
  ["an interface", taken, assign(noPublicInterfaces), put(...valid.nic)],
  [
    "an interface with a public address",
    disallowed,
    put(own, valid.natIp[1]),
    assign(noPublicInterfaces),
    put(valid.nic[0], openNic),
  ],
]);

async function withPolicy(step: ReturnType<typeof assign>): Promise<ResourceManager> {
  const { arm } = newArm();
  await createResources(arm, "group");
  await step(arm);
  return arm;
}

/** What Azure answers by HTTP. */
async function ask(arm: ResourceManager, method: string, path: string, body: Body) {
  const server = await serveRest(arm, 0);
  try {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers: { authorization: "Bearer anything" },
      body: method === "GET" ? undefined : JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  } finally {
    await server.close();
  }
}

it("says in a refusal by whom, and what the policy looked at, by HTTP too", async () => {
  const arm = await withPolicy(tagRequired);
  const error: AzureError = await arm.put(guard, { location }).then(
    () => Promise.reject(new Error("not refused")),
    (refusal: AzureError) => refusal,
  );
  const answer = await ask(arm, "PUT", `${guard}?api-version=2024-05-01`, { location });

  expect(error).toMatchObject({
    ...{ status: 403, code: "RequestDisallowedByPolicy", target: "guard" },
    additionalInfo: [
      {
        type: "PolicyViolation",
        info: {
          policyAssignmentId: assignmentAt(subscription),
          policyDefinitionId: requireTag,
          evaluationDetails: {
            evaluatedExpressions: [
              {
                ...{ result: "True", expressionKind: "Field", operator: "Exists" },
                ...{ expression: "tags[costCenter]", path: "tags[costCenter]" },
                targetValue: "false",
              },
            ],
          },
        },
      },
    ],
  });
  expect(error.message).toContain(
    `Policy identifiers: '[{"policyAssignment":{"name":"guardrail","id":"${assignmentAt(subscription)}"},` +
      `"policyDefinition":{"name":"Require a tag on resources","id":"${requireTag}"}}]'`,
  );
  expect(answer).toMatchObject({
    status: 403,
    body: { error: { additionalInfo: [{ type: "PolicyViolation" }] } },
  });
});

const content = { type: "Microsoft.Network/publicIPAddresses", name: "a", location };
const evaluation = {
  policyInfo: { policyAssignmentId: assignmentAt(group), policyDefinitionId: notAllowedTypes },
  evaluationResult: "NonCompliant",
  evaluationDetails: {
    evaluatedExpressions: [
      { path: "type", operator: "In", result: "True" },
      { expressionKind: "Value", operator: "Exists" },
    ],
  },
  effectDetails: { policyEffect: "Deny" },
};
const evaluated = (...policyEvaluations: object[]) => ({
  contentEvaluationResult: { policyEvaluations },
});
it.each<[what: string, scope: string, content: Body, status: number, body?: Body, method?: string]>(
  [
    ["a type at the assignment", group, content, 200, evaluated(evaluation)],
    ["a type above it", subscription, content, 200, evaluated()],
    ["a group that is not there", otherGroup, content, 404],
    ["a resource without a type", group, {}, 400],
    ["a type by GET", group, content, 405, {}, "GET"],
  ],
)(
  "says what a policy would refuse of %s",
  async (_, scope, resourceContent, status, body = {}, method = "POST") => {
    const arm = await withPolicy(noAddresses({}, group));
    const at = `${scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions`;

    const sent = { resourceDetails: { resourceContent } };
    expect(await ask(arm, method, `${at}?api-version=2024-10-01`, sent)).toMatchObject({
      status,
      body,
    });
  },
);
