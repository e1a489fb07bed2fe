import type { AzureError } from "../../../arm/azure-error";
import type { Body } from "../../../arm/resources/resource";
import { serveRest } from "../../../arm/rest/rest";
import { createResources, newArm, refusedBy } from "../../support/arm/fixture";
import { group, network, subscription, valid } from "../../support/arm/valid-resources";

const builtIn = (name: string) => `/providers/Microsoft.Authorization/policyDefinitions/${name}`;
const requireTag = builtIn("871b6d14-10aa-478d-b590-94f262ecfa99");
const requireTagOnGroups = builtIn("96670d01-0a4d-4649-9c89-2d3abc0a5025");
const notAllowedTypes = builtIn("6c112d4e-5bc7-47ae-a041-ea2d9dccd749");
const allowedLocations = builtIn("e56962a6-4747-49cd-b67b-bf8b01975c4c");
const allowedSizes = builtIn("cccc23c7-8427-4f53-ad12-b6a63eb452b3");
const noForwarding = builtIn("88c0b9da-ce96-4b03-9635-f29a937e2900");
const noPublicInterfaces = builtIn("83a86a26-fd1f-447c-b59d-e51f44264114");

const assignmentAt = (scope: string) =>
  `${scope}/providers/Microsoft.Authorization/policyAssignments/guardrail`;
const definition = `${subscription}${builtIn("own")}`;
const location = "westeurope";
const tagged = { location, tags: { costCenter: "4711" } };
const costCenter = { tagName: { value: "costCenter" } };
const guard = network("networkSecurityGroups/guard");
const subnet = network("virtualNetworks/vnet/subnets/nodes-9");

/** A Resource Manager with a group, and a policy assigned. */
async function withPolicy(policyDefinitionId: string, more: Body = {}, scope = subscription) {
  const { arm } = newArm();
  await arm.put(group, { location });
  await arm.put(assignmentAt(scope), { policyDefinitionId, ...more });
  return arm;
}

const thrownBy = (request: Promise<unknown>): Promise<AzureError> =>
  request.then(
    () => Promise.reject(new Error("not refused")),
    (error: AzureError) => error,
  );

it("refuses a resource without the tag, in Azure's words and with what the policy looked at", async () => {
  const arm = await withPolicy(requireTag, { parameters: costCenter });

  const { status, code, message, target, additionalInfo } = await thrownBy(
    arm.put(guard, { location, tags: { owner: "us" } }),
  );

  expect({ status, code, target }).toEqual({
    status: 403,
    code: "RequestDisallowedByPolicy",
    target: "guard",
  });
  expect(message).toBe(
    `Resource 'guard' was disallowed by policy. Policy identifiers: '[{"policyAssignment":{"name":"guardrail","id":"${assignmentAt(subscription)}"},` +
      `"policyDefinition":{"name":"Require a tag on resources","id":"${requireTag}"}}]'.`,
  );
  expect(additionalInfo).toEqual([
    {
      type: "PolicyViolation",
      info: expect.objectContaining({
        policyAssignmentId: assignmentAt(subscription),
        policyDefinitionId: requireTag,
        evaluationDetails: {
          evaluatedExpressions: [
            {
              result: "True",
              expressionKind: "Field",
              expression: "tags[costCenter]",
              path: "tags[costCenter]",
              targetValue: "false",
              operator: "Exists",
            },
          ],
        },
      }),
    },
  ]);
  expect(arm.peek(guard)).toBeUndefined();
});

it("takes the message of the assignment for people instead of the policy's ids", async () => {
  const nonComplianceMessages = [{ message: "Say who pays." }];
  const arm = await withPolicy(requireTag, { parameters: costCenter, nonComplianceMessages });

  expect(await refusedBy(arm.put(guard, { location }))).toBe(
    "RequestDisallowedByPolicy: Resource 'guard' was disallowed by policy. Reasons: 'Say who pays.'. See error details for policy resource IDs.",
  );
});

it("looks in mode Indexed only at what has tags and a location, and at no resource group", async () => {
  const arm = await withPolicy(requireTag, { parameters: costCenter });
  await arm.put(network("virtualNetworks/vnet"), {
    ...tagged,
    addressSpace: { addressPrefixes: ["172.16.0.0/16"] },
  });

  await expect(arm.put(`${group}-2`, { location })).resolves.toBeDefined();
  await expect(arm.put(subnet, { addressPrefix: "172.16.9.0/24" })).resolves.toBeDefined();
  await expect(arm.put(guard, tagged)).resolves.toBeDefined();
});

it("refuses a resource group without a tag by the policy for groups", async () => {
  const arm = await withPolicy(requireTagOnGroups, { parameters: costCenter });

  expect(await refusedBy(arm.put(`${group}-2`, { location }))).toMatch(
    /RequestDisallowedByPolicy: Resource 'zoned-2'/,
  );
  await expect(arm.put(`${group}-2`, tagged)).resolves.toBeDefined();
  await expect(arm.put(guard, { location })).resolves.toBeDefined();
});

it("refuses a change that takes the tag away, by PUT and by PATCH", async () => {
  const arm = await withPolicy(requireTag, { parameters: costCenter });
  await arm.put(guard, tagged);

  for (const change of [arm.put(guard, { location }), arm.patch(guard, { tags: {} })]) {
    expect(await refusedBy(change)).toMatch(/RequestDisallowedByPolicy/);
  }
  expect(arm.peek(guard)).toMatchObject(tagged);
});

const addresses = {
  listOfResourceTypesNotAllowed: { value: ["microsoft.network/publicipaddresses"] },
};
const [address, addressBody] = valid.apiIp;

it("refuses types that are not allowed, in any case of letters, and no other", async () => {
  const arm = await withPolicy(notAllowedTypes, { parameters: addresses });

  expect(await refusedBy(arm.put(address, addressBody))).toMatch(/RequestDisallowedByPolicy/);
  await expect(arm.put(guard, { location })).resolves.toBeDefined();
});

it.each([
  ["whose effect is audit", { parameters: { ...addresses, effect: { value: "Audit" } } }],
  ["that is not enforced", { parameters: addresses, enforcementMode: "DoNotEnforce" }],
  ["that leaves the group out", { parameters: addresses, notScopes: [group] }],
])("refuses nothing by a policy %s", async (_, more) => {
  const arm = await withPolicy(notAllowedTypes, more);

  await expect(arm.put(address, addressBody)).resolves.toBeDefined();
});

it("refuses nothing beside the scope of a policy", async () => {
  const arm = await withPolicy(notAllowedTypes, { parameters: addresses }, group);
  await arm.put(`${group}-2`, { location });

  await expect(arm.put(address.replace(group, `${group}-2`), addressBody)).resolves.toBeDefined();
});

it("refuses nothing once the assignment is gone", async () => {
  const arm = await withPolicy(notAllowedTypes, { parameters: addresses });

  await arm.delete(assignmentAt(subscription));

  await expect(arm.put(address, addressBody)).resolves.toBeDefined();
});

it.each([
  ["location", allowedLocations, "listOfAllowedLocations", "northeurope", location],
  ["size", allowedSizes, "listOfAllowedSKUs", "Standard_D4s_v5", "Standard_D2s_v5"],
])("refuses a machine for its %s alone, by the built-in policy", async (_, policy, ...rest) => {
  const [name, other, its] = rest;
  const allow = (value: string) => ({
    policyDefinitionId: policy,
    parameters: { [name]: { value: [value] } },
  });
  const { arm } = newArm();
  await createResources(arm, "nic");
  await arm.put(assignmentAt(group), allow(other));

  expect(await refusedBy(arm.put(...valid.machine))).toMatch(/RequestDisallowedByPolicy/);
  await arm.put(assignmentAt(group), allow(its));
  await expect(arm.put(...valid.machine)).resolves.toBeDefined();
});

it("refuses an interface for one public address among its configurations", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");
  await arm.put(network("publicIPAddresses/own"), valid.natIp[1]);
  await arm.put(assignmentAt(group), { policyDefinitionId: noPublicInterfaces });
  const [id, body] = valid.nic;
  const [first] = body.ipConfigurations;
  const open = { ...first, publicIPAddress: { id: network("publicIPAddresses/own") } };

  await expect(arm.put(id, body)).resolves.toBeDefined();
  expect(await refusedBy(arm.put(id, { ...body, ipConfigurations: [open] }))).toMatch(
    /RequestDisallowedByPolicy/,
  );
});

it("refuses an interface that forwards, and lets one that exists stop that in place", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const [id, body] = valid.nic;
  await arm.put(id, { ...body, enableIPForwarding: true });
  await arm.put(assignmentAt(group), { policyDefinitionId: noForwarding });

  expect(await refusedBy(arm.put(id, { ...body, enableIPForwarding: true }))).toMatch(
    /RequestDisallowedByPolicy/,
  );
  await expect(arm.put(id, { ...body, enableIPForwarding: false })).resolves.toBeDefined();
});

describe("an exemption", () => {
  const exemptionAt = (scope: string) =>
    `${scope}/providers/Microsoft.Authorization/policyExemptions/here`;
  const waiver = {
    policyAssignmentId: assignmentAt(subscription),
    exemptionCategory: "Waiver",
  };

  it("allows at its scope what the policy denies, and nowhere else", async () => {
    const arm = await withPolicy(notAllowedTypes, { parameters: addresses });
    await arm.put(`${group}-2`, { location });
    await arm.put(exemptionAt(group), waiver);

    await expect(arm.put(address, addressBody)).resolves.toBeDefined();
    expect(await refusedBy(arm.put(address.replace(group, `${group}-2`), addressBody))).toMatch(
      /RequestDisallowedByPolicy/,
    );
  });

  it("allows nothing once it has expired", async () => {
    const arm = await withPolicy(notAllowedTypes, { parameters: addresses });
    await arm.put(exemptionAt(group), { ...waiver, expiresOn: "2020-01-01T00:00:00Z" });

    expect(await refusedBy(arm.put(address, addressBody))).toMatch(/RequestDisallowedByPolicy/);
  });

  it("is refused of an assignment that is not there", async () => {
    const arm = await withPolicy(notAllowedTypes, { parameters: addresses });
    const policyAssignmentId = assignmentAt(`${group}-3`);

    expect(await refusedBy(arm.put(exemptionAt(group), { ...waiver, policyAssignmentId }))).toMatch(
      /^PolicyAssignmentNotFound/,
    );
  });

  it("is refused above the scope of its assignment", async () => {
    const arm = await withPolicy(notAllowedTypes, { parameters: addresses }, group);
    const above = { ...waiver, policyAssignmentId: assignmentAt(group) };

    expect(await refusedBy(arm.put(exemptionAt(subscription), above))).toMatch(
      /^InvalidPolicyExemption/,
    );
  });
});

/** A definition of the subscription's own with this condition. */
const own = (condition: Body, effect = "deny"): [string, Body] => [
  definition,
  { mode: "All", policyRule: { if: condition, then: { effect } } },
];

it.each<[string, Body]>([
  [
    "anyOf",
    {
      anyOf: [
        { field: "name", equals: "other" },
        { field: "name", equals: "GUARD" },
      ],
    },
  ],
  ["not", { not: { field: "name", equals: "other" } }],
  ["notEquals of what is missing", { field: "tags.owner", notEquals: "us" }],
  ["notIn of what is missing", { field: "tags['owner']", notIn: ["us"] }],
  ["like", { field: "name", like: "gu*d" }],
  ["notLike", { field: "name", notLike: "a.*" }],
  ["exists", { field: "location", exists: true }],
  ["value", { value: "[concat('it''s ', field('name'))]", equals: "it's guard" }],
])("evaluates %s", async (_, condition) => {
  const { arm } = newArm();
  await arm.put(group, { location });
  await arm.put(...own(condition));
  await arm.put(assignmentAt(group), { policyDefinitionId: definition });

  expect(await refusedBy(arm.put(guard, { location }))).toMatch(/RequestDisallowedByPolicy/);
});

it.each<[string, Body, string]>([
  ["operator", { field: "name", matches: "a" }, "'matches'"],
  ["operator deep inside", { not: { anyOf: [{ field: "name", matches: "a" }] } }, "'matches'"],
  ["function", { field: "[utcNow()]", equals: "a" }, "'utcNow'"],
  ["condition", { equals: "a" }, "field or value"],
])("refuses a rule with a %s that it does not evaluate", async (_, condition, named) => {
  const { arm } = newArm();

  expect(await refusedBy(arm.put(...own(condition)))).toMatch(
    new RegExp(`^InvalidPolicyRule: .*${named}`),
  );
});

it("refuses a rule with an effect that it does not have", async () => {
  const { arm } = newArm();

  expect(await refusedBy(arm.put(...own({ field: "name", like: "*" }, "modify")))).toMatch(
    /^InvalidPolicyRule/,
  );
});

it.each([
  ["PolicyDefinitionNotFound", builtIn("none"), {}],
  ["MissingPolicyParameter", requireTag, {}],
  ["UndefinedPolicyParameter", requireTag, { ...costCenter, tag: { value: "a" } }],
  ["PolicyParameterValueNotAllowed", notAllowedTypes, { ...addresses, effect: { value: "deny" } }],
])("refuses an assignment: %s", async (code, policyDefinitionId, parameters) => {
  const { arm } = newArm();

  const refusal = await refusedBy(
    arm.put(assignmentAt(subscription), { policyDefinitionId, parameters }),
  );

  expect(refusal).toMatch(new RegExp(`^${code}: `));
});

describe("asked what a policy would refuse", () => {
  const content = { type: "Microsoft.Network/publicIPAddresses", name: "a", location };

  async function ask(scope: string, body: Body, method = "POST") {
    const arm = await withPolicy(notAllowedTypes, { parameters: addresses }, group);
    const server = await serveRest(arm, 0);
    try {
      const url = `http://127.0.0.1:${server.port}${scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions?api-version=2024-10-01`;
      const answer = await fetch(url, {
        method,
        headers: { authorization: "Bearer anything" },
        ...(method === "POST" && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json() };
    } finally {
      await server.close();
    }
  }

  it("answers with assignment, definition and what was compared, and makes nothing", async () => {
    const { status, body } = await ask(group, { resourceDetails: { resourceContent: content } });

    expect(status).toBe(200);
    expect(body).toEqual({
      fieldRestrictions: [],
      contentEvaluationResult: {
        policyEvaluations: [
          {
            policyInfo: {
              policyAssignmentId: assignmentAt(group),
              policyDefinitionId: notAllowedTypes,
            },
            evaluationResult: "NonCompliant",
            evaluationDetails: {
              evaluatedExpressions: [
                expect.objectContaining({ path: "type", operator: "In", result: "True" }),
                expect.objectContaining({ expressionKind: "Value", operator: "Exists" }),
              ],
            },
            effectDetails: { policyEffect: "Deny" },
          },
        ],
      },
    });
  });

  it("knows nothing at a scope above the assignment's", async () => {
    const { body } = await ask(subscription, { resourceDetails: { resourceContent: content } });

    expect(body).toMatchObject({ contentEvaluationResult: { policyEvaluations: [] } });
  });

  it.each([
    [
      "a group that is not there",
      `${group}-2`,
      { resourceDetails: { resourceContent: content } },
      404,
    ],
    ["a resource without a type", group, { resourceDetails: { resourceContent: {} } }, 400],
  ])("refuses to speak of %s", async (_, scope, body, status) => {
    expect((await ask(scope, body)).status).toBe(status);
  });

  it("answers a POST alone", async () => {
    expect((await ask(group, {}, "GET")).status).toBe(405);
  });
});

it("shows programs the details of a refusal", async () => {
  const arm = await withPolicy(requireTag, { parameters: costCenter });
  const server = await serveRest(arm, 0);
  try {
    const answer = await fetch(`http://127.0.0.1:${server.port}${guard}?api-version=2024-05-01`, {
      method: "PUT",
      headers: { authorization: "Bearer anything" },
      body: JSON.stringify({ location }),
    });

    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({
      error: {
        code: "RequestDisallowedByPolicy",
        additionalInfo: [{ type: "PolicyViolation" }],
      },
    });
  } finally {
    await server.close();
  }
});
