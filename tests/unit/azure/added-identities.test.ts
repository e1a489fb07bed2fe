import { getAddedIdentities } from "../../../components/azure/identities";
import { digest } from "../../../components/digest";
import { ArmClient } from "../../../components/azure/resource-manager";
import { shownAs, type ShownResource } from "../../../components/azure/shown";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const theirs = `${subscriptionPath}/resourceGroups/management`;
const identityIn = (group: string, name: string) =>
  `${subscriptionPath}/resourceGroups/${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
const added = identityIn("management", "monitoring");
const own = identityIn(validSettings.clusterName, validSettings.clusterName);
const roles = {
  operator: "f1a07417-d97a-45cb-824c-7a7467783830",
  reader: "acdd72a7-3385-48ef-bd42-f606fba81ae7",
};

interface Scene {
  /** Of machines, each with ids of its identities. */
  readonly machines: Readonly<Record<string, readonly string[]>>;
  /** Of the login, at the identity; none where it may not even see that. */
  readonly right?: keyof typeof roles;
  readonly isGone?: boolean;
  readonly settings?: Partial<typeof validSettings>;
  readonly previous?: Parameters<typeof getAddedIdentities>[2];
  /** Of every machine. */
  readonly tags?: Readonly<Record<string, string>>;
}

async function found({ machines, right, isGone, settings, previous, tags }: Scene) {
  const { arm } = newArm();
  await arm.put(theirs, { location });
  await arm.put(added, { location });
  const login = identityIn("management", "login");
  const { body } = await arm.put(login, { location });
  if (right !== undefined) {
    // At the group, of which it is known also when the identity is gone.
    await arm.put(
      `${theirs}/providers/Microsoft.Authorization/roleAssignments/11111111-2222-3333-4444-555555555555`,
      {
        principalId: (body as { principalId: string }).principalId,
        principalType: "ServicePrincipal",
        roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roles[right]}`,
      },
    );
  }
  const token = tokenOf(arm, login);
  if (isGone) await arm.delete(added);
  const rest = await serveRest(arm, 0);
  try {
    const shown = Object.entries(machines).map(([name, ids]): [string, ShownResource] => [
      shownAs("azure-native:compute:VirtualMachine", name),
      {
        name,
        tags,
        identity: {
          type: "UserAssigned",
          userAssignedIdentities: Object.fromEntries(ids.map((id) => [id, {}])),
        },
      },
    ]);
    return await getAddedIdentities(
      { ...validSettings, ...settings },
      {
        machines: new Map(Object.keys(machines).map((name) => [name, { size: "Standard_D2s_v5" }])),
        shown: new Map(shown),
      },
      previous,
      { ...account, arm: new ArmClient(`http://127.0.0.1:${rest.port}`, token) },
    );
  } finally {
    await rest.close();
  }
}

const machines = { "zoned-cp-1": [own, added], "zoned-workers-1": [added.toUpperCase()] };

it.each([
  { what: "see", right: undefined },
  { what: "assign", right: "reader" as const },
])("names an identity that a policy has added and the login may not $what, once", async (scene) => {
  expect(await found({ machines, ...scene })).toEqual([
    {
      machines: ["zoned-cp-1", "zoned-workers-1"],
      problem: expect.stringMatching(
        new RegExp(
          `^zoned-cp-1, zoned-workers-1 have the identity ${added}, .* --role 'Managed Identity Operator' --scope ${added}$`,
        ),
      ),
    },
  ]);
});

it("says how one that is gone is taken off its machines", async () => {
  const [one] = await found({ machines, right: "operator", isGone: true });

  expect(one?.problem).toMatch(
    /is gone: for name in zoned-cp-1 zoned-workers-1; do az vm identity remove .* --identities .*monitoring; done$/,
  );
});

it("says nothing of one that the login may assign", async () => {
  expect(await found({ machines, right: "operator" })).toEqual([]);
});

it.each([
  { what: "settings name", settings: { identityId: added } },
  { what: "settings name for kubelets", settings: { kubeletIdentityId: added } },
  { what: "last update has given", previous: { kubeletIdentityId: added } },
  {
    what: "update before has given, which failed",
    tags: { "zoned-identities": digest(added.toLowerCase()) },
  },
])("leaves out the one that the $what", async (scene) => {
  expect(await found({ machines, ...scene })).toEqual([]);
});
