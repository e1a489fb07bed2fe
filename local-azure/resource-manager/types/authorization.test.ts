import { build, newCloud, refusedBy } from "../fixture";
import { subscriptionPath } from "../ids";
import { Body } from "../resource-type";
import { group } from "../sample";

const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
const guid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
const assignment = (scope: string, digit: number) =>
  `${scope}/providers/Microsoft.Authorization/roleAssignments/${guid(digit)}`;
const definition = (name: string) =>
  `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${name}`;
const networkContributor = definition("4d97b98b-1d4f-4787-a291-c67834d212e7");
const reader = definition("acdd72a7-3385-48ef-bd42-f606fba81ae7");

async function withIdentity() {
  const { cloud } = newCloud();
  await build(cloud, "group");
  const { body } = await cloud.put(identity, { location: "westeurope" });
  const principalId = String(body["principalId"]);
  const grant = {
    principalId,
    principalType: "ServicePrincipal",
    roleDefinitionId: networkContributor,
  };
  return { cloud, grant };
}

it("gives an identity ids that stay", async () => {
  const { cloud } = await withIdentity();
  const before = cloud.peek(identity)!;

  await cloud.put(identity, { location: "westeurope", tags: { a: "b" } });

  const { principalId, clientId, tenantId } = before;
  expect(cloud.peek(identity)).toMatchObject({ principalId, clientId, tenantId, tags: { a: "b" } });
});

it.each<[flaw: string, change: Body, code: string]>([
  [
    "to a User that is an identity",
    { principalType: "User" },
    "UnmatchedPrincipalType: .*PrinciaplType 'User'",
  ],
  ["to nobody", { principalId: guid(9) }, "PrincipalNotFound"],
  [
    "of a role that there is not",
    { roleDefinitionId: definition(guid(9)) },
    "RoleDefinitionDoesNotExist",
  ],
])("refuses an assignment %s", async (_, change, code) => {
  const { cloud, grant } = await withIdentity();

  const refusal = await refusedBy(cloud.put(assignment(group, 1), { ...grant, ...change }));

  expect(refusal).toMatch(new RegExp(`^${code}`));
});

it("refuses the same assignment under another name, and another one under the same", async () => {
  const { cloud, grant } = await withIdentity();
  await cloud.put(assignment(group, 1), grant);

  const twin = cloud.put(assignment(group, 2), grant);
  const other = cloud.put(assignment(group, 1), { ...grant, roleDefinitionId: reader });
  const elsewhere = cloud.put(assignment(subscriptionPath, 3), grant);

  expect(await refusedBy(twin)).toMatch(/^RoleAssignmentExists/);
  expect(await refusedBy(other)).toMatch(/^RoleAssignmentUpdateNotPermitted/);
  expect(await refusedBy(elsewhere)).toBe("not refused");
});

it("leaves assignments behind when their identity goes, and takes those of a scope that goes", async () => {
  const { cloud, grant } = await withIdentity();
  const [inGroup, onIdentity, above] = [
    assignment(group, 1),
    assignment(identity, 2),
    assignment(subscriptionPath, 3),
  ];
  for (const id of [inGroup, onIdentity, above]) await cloud.put(id, grant);

  await cloud.delete(identity);
  expect([inGroup, onIdentity, above].map((id) => cloud.peek(id) !== undefined)).toEqual([
    true,
    false,
    true,
  ]);

  await cloud.delete(group);
  expect([inGroup, above].map((id) => cloud.peek(id) !== undefined)).toEqual([false, true]);
});

it("keeps a role of one's own while somebody has it", async () => {
  const { cloud, grant } = await withIdentity();
  const role = definition(guid(7));
  await cloud.put(role, {
    roleName: "reads",
    permissions: [{ actions: ["*/read"] }],
    assignableScopes: [subscriptionPath],
  });
  await cloud.put(assignment(subscriptionPath, 1), { ...grant, roleDefinitionId: role });

  expect(await refusedBy(cloud.delete(role))).toMatch(/^RoleDefinitionHasAssignments/);
  await cloud.delete(assignment(subscriptionPath, 1));
  expect(await refusedBy(cloud.delete(role))).toBe("not refused");
});
