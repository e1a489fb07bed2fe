import { randomUUID } from "node:crypto";

import { assignedScopeProblems } from "../../../components/azure/assigned-scopes";
import type { ExistingNetwork } from "../../../components/azure/existing-network";
import { assignmentName, ownRoleId } from "../../../components/azure/role-ids";
import { shownAs, type ShownResource } from "../../../components/azure/shown";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const theirs = `${subscriptionPath}/resourceGroups/theirs`;
const identityId = (name: string) =>
  `${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
const accountId = `${theirs}/providers/Microsoft.Storage/storageAccounts/backups`;
const containerIn = (name: string) => `${accountId}/blobServices/default/containers/${name}`;
const diskEncryptionSetId = `${theirs}/providers/Microsoft.Compute/diskEncryptionSets/ours`;
const setBody = {
  location,
  identity: { type: "SystemAssigned" },
  activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
};
const networkId = `${theirs}/providers/Microsoft.Network/virtualNetworks/spoke`;
const subnetId = `${networkId}/subnets/nodes`;
const network = {
  ...{ id: networkId, rules: new Map() },
  subnets: new Map([[subnetId.toLowerCase(), { id: subnetId }]]),
} as unknown as ExistingNetwork;
const roles = {
  administrator: "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
  contributor: "b24988ac-6180-42a0-ab88-20f7382dd24c",
  blobs: "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
  reader: "acdd72a7-3385-48ef-bd42-f606fba81ae7",
  usesNetwork: ownRoleId("uses-network", validSettings.clusterName, account.subscriptionId),
  usesSubnet: ownRoleId("uses-subnet", validSettings.clusterName, account.subscriptionId),
};

interface Scene {
  readonly settings?: Partial<typeof validSettings>;
  /** Of the login there; without one it owns the subscription. */
  readonly right?: "administrator" | "contributor";
  /** Identities that are there, each with the roles that it has, as `ROLE SCOPE`, and ` by hand` where others gave it. */
  readonly identities?: Readonly<Record<string, readonly string[]>>;
  readonly network?: ExistingNetwork;
}

const assign = (arm: ReturnType<typeof newArm>["arm"], principalId: string, given: string) => {
  const [role = "", scope = "", byHand] = given.split(" ");
  const roleDefinitionId = `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${role}`;
  const name = byHand ? randomUUID() : assignmentName(principalId, scope, roleDefinitionId);
  return arm.put(`${scope}/providers/Microsoft.Authorization/roleAssignments/${name}`, {
    ...{ principalId, principalType: "ServicePrincipal", roleDefinitionId },
  });
};

async function problemsOf({ settings, right, identities = {}, network }: Scene) {
  const { arm } = newArm();
  await arm.put(theirs, { location });
  await arm.put(accountId, { location, kind: "StorageV2", sku: { name: "Standard_ZRS" } });
  await arm.put(containerIn("etcd"), {});
  await arm.put(diskEncryptionSetId, setBody);
  await arm.put(networkId, { location, addressSpace: { addressPrefixes: ["10.1.0.0/16"] } });
  await arm.put(subnetId, { addressPrefix: "10.1.1.0/24" });
  for (const role of ["usesNetwork", "usesSubnet"] as const) {
    await arm.put(
      `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roles[role]}`,
      {
        ...{ roleName: role, assignableScopes: [subscriptionPath] },
        permissions: [{ actions: ["Microsoft.Network/virtualNetworks/read"] }],
      },
    );
  }
  const identityIn = async (name: string) => {
    const { body } = await arm.put(identityId(name), { location });
    return (body as { principalId: string }).principalId;
  };
  const login = await identityIn("login");
  if (right !== undefined) await assign(arm, login, `${roles[right]} ${theirs}`);
  const shown = new Map<string, ShownResource>();
  for (const [name, given] of Object.entries(identities)) {
    const principalId = await identityIn(name);
    for (const one of given) await assign(arm, principalId, one);
    const token = "azure-native:managedidentity:UserAssignedIdentity";
    shown.set(shownAs(token, name), { name, properties: { principalId } });
  }
  const token = right === undefined ? undefined : tokenOf(arm, identityId("login"));
  const all = { ...validSettings, ...settings };
  const connection = await connectionTo(arm, token);
  const ask = jest.spyOn(connection.arm, "list");
  const problems = await assignedScopeProblems(all, shown, network, connection);
  const asked = ask.mock.calls.map(([path, query]) => `${path} ${query["$filter"] ?? ""}`);
  expect(new Set(asked).size).toBe(asked.length);
  return problems;
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
const mayNot = (scope: string, instead = "") =>
  expect.stringMatching(
    new RegExp(
      `may not assign roles at ${scope}, .*'Role Based Access Control Administrator' --scope ${scope}${instead}$`,
    ),
  );
const identity = ", or name an identity that has them .*identityId ID\\)";
const ofCluster = [containerIn("etcd"), diskEncryptionSetId, networkId].map((scope) =>
  mayNot(scope, identity),
);

it("names each scope of others at which the login may not assign, once", async () => {
  expect(await problemsOf({ settings, network, right: "contributor" })).toEqual([
    ...ofCluster,
    mayNot(theirs),
  ]);
});

it("names a network alone, and not its subnets, in whatever case the settings have it", async () => {
  const inCapitals = { ...network, id: networkId.toUpperCase() };

  expect(await problemsOf({ network: inCapitals, right: "contributor" })).toEqual([
    mayNot(networkId.toUpperCase(), identity),
  ]);
});

it("assigns nothing in a network where there is no cloud provider", async () => {
  const none = { cloudProvider: false };

  expect(await problemsOf({ settings: none, network, right: "contributor" })).toEqual([]);
});

it.each([
  ["an owner", undefined],
  ["an administrator", "administrator"],
] as const)("finds nothing where the login is %s", async (_, right) => {
  expect(await problemsOf({ settings, network, right })).toEqual([]);
});

it("asks nothing of what others assign, and of pods that have an identity of others", async () => {
  const workloadIdentities = [{ ...pods("web", ""), identityId: "/ids/theirs", roles: [] }];
  const all = { ...settings, workloadIdentities, identityId: "/ids/ours" };

  expect(await problemsOf({ settings: all, network, right: "contributor" })).toEqual([]);
});

const assigned = {
  "zoned-test": [
    `${roles.blobs} ${containerIn("etcd")}`,
    `${roles.reader} ${diskEncryptionSetId}`,
    `${roles.usesNetwork} ${networkId}`,
    `${roles.usesSubnet} ${subnetId.toLowerCase()}`,
  ],
  "zoned-test_shop_web": [`${roles.contributor} ${theirs}`],
  "zoned-test_shop_till": [`${roles.contributor} ${theirs}`],
};
const without = (name: keyof typeof assigned, at: number) => ({
  ...assigned,
  [name]: assigned[name].filter((_, index) => index !== at),
});

it.each([
  ["nothing where an update before has assigned all", assigned, []],
  ["a container that is named anew", without("zoned-test", 0), ofCluster.slice(0, 1)],
  ["an encryption set that is named anew", without("zoned-test", 1), ofCluster.slice(1, 2)],
  ["a network where the role is a new one", without("zoned-test", 2), ofCluster.slice(2)],
  [
    "a subnet that is named anew",
    without("zoned-test", 3),
    [mayNot(subnetId.toLowerCase(), identity)],
  ],
  ["a scope of pods that have an identity", without("zoned-test_shop_web", 0), [mayNot(theirs)]],
  [
    "another role than the one that is there",
    { ...assigned, "zoned-test_shop_web": [`${roles.reader} ${theirs}`] },
    [mayNot(theirs)],
  ],
  [
    "a role that others have assigned, which Azure knows by another name",
    { ...assigned, "zoned-test_shop_web": [`${roles.contributor} ${theirs} by hand`] },
    [mayNot(theirs)],
  ],
  [
    "an identity that is made anew",
    { ...assigned, "zoned-test": [], "zoned-test_shop_till": [] },
    [...ofCluster, mayNot(theirs)],
  ],
])("asks of a living cluster for %s", async (_, identities, problems) => {
  expect(await problemsOf({ settings, network, right: "contributor", identities })).toEqual(
    problems,
  );
});

it("names a container that is not there, also later, and nothing of one that the login does not see", async () => {
  const missing = { etcdBackups: { ...etcdBackups, container: containerIn("other") } };
  const elsewhere = containerIn("etcd").replace(account.subscriptionId, "of-the-backup-team");

  expect(await problemsOf({ settings: missing, identities: assigned })).toEqual([
    expect.stringMatching(
      /^etcdBackups\.container is \S+other, .*az storage container-rm list --storage-account backups .*config set --path etcdBackups.container ID\)$/,
    ),
  ]);
  expect(
    await problemsOf({ settings: { etcdBackups: { ...etcdBackups, container: elsewhere } } }),
  ).toEqual([]);
});
