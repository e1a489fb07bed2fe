import { assignedScopeProblems } from "../../../components/azure/assigned-scopes";
import { ArmClient } from "../../../components/azure/resource-manager";
import { shownAs } from "../../../components/azure/shown";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const theirs = `${subscriptionPath}/resourceGroups/theirs`;
const loginId = `${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/login`;
const accountId = `${theirs}/providers/Microsoft.Storage/storageAccounts/backups`;
const containerIn = (name: string) => `${accountId}/blobServices/default/containers/${name}`;
const diskEncryptionSetId = `${theirs}/providers/Microsoft.Compute/diskEncryptionSets/ours`;
const roles = {
  administrator: "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
  contributor: "b24988ac-6180-42a0-ab88-20f7382dd24c",
};

interface Scene {
  readonly settings?: Partial<typeof validSettings>;
  /** Of the login there; without one it owns the subscription. */
  readonly right?: keyof typeof roles;
  readonly isBegun?: boolean;
  /** Identities that are there. */
  readonly identities?: readonly string[];
}

async function problemsOf({ settings, right, isBegun = false, identities = [] }: Scene) {
  const { arm } = newArm();
  await arm.put(theirs, { location });
  await arm.put(accountId, { location, kind: "StorageV2", sku: { name: "Standard_ZRS" } });
  await arm.put(containerIn("etcd"), {});
  const { body } = await arm.put(loginId, { location });
  if (right !== undefined) {
    await arm.put(
      `${theirs}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001`,
      {
        ...{ principalId: (body as { principalId: string }).principalId },
        principalType: "ServicePrincipal",
        roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roles[right]}`,
      },
    );
  }
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const shown = new Map(identities.map((name) => [shownAs(token, name), { name }]));
  const rest = await serveRest(arm, 0);
  try {
    const client = new ArmClient(
      `http://127.0.0.1:${rest.port}`,
      right === undefined ? "me" : tokenOf(arm, loginId),
    );
    const all = { ...validSettings, ...settings };
    const connection = { ...account, arm: client };
    return await assignedScopeProblems(all, { isBegun, shown }, undefined, connection);
  } finally {
    await rest.close();
  }
}

const etcdBackups = { container: containerIn("etcd"), every: "1h" };
const pods = (serviceAccount: string, scope: string) => ({
  ...{ namespace: "shop", serviceAccount, identityId: "" },
  roles: [{ role: roles.contributor, scope }],
});
const settings = {
  etcdBackups,
  diskEncryptionSetId,
  workloadIdentities: [pods("web", theirs), pods("till", theirs)],
};
const mayNot = (scope: string) =>
  expect.stringMatching(
    new RegExp(
      `may not assign roles at ${scope}, .*'Role Based Access Control Administrator' --scope ${scope}$`,
    ),
  );

it("names each scope of others at which the login may not assign, once", async () => {
  expect(await problemsOf({ settings, right: "contributor" })).toEqual(
    [containerIn("etcd"), diskEncryptionSetId, theirs].map(mayNot),
  );
});

it.each([
  ["an owner", undefined],
  ["an administrator", "administrator"],
] as const)("finds nothing where the login is %s", async (_, right) => {
  expect(await problemsOf({ settings, right })).toEqual([]);
});

it("asks nothing of what others assign, and of pods that have an identity of others", async () => {
  const workloadIdentities = [{ ...pods("web", ""), identityId: "/ids/theirs", roles: [] }];
  const identityId = "/ids/ours";

  const all = { ...settings, workloadIdentities, identityId };
  expect(await problemsOf({ settings: all, right: "contributor" })).toEqual([]);
});

it("asks later of pods alone that have no identity yet", async () => {
  const later = { right: "contributor", isBegun: true } as const;
  const both = ["zoned-test_shop_web", "zoned-test_shop_till"];

  expect(await problemsOf({ ...later, settings, identities: both })).toEqual([]);
  for (const identityId of ["", "/ids/ours"]) {
    const all = { ...settings, identityId };
    expect(await problemsOf({ ...later, settings: all, identities: both.slice(1) })).toEqual([
      mayNot(theirs),
    ]);
  }
});

it("names a container that is not there, also later, and nothing of one that the login does not see", async () => {
  const missing = { etcdBackups: { ...etcdBackups, container: containerIn("other") } };
  const elsewhere = containerIn("etcd").replace(account.subscriptionId, "of-the-backup-team");

  expect(await problemsOf({ settings: missing, isBegun: true })).toEqual([
    expect.stringMatching(
      /^etcdBackups\.container is \S+other, .*az storage container-rm list --storage-account backups .*config set --path etcdBackups.container ID\)$/,
    ),
  ]);
  expect(
    await problemsOf({ settings: { etcdBackups: { ...etcdBackups, container: elsewhere } } }),
  ).toEqual([]);
});
