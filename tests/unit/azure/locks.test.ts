import { getForeignLocks, getGroupLocks, scopeOf } from "../../../components/azure/locks";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { validSettings } from "../../support/sample";
import type { ExistingNetwork } from "../../../components/azure/existing-network";
import type { Registry } from "../../../components/azure/registries";
import { assignmentName, roleAt } from "../../../components/azure/role-ids";
import { shownAs } from "../../../components/azure/shown";

describe("a lock", () => {
  const location = "westeurope";
  const idOf = (group: string) => `${subscriptionPath}/resourceGroups/${group}`;
  const guardIn = (group: string) =>
    `${idOf(group)}/providers/Microsoft.Network/networkSecurityGroups/guard`;

  /** Scopes of the locks that hold for a cluster, of these that there are. */
  async function locksOf(resourceGroup: string, isThere: boolean, scopes: readonly string[]) {
    const { arm } = newArm();
    for (const group of ["zoned-test", "platform", "other", "zoned"].slice(isThere ? 0 : 1)) {
      await arm.put(idOf(group), { location });
      await arm.put(guardIn(group), { location });
    }
    for (const scope of scopes) {
      await arm.put(`${scope}/providers/Microsoft.Authorization/locks/keep`, {
        level: "CanNotDelete",
      });
    }
    const connection = await connectionTo(arm);
    const found = await getGroupLocks({ ...validSettings, resourceGroup }, isThere, connection);
    return found.map(scopeOf);
  }

  it.each([
    ["a group of its own", "", "zoned-test"],
    ["a group of others", "platform", "platform"],
  ])("holds in %s, or above it, and not beside it nor on one resource", async (_, named, group) => {
    const scopes = [subscriptionPath, idOf(group)];
    const besides = [idOf("other"), guardIn(group)];

    expect((await locksOf(named, true, [...scopes, ...besides])).sort()).toEqual(scopes);
  });

  it("holds in the subscription, before there is a group, and not on one whose name begins that of the cluster's", async () => {
    const scopes = [subscriptionPath, idOf("other"), idOf("zoned")];

    expect(await locksOf("", false, scopes)).toEqual([subscriptionPath]);
  });
});

describe("where others have made something,", () => {
  const location = "westeurope";
  const group = (name: string) => `${subscriptionPath}/resourceGroups/${name}`;
  const provided = (type: string) => `${group("theirs")}/providers/Microsoft.${type}`;
  const spoke = provided("Network/virtualNetworks/spoke");
  const guard = provided("Network/networkSecurityGroups/guard");
  const keys = provided("Compute/diskEncryptionSets/keys");
  const images = provided("ContainerRegistry/registries/images");
  const pods = provided("ManagedIdentity/userAssignedIdentities/pods").toLowerCase();
  const reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7";

  const network = {
    ...{ id: spoke, subnets: new Map() },
    rules: new Map([[guard.toLowerCase(), []]]),
  } as unknown as ExistingNetwork;
  const all = {
    ...{ nodeSubnets: [`${spoke}/subnets/nodes`], diskEncryptionSetId: keys },
    ...{ registries: [images], cloudProvider: true },
  };

  interface Scene {
    readonly settings?: Partial<typeof validSettings>;
    /** Where the role on the encryption set is assigned already. */
    readonly isAssigned?: boolean;
    /** Of federated credentials of an identity of others, where there are some. */
    readonly isWritten?: boolean;
  }

  async function answerTo(
    level: string,
    scope: string,
    { settings = all, isAssigned = false, isWritten }: Scene = {},
  ) {
    const { arm } = newArm();
    for (const name of ["theirs", "zoned-test"]) await arm.put(group(name), { location });
    await arm.put(spoke, { location, addressSpace: { addressPrefixes: ["10.1.0.0/16"] } });
    await arm.put(guard, { location });
    await arm.put(images, { location, sku: { name: "Basic" } });
    await arm.put(pods, { location });
    await arm.put(keys, {
      ...{ location, identity: { type: "SystemAssigned" } },
      activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
    });
    const name = "zoned-test";
    const id = `${group(name)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
    const { body } = await arm.put(id, { location });
    const { principalId } = body as { principalId: string };
    const token = "azure-native:managedidentity:UserAssignedIdentity";
    const shown = new Map([[shownAs(token, name), { name, properties: { principalId } }]]);
    if (isAssigned) {
      const roleDefinitionId = roleAt(reader, keys, account.subscriptionId);
      const assignment = assignmentName(principalId, keys, roleDefinitionId);
      await arm.put(`${keys}/providers/Microsoft.Authorization/roleAssignments/${assignment}`, {
        ...{ principalId, principalType: "ServicePrincipal", roleDefinitionId },
      });
    }
    await arm.put(`${scope}/providers/Microsoft.Authorization/locks/keep`, { level });
    const registries = [{ id: images, pull: { guid: "pull" } } as unknown as Registry];
    const given = { ...validSettings, ...settings };
    const known = {
      network: given.nodeSubnets.length > 0 ? network : undefined,
      registries: given.registries.length > 0 ? registries : [],
      ...{ shown, isWritten: new Map(isWritten === undefined ? [] : [[pods, isWritten]]) },
    };
    return getForeignLocks(given, known, await connectionTo(arm));
  }

  const lock = (scope: string, level: string) => `the lock keep on ${scope} is ${level}`;
  const removal = (scope: string) =>
    `its owner runs az lock delete --ids ${scope}/providers/Microsoft.Authorization/locks/keep`;
  const refused = (scope: string, what = "role assignment") => ({
    problems: [
      `${lock(scope, "ReadOnly")}, under which Azure makes no ${what}, and this update would: ${removal(scope)}`,
    ],
    warnings: [],
  });
  const kept = (scope: string, level = "CanNotDelete", what = "role assignments") => ({
    problems: [],
    warnings: [
      `${lock(scope, level)}: Azure will refuse to take away the ${what} of this program there, in an update that wants them otherwise and in pulumi destroy. Have it removed before: ${removal(scope)}`,
    ],
  });
  const none = { problems: [], warnings: [] };
  const theirs = { ...all, identityId: "/ids/theirs", kubeletIdentityId: "/ids/kubelets" };
  const onlySet = { diskEncryptionSetId: keys };
  const onlyPods = { settings: {}, isWritten: false };
  const credential = "federated credential";

  it.each<[string, string, string, Scene, object]>([
    ["is warned of on a network", "CanNotDelete", spoke, {}, kept(spoke)],
    ["is warned of on a registry", "CanNotDelete", images, {}, kept(images)],
    [
      "is warned of once for a whole group",
      "CanNotDelete",
      group("theirs"),
      {},
      kept(group("theirs")),
    ],
    ["is refused on a network before the first update", "ReadOnly", spoke, {}, refused(spoke)],
    ["is refused on a registry that is new", "ReadOnly", images, {}, refused(images)],
    [
      "is refused above an encryption set that is new",
      "ReadOnly",
      group("theirs"),
      { settings: onlySet },
      refused(group("theirs")),
    ],
    [
      "is warned of where nothing is assigned any more",
      "ReadOnly",
      keys,
      { settings: onlySet, isAssigned: true },
      kept(keys, "ReadOnly"),
    ],
    [
      "is refused on an identity of pods that is new",
      "ReadOnly",
      pods,
      onlyPods,
      refused(pods, credential),
    ],
    [
      "is warned of on one that pods log in as",
      "ReadOnly",
      pods,
      { ...onlyPods, isWritten: true },
      kept(pods, "ReadOnly", `${credential}s`),
    ],
    ["is nobody's affair where others assign", "ReadOnly", spoke, { settings: theirs }, none],
    [
      "is nobody's affair on what the settings do not name",
      "ReadOnly",
      spoke,
      { settings: onlySet },
      none,
    ],
    [
      "is said once where it holds for the cluster's group too",
      "ReadOnly",
      subscriptionPath,
      {},
      none,
    ],
    [
      "keeps a security group's rules where others assign, too",
      "CanNotDelete",
      guard,
      { settings: theirs },
      none,
    ],
  ])("a lock %s", async (_, level, scope, scene, expected) => {
    expect(await answerTo(level, scope, scene)).toEqual(expected);
  });

  it("says that under a lock ReadOnly the cloud provider cannot open a security group", async () => {
    expect(await answerTo("ReadOnly", guard, { settings: theirs })).toEqual({
      problems: [],
      warnings: [
        expect.stringMatching(/guard is ReadOnly: .* no rules to \S+\/guard, .*az lock delete/),
      ],
    });
    const without = { ...theirs, cloudProvider: false };
    expect(await answerTo("ReadOnly", guard, { settings: without })).toEqual(none);
  });
});
