import type { ExistingNetwork } from "../../../components/azure/existing-network";
import { lackingRights, neededRights } from "../../../components/azure/lacking-rights";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const group = `${subscriptionPath}/resourceGroups/zoned-test`;
const identityId = `${subscriptionPath}/resourceGroups/theirs/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;
const contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const identityOperator = "f1a07417-d97a-45cb-824c-7a7467783830";

/** What is said of an identity to which these roles are assigned. */
async function saidOf(
  roles: readonly (readonly [scope: string, role: string])[],
  {
    settings = {},
    isGroupThere = true,
    isBegun = isGroupThere,
    mayRead = true,
    network,
  }: {
    readonly settings?: Partial<typeof validSettings>;
    readonly isGroupThere?: boolean;
    readonly isBegun?: boolean;
    readonly mayRead?: boolean;
    readonly network?: ExistingNetwork;
  } = {},
): Promise<string | undefined> {
  const { arm } = newArm();
  await arm.put(`${subscriptionPath}/resourceGroups/theirs`, { location });
  if (isGroupThere) await arm.put(group, { location });
  const { body } = await arm.put(identityId, { location });
  const principalId = String(body["principalId"]);
  for (const [index, [scope, role]] of roles.entries()) {
    const name = `00000000-0000-0000-0000-00000000000${index}`;
    const of = `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${role}`;
    await arm.put(`${scope}/providers/Microsoft.Authorization/roleAssignments/${name}`, {
      ...{ principalId, principalType: "ServicePrincipal" },
      roleDefinitionId: of,
    });
  }
  // The identity has no rights.
  const connection = await connectionTo(arm, mayRead ? undefined : tokenOf(arm, identityId));
  const all = { ...validSettings, identityId, ...settings };
  const needed = neededRights(all, account.subscriptionId, network);
  const needy = { id: identityId, principalId, needed, users: "Some do" };
  return await lackingRights(all, connection, needy, { isGroupThere, isBegun });
}

interface Role {
  readonly Name: string;
  readonly Actions: string[];
  readonly AssignableScopes: string[];
}

/** Roles that are to be made. */
const madeIn = (text: string | undefined): Role[] =>
  [...(text ?? "").matchAll(/--role-definition '([^']+)'/g)].map(([, one]) => JSON.parse(one!));

const rolesIn = (text: string | undefined): string[] =>
  [...(text ?? "").matchAll(/--role '([^']+)' --scope (\S+)/g)].map(([, role, scope]) => {
    const made = madeIn(text).find(({ Name }) => Name === role);
    const called = made === undefined ? role : `one made for ${made.Actions.length}`;
    return [called, scope!.split("/").at(-1)].join(" at ");
  });

it("says nothing of an identity that has its rights, whichever roles give them", async () => {
  expect(await saidOf([[subscriptionPath, contributor]])).toBeUndefined();
});

it("names each right that is missing, with a role that exists or the actions of one to be made", async () => {
  const text = await saidOf([[group, contributor]]);

  expect(rolesIn(text)).toEqual([
    "Managed Identity Operator at kubernetes",
    `one made for 1 at ${account.subscriptionId}`,
  ]);
  expect(madeIn(text)).toEqual([
    {
      Name: expect.stringContaining("zoned-test "),
      Actions: ["Microsoft.Resources/subscriptions/providers/read"],
      AssignableScopes: [subscriptionPath],
    },
  ]);
});

it("wants no right of Contributor that Contributor has not: to what is in a container", async () => {
  const container = `${subscriptionPath}/resourceGroups/theirs/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd`;

  const text = await saidOf([[subscriptionPath, contributor]], {
    isGroupThere: false,
    settings: { etcdBackups: { container, every: "1h" } },
  });

  expect(rolesIn(text)).toEqual(["Storage Blob Data Contributor at etcd"]);
});

it("asks for what a group will need before that is there, and says when it can be given", async () => {
  const text = await saidOf([[identityId, identityOperator]], { isGroupThere: false });

  expect(rolesIn(text)).toEqual([
    "Network Contributor at zoned-test",
    "one made for 15 at zoned-test",
    `one made for 1 at ${account.subscriptionId}`,
  ]);
  expect(text).toMatch(
    /zoned-test, or in it: as soon as that is there, while the first pulumi up goes on/,
  );
});

it.each([
  ["networkInterfaces/join/action", "diskDriver"],
  ["privateLinkServices/read", "cloudProvider"],
])("wants %s in the cluster's group for the %s alone", (action, user) => {
  const wanted = [true, false].map((isOn) => {
    const settings = { ...validSettings, cloudProvider: false, diskDriver: false, [user]: isOn };
    return neededRights(settings, account.subscriptionId).filter(
      ({ scope, actions }) => scope === group && actions.includes(`Microsoft.Network/${action}`),
    );
  });

  expect(wanted.map(({ length }) => length)).toEqual([1, 0]);
});

it("has scopes as a shell takes them, where a resource group's name has parentheses", async () => {
  const text = await saidOf([], {
    settings: { resourceGroup: "platform(west)" },
    isGroupThere: false,
  });

  expect(text).toContain(`--scope '${subscriptionPath}/resourceGroups/platform(west)'`);
});

it("wants rights of networks and zones for the cloud provider alone", async () => {
  const text = await saidOf([], { settings: { cloudProvider: false } });

  expect(rolesIn(text)).toEqual([
    "one made for 15 at zoned-test",
    "Managed Identity Operator at kubernetes",
  ]);
});

it.each([
  { goes: "its whole list before the first update", isGroupThere: false, roles: 4 },
  { goes: "the same in a group of others", isGroupThere: true, isBegun: false, roles: 4 },
  { goes: "nothing later", isGroupThere: true, roles: 0 },
])("gives a login that may not read what is assigned $goes", async ({ roles, ...stack }) => {
  const text = await saidOf([], { ...stack, mayRead: false });

  expect(rolesIn(text)).toHaveLength(roles);
});

it("wants the disk encryption set to be read, by who makes or attaches disks alone", async () => {
  const diskEncryptionSetId = `${subscriptionPath}/resourceGroups/theirs/providers/Microsoft.Compute/diskEncryptionSets/keys`;
  const settings = { diskEncryptionSetId, cloudProvider: false };

  expect(rolesIn(await saidOf([], { settings }))).toContain("Reader at keys");
  expect(rolesIn(await saidOf([], { settings: { ...settings, diskDriver: false } }))).not.toContain(
    "Reader at keys",
  );
});

it("wants kubelets' identity of others, which machines carry too, to stay on them", async () => {
  const kubeletIdentityId = identityId.replace(/kubernetes$/, "kubelets");

  const text = await saidOf([[group, contributor]], { settings: { kubeletIdentityId } });

  expect(rolesIn(text)).toContain("Managed Identity Operator at kubelets");
});

describe("the identity that this program makes for kubelets", () => {
  const settings = { registries: ["/a/registry"] };
  const wanted = "Managed Identity Operator at zoned-test-kubelet";

  it("is to stay on machines too, which before the first update can be given later alone", async () => {
    const roles = [[identityId, identityOperator]] as const;
    const before = await saidOf(roles, { settings, isGroupThere: false });

    expect(rolesIn(before)).toContain(wanted);
    expect(before).toMatch(/is for .*zoned-test, or in it: as soon as that is there/);
    expect(rolesIn(await saidOf(roles, { settings }))).toContain(wanted);
  });

  it("needs no role of its own where the group's allows it, though Azure has no such identity yet", async () => {
    const text = await saidOf([[group, identityOperator]], { settings });

    expect(rolesIn(text)).not.toContain(wanted);
    expect(rolesIn(text)).toContain("Managed Identity Operator at kubernetes");
  });
});

it("has one role made for the same actions, wherever it is assigned", async () => {
  const inNetwork = (path: string) => `${subscriptionPath}/resourceGroups/theirs/${path}`;
  const network = {
    id: inNetwork("spoke"),
    rules: new Map([[inNetwork("guard"), []]]),
    subnets: new Map(["a", "b"].map((name) => [inNetwork(`spoke/subnets/${name}`), {}])),
  } as unknown as ExistingNetwork;

  const text = await saidOf([[group, contributor]], { network });

  expect(rolesIn(text)).toEqual([
    ...["spoke", "a", "b", "guard"].map((scope) => `one made for 2 at ${scope}`),
    "Managed Identity Operator at kubernetes",
    `one made for 1 at ${account.subscriptionId}`,
  ]);
  expect(text!.match(/role definition create/g)).toHaveLength(4);
});

it("never gives a name to two roles: what is lacking later is called otherwise, in every subscription", async () => {
  const all = madeIn(await saidOf([]));
  const later = madeIn(await saidOf([[group, contributor]]));
  const repairing = madeIn(await saidOf([], { settings: { autoRepair: true } }));

  expect(all.slice(1)).toEqual(later);
  expect(repairing.slice(1)).toEqual(later);
  expect(repairing[0]!.Name).not.toBe(all[0]!.Name);
  const names = new Set([...all, ...repairing].map(({ Name }) => Name));
  expect(names.size).toBe(3);
  for (const name of names) expect(name).toContain(`(${account.subscriptionId})`);
});
