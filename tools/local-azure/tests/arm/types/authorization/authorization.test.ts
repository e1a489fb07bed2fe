import { Durations } from "../../../../arm/durations";
import { account, subscriptionPath } from "../../../../arm/resources/ids";
import { Body } from "../../../../arm/resources/resource";
import { createResources, ManualClock, newArm, refusedBy } from "../../../support/arm/fixture";
import { itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { group, reader, roleDefinition } from "../../../support/arm/valid-resources";

const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
const guid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
const assignment = (scope: string, digit: number) =>
  `${scope}/providers/Microsoft.Authorization/roleAssignments/${guid(digit)}`;
const networkContributor = roleDefinition("4d97b98b-1d4f-4787-a291-c67834d212e7");

async function withIdentity() {
  const { arm } = newArm();
  await createResources(arm, "group");
  const { body } = await arm.put(identity, { location: "westeurope" });
  const principalId = String(body["principalId"]);
  const grant = {
    principalId,
    principalType: "ServicePrincipal",
    roleDefinitionId: networkContributor,
  };
  return { arm, grant };
}

it("keeps the ids of an identity in an update", async () => {
  const { arm } = await withIdentity();
  const before = arm.peek(identity)!;

  await arm.put(identity, { location: "westeurope", tags: { a: "b" } });

  const { principalId, clientId, tenantId } = before;
  expect(arm.peek(identity)).toMatchObject({ principalId, clientId, tenantId, tags: { a: "b" } });
});

itRefuses("assignment", [
  [
    { principalId: account.objectId, principalType: "User" },
    "UnmatchedPrincipalType: .*PrinciaplType 'User'",
  ],
  [{ principalId: guid(9) }, "PrincipalNotFound"],
  [{ roleDefinitionId: roleDefinition(guid(9)) }, "RoleDefinitionDoesNotExist"],
]);
itNeverChanges("assignment", [
  [{ principalId: "other" }, "RoleAssignmentUpdateNotPermitted"],
  [{ roleDefinitionId: networkContributor }, "RoleAssignmentUpdateNotPermitted"],
]);

it("does not know a new identity and a new role for a while, as long as things take time at all", async () => {
  const clock = new ManualClock();
  const seconds = Object.fromEntries(
    ["ManagedIdentity/userAssignedIdentities", "Authorization/roleDefinitions"].map((type) => [
      `Microsoft.${type}`,
      { create: 0 },
    ]),
  );
  const { arm } = newArm({ clock, durations: new Durations({ factor: 1, seconds }) });
  const role = roleDefinition(guid(7));
  await clock.until(createResources(arm, "group"));
  await arm.put(role, {
    roleName: "own",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [subscriptionPath],
  });
  const { body } = await arm.put(identity, { location: "westeurope" });
  const wanted = { principalId: String(body["principalId"]), roleDefinitionId: role };
  const assigned = (change: Body = {}) =>
    refusedBy(clock.until(arm.put(assignment(group, 1), { ...wanted, ...change })));

  const atOnce = await assigned();
  clock.advance(29);
  const ofRole = await assigned({ principalId: account.objectId });
  clock.advance(1);

  expect(atOnce).toMatch(/^PrincipalNotFound/);
  expect(ofRole).toMatch(/^RoleDefinitionDoesNotExist/);
  expect(await assigned()).toBe("not refused");
});

it("refuses the same assignment under another name, and another one under the same", async () => {
  const { arm, grant } = await withIdentity();
  await arm.put(assignment(group, 1), grant);

  const duplicate = arm.put(assignment(group, 2), grant);
  const other = arm.put(assignment(group, 1), {
    ...grant,
    roleDefinitionId: roleDefinition(reader),
  });
  const elsewhere = arm.put(assignment(subscriptionPath, 3), grant);

  expect(await refusedBy(duplicate)).toMatch(/^RoleAssignmentExists/);
  expect(await refusedBy(other)).toMatch(/^RoleAssignmentUpdateNotPermitted/);
  expect(await refusedBy(elsewhere)).toBe("not refused");
});

it("refuses a custom role that says too little, and a second one of its name", async () => {
  const { arm } = newArm();
  const whole = {
    roleName: "reads",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [subscriptionPath],
  };
  const put = (digit: number, change: Body = {}) =>
    refusedBy(arm.put(roleDefinition(guid(digit)), { ...whole, ...change }));

  for (const part of ["roleName", "permissions", "assignableScopes"]) {
    expect(await put(7, { [part]: undefined })).toMatch(/^InvalidRoleDefinition/);
  }
  expect([await put(7), await put(7)]).toEqual(["not refused", "not refused"]);
  expect(await put(8)).toMatch(/^RoleDefinitionWithSameNameExists/);
});

it("keeps the assignments of a deleted identity, and deletes those of a deleted scope", async () => {
  const { arm, grant } = await withIdentity();
  const [inGroup, onIdentity, above] = [
    assignment(group, 1),
    assignment(identity, 2),
    assignment(subscriptionPath, 3),
  ];
  for (const id of [inGroup, onIdentity, above]) await arm.put(id, grant);

  await arm.delete(identity);
  expect([inGroup, onIdentity, above].map((id) => arm.peek(id) !== undefined)).toEqual([
    true,
    false,
    true,
  ]);

  await arm.delete(group);
  expect([inGroup, above].map((id) => arm.peek(id) !== undefined)).toEqual([false, true]);
});

it("does not delete a custom role that is assigned", async () => {
  const { arm, grant } = await withIdentity();
  const role = roleDefinition(guid(7));
  await arm.put(role, {
    roleName: "reads",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [subscriptionPath],
  });
  await arm.put(assignment(subscriptionPath, 1), { ...grant, roleDefinitionId: role });

  expect(await refusedBy(arm.delete(role))).toMatch(/^RoleDefinitionHasAssignments/);
  await arm.delete(assignment(subscriptionPath, 1));
  expect(await refusedBy(arm.delete(role))).toBe("not refused");
});

it("deletes no custom role whose assignment was deleted a moment ago, as long as things take time at all", async () => {
  const clock = new ManualClock();
  const seconds = { "Microsoft.Authorization/roleDefinitions": { create: 0, delete: 0 } };
  const { arm } = newArm({ clock, durations: new Durations({ factor: 1, seconds }) });
  const role = roleDefinition(guid(7));
  await arm.put(role, {
    roleName: "own",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [subscriptionPath],
  });
  clock.advance(30);
  const one = assignment(subscriptionPath, 1);
  const wanted = { principalId: account.objectId, roleDefinitionId: role };
  await clock.until(arm.put(one, wanted));
  await clock.until(arm.delete(one));

  expect(await refusedBy(arm.delete(role))).toMatch(/^RoleDefinitionHasAssignments/);
  clock.advance(29);
  expect(await refusedBy(arm.delete(role))).toMatch(/^RoleDefinitionHasAssignments/);
  clock.advance(1);
  expect(await refusedBy(arm.delete(role))).toBe("not refused");
});
