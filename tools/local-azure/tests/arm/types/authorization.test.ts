import { Durations } from "../../../arm/durations";
import { account, type Body, subscriptionPath } from "../../../arm/resources/resource";
import {
  type Answer,
  createResources,
  itAnswers,
  itNeverChanges,
  itRefuses,
  itShows,
  ManualClock,
  newArm,
  patch,
  power,
  put,
  refusedBy,
  remove,
  taken,
} from "../../support/arm/fixture";
import { group, roleDefinition, valid } from "../../support/arm/valid-resources";

const location = "westeurope";
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
const guid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
const assignment = (scope: string, digit: number) =>
  `${scope}/providers/Microsoft.Authorization/roleAssignments/${guid(digit)}`;
const networkContributor = roleDefinition("4d97b98b-1d4f-4787-a291-c67834d212e7");
const [role, otherRole] = [roleDefinition(guid(7)), roleDefinition(guid(8))];
const custom = (change: Body = {}): Body => ({
  roleName: "reads",
  permissions: [{ actions: ["*/read"] }],
  assignableScopes: [subscriptionPath],
  ...change,
});
const grant = { principalId: account.objectId, roleDefinitionId: role };

itRefuses("assignment", [
  [{ principalType: "User" }, "UnmatchedPrincipalType: .*PrinciaplType 'User'"],
  [{ principalId: guid(9) }, "PrincipalNotFound"],
  [{ roleDefinitionId: roleDefinition(guid(9)) }, "RoleDefinitionDoesNotExist"],
]);
itNeverChanges("assignment", [
  [{ principalId: "other" }, "RoleAssignmentUpdateNotPermitted"],
  [{ roleDefinitionId: networkContributor }, "RoleAssignmentUpdateNotPermitted"],
]);
const again = valid.assignment[1];
itAnswers("assignment", [
  ["the same by another name", "RoleAssignmentExists", put(assignment(group, 2), again)],
  ["the same at another scope", taken, put(assignment(subscriptionPath, 3), again)],
  ...["roleName", "permissions", "assignableScopes"].map((part): Answer => [
    `a role without ${part}`,
    "InvalidRoleDefinition",
    put(role, custom({ [part]: undefined })),
  ]),
  ["a role once more", taken, put(role, custom()), put(role, custom())],
  [
    "a second role of a name",
    "RoleDefinitionWithSameNameExists",
    put(role, custom()),
    put(otherRole, custom()),
  ],
  ...[
    [subscriptionPath, "RoleAssignmentScopeNotAssignableToRoleDefinition"] as const,
    [group, taken] as const,
    [identity, taken] as const,
  ].map(([scope, code]): Answer => [
    `a role of a group at ${scope}`,
    code,
    put(identity, { location }),
    put(role, custom({ assignableScopes: [group.toUpperCase()] })),
    put(assignment(scope, 1), grant),
  ]),
  [
    "the end of a role that is assigned",
    "RoleDefinitionHasAssignments",
    put(role, custom()),
    put(assignment(subscriptionPath, 1), grant),
    remove(role),
  ],
  [
    "the end of one that was",
    taken,
    put(role, custom()),
    put(assignment(subscriptionPath, 1), grant),
    remove(assignment(subscriptionPath, 1)),
    remove(role),
  ],
]);

const onIdentity = [put(identity, { location }), put(assignment(identity, 2), again)] as const;
itShows("assignment", [
  [
    "an assignment goes with its scope",
    assignment(identity, 2),
    undefined,
    ...onIdentity,
    remove(identity),
  ],
  ["an assignment above stays", valid.assignment[0], {}, ...onIdentity, remove(identity)],
]);

/** Things take time, but for the creation of these two. */
function withTime() {
  const clock = new ManualClock();
  const atOnce = { create: 0, delete: 0 };
  const types = ["ManagedIdentity/userAssignedIdentities", "Authorization/roleDefinitions"];
  const seconds = Object.fromEntries(types.map((type) => [`Microsoft.${type}`, atOnce]));
  return { clock, ...newArm({ clock, durations: new Durations({ factor: 1, seconds }) }) };
}

it("does not know a new identity and a new role for 30 seconds", async () => {
  const { clock, arm } = withTime();
  await clock.until(createResources(arm, "group"));
  await arm.put(role, custom());
  const { body } = await arm.put(identity, { location });
  const assigned = (principalId = String(body["principalId"])) =>
    refusedBy(clock.until(arm.put(assignment(group, 1), { ...grant, principalId })));

  expect(await assigned()).toMatch(/^PrincipalNotFound/);
  clock.advance(29);
  expect(await assigned(account.objectId)).toMatch(/^RoleDefinitionDoesNotExist/);
  clock.advance(1);
  expect(await assigned()).toBe(taken);
});

it("takes a role for assigned for 30 seconds after the end of its assignment", async () => {
  const { clock, arm } = withTime();
  await arm.put(role, custom());
  clock.advance(30);
  await clock.until(arm.put(assignment(subscriptionPath, 1), grant));
  await clock.until(arm.delete(assignment(subscriptionPath, 1)));

  clock.advance(29);
  expect(await refusedBy(arm.delete(role))).toMatch(/^RoleDefinitionHasAssignments/);
  clock.advance(1);
  expect(await refusedBy(arm.delete(role))).toBe(taken);
});

const federated = (name: string, change: Body = {}) =>
  put(`${identity}/federatedIdentityCredentials/${name}`, {
    issuer: "https://issuer.example/one",
    subject: "system:serviceaccount:shop:app",
    audiences: ["api://AzureADTokenExchange"],
    ...change,
  });
const twenty = Array.from({ length: 20 }, (_, count) =>
  federated(`app-${count}`, { subject: `system:serviceaccount:a:${count}` }),
);
itAnswers("group", [
  ...[
    { issuer: "http://issuer.example" },
    { audiences: [] },
    { audiences: ["one", "other"] },
    { subject: "" },
  ].map((change): Answer => [
    `a federated credential with ${JSON.stringify(change)}`,
    "BadRequest",
    put(identity, { location }),
    federated("app", change),
  ]),
  [
    "a second one of an issuer and a subject",
    "Conflict",
    put(identity, { location }),
    federated("one"),
    federated("other"),
  ],
  ["the twentieth of an identity", taken, put(identity, { location }), ...twenty],
  [
    "the twenty-first",
    "BadRequest: Too many",
    put(identity, { location }),
    ...twenty,
    federated("more"),
  ],
]);

const [guard] = valid.securityGroup;
const other = `${guard}-2`;
const lockOn = (scope: string) => `${scope}/providers/Microsoft.Authorization/locks/keep`;
const lock = (scope: string, level: string) => put(lockOn(scope), { level });
const tagged = { location, tags: { a: "b" } };
const [machine] = valid.machine;
itAnswers("machine", [
  ...(["restart", "start", "deallocate"] as const).flatMap((action): Answer[] => [
    [`a ${action} under ReadOnly`, "ScopeLocked", lock(group, "ReadOnly"), power(machine, action)],
    [`a ${action} under CanNotDelete`, taken, lock(group, "CanNotDelete"), power(machine, action)],
  ]),
  [
    "a machine marked for images under ReadOnly",
    "ScopeLocked",
    power(machine, "deallocate"),
    lock(group, "ReadOnly"),
    (arm) => arm.generalize(machine),
  ],
]);
itAnswers("securityGroup", [
  ...(
    [
      ["CanNotDelete", group],
      ["ReadOnly", group],
      ["CanNotDelete", guard],
    ] as const
  ).flatMap(([level, scope]) =>
    [guard, group].map((id): Answer => [
      `the end of ${id.split("/").at(-1)} under a lock ${level} at ${scope.split("/").at(-1)}`,
      `ScopeLocked: The scope '${id}' cannot perform delete operation .*: '${scope}'`,
      lock(scope, level),
      remove(id),
    ]),
  ),
  ...[put(guard, tagged), patch(guard, { tags: {} }), put(other, tagged)].flatMap(
    (change): Answer[] => [
      [
        "a change under ReadOnly",
        "ScopeLocked: .*write operation",
        lock(group, "ReadOnly"),
        change,
      ],
      ["a change under CanNotDelete", taken, lock(group, "CanNotDelete"), change],
    ],
  ),
  [
    "the end of what is assigned under a lock of a resource",
    "ScopeLocked: .*delete operation",
    put(assignment(guard, 1), { ...grant, roleDefinitionId: networkContributor }),
    lock(guard, "CanNotDelete"),
    remove(assignment(guard, 1)),
  ],
  [
    "an assignment under ReadOnly",
    "ScopeLocked: .*write operation",
    lock(guard, "ReadOnly"),
    put(assignment(guard, 1), { ...grant, roleDefinitionId: networkContributor }),
  ],
  ["a change beside a lock", taken, lock(guard, "ReadOnly"), put(other, tagged)],
  ["the end after a lock's", taken, lock(group, "ReadOnly"), remove(lockOn(group)), remove(guard)],
]);
