import { ArmClient } from "../../../components/azure/resource-manager";
import { getRegistries } from "../../../components/azure/registries";
import { assignmentName, roleAt } from "../../../components/azure/role-ids";
import { shownAs } from "../../../components/azure/shown";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { validSettings } from "../../support/sample";

const location = "westeurope";
const theirs = `${subscriptionPath}/resourceGroups/theirs`;
const identityOf = (name: string) =>
  `${theirs}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
const registryId = `${theirs}/providers/Microsoft.ContainerRegistry/registries/OurImages`;
const kubeletIdentityId = identityOf("kubelets");
const roles = {
  acrPull: "7f951dda-4ed3-4680-a7ca-43fe172d538d",
  contributor: "b24988ac-6180-42a0-ab88-20f7382dd24c",
  operator: "f1a07417-d97a-45cb-824c-7a7467783830",
  reader: "acdd72a7-3385-48ef-bd42-f606fba81ae7",
};

interface Scene {
  readonly settings?: Partial<typeof validSettings>;
  /** The registry as others have made it; null where they have not. */
  readonly made?: object | null;
  /** Of the login; without them it owns the subscription. */
  readonly rights?: readonly (keyof typeof roles)[];
  /** Where kubelets' identity may pull. */
  readonly pulls?: string;
  /** Whether that is this program's own. */
  readonly isOwn?: boolean;
  /** The cluster's own identity, as an update before has made it. */
  readonly cluster?: "lacking" | "operator";
}

interface Principal {
  readonly clientId: string;
  readonly principalId: string;
}

async function answerTo({ settings, made = {}, rights, pulls, isOwn = false, cluster }: Scene) {
  const { arm } = newArm();
  await arm.put(theirs, { location });
  if (made !== null) await arm.put(registryId, { location, sku: { name: "Basic" }, ...made });
  const identities = [];
  for (const name of ["login", "kubelets", "zoned-test"]) {
    const { body } = await arm.put(identityOf(name), { location });
    identities.push(body as unknown as Principal);
  }
  const [login, kubelets, own] = identities as [Principal, Principal, Principal];
  const assign = (principalId: string, role: keyof typeof roles, scope = theirs) => {
    const roleDefinitionId = roleAt(roles[role], scope, account.subscriptionId);
    const name = assignmentName(principalId, scope, roleDefinitionId);
    return arm.put(`${scope}/providers/Microsoft.Authorization/roleAssignments/${name}`, {
      ...{ principalId, principalType: "ServicePrincipal", roleDefinitionId },
    });
  };
  for (const role of rights ?? []) await assign(login.principalId, role);
  if (pulls !== undefined) await assign(kubelets.principalId, "acrPull", pulls);
  if (cluster === "operator") await assign(own.principalId, "operator", kubeletIdentityId);
  const shown = new Map(
    [
      ...(isOwn ? [{ name: "zoned-test-kubelet", properties: { ...kubelets } }] : []),
      ...(cluster ? [{ name: "zoned-test", properties: { ...own } }] : []),
    ].map((one) => [shownAs("azure-native:managedidentity:UserAssignedIdentity", one.name), one]),
  );
  const token = rights === undefined ? undefined : tokenOf(arm, identityOf("login"));
  const all = { ...validSettings, registries: [registryId], ...settings };
  return getRegistries(all, shown, await connectionTo(arm, token));
}

it("asks for nothing where there are no registries", async () => {
  const arm = new ArmClient("http://127.0.0.1:1", "token");

  expect(await getRegistries(validSettings, new Map(), { ...account, arm })).toEqual({
    ...{ registries: [], problems: [], warnings: [] },
  });
});

it.each([
  ["LegacyRegistryPermissions", "AcrPull"],
  // Where it heeds AcrPull no more.
  ["AbacRepositoryPermissions", "Container Registry Repository Reader"],
])("has from a registry with %s the role %s, and where it is reached", async (mode, role) => {
  const { registries, problems } = await answerTo({ made: { roleAssignmentMode: mode } });

  expect(problems).toEqual([]);
  expect(registries).toEqual([
    expect.objectContaining({ id: registryId, server: "ourimages.azurecr.io" }),
  ]);
  expect(registries[0]!.pull.builtIn).toBe(role);
});

it("names a registry that is not there, and how to see those that are", async () => {
  const { problems } = await answerTo({ made: null });

  expect(problems).toEqual([
    expect.stringMatching(/^registries\[0\] is .*OurImages, .*az acr list.*'registries\[0\]' ID/),
  ]);
});

it("names the role that a login needs to read a registry", async () => {
  const { problems } = await answerTo({ rights: ["operator"] });

  expect(problems).toEqual([
    expect.stringMatching(/may not read the registry .*OurImages.*--role 'Reader' --scope /),
  ]);
});

it("names both ways on where the login may not assign the role", async () => {
  const { problems } = await answerTo({ rights: ["contributor"] });

  expect(problems).toEqual([
    expect.stringMatching(
      /may not assign the role AcrPull at .*'Role Based Access Control Administrator'.*kubeletIdentityId ID/,
    ),
  ]);
});

it.each([
  ["nothing where an update before has assigned it", registryId, 0],
  ["it where kubelets have it from above alone", theirs, 1],
  ["it where they may pull from nowhere yet", undefined, 1],
])("asks of a living cluster for %s", async (_, pulls, problems) => {
  const answer = await answerTo({ rights: ["contributor"], isOwn: true, pulls });

  expect(answer.problems).toHaveLength(problems);
});

it("leaves assigning to others where they give the identity, and lists what that lacks", async () => {
  const scene = {
    settings: { kubeletIdentityId, identityId: identityOf("cluster") },
    rights: ["contributor", "operator"] as const,
  };

  const without = await answerTo(scene);
  const having = await answerTo({ ...scene, pulls: theirs });

  expect([without.problems, having.problems]).toEqual([[], []]);
  expect(without.identity).toMatchObject({ clientId: expect.any(String) });
  expect(without.warnings).toEqual([
    expect.stringMatching(/kubelets lacks rights.*\n.*--role 'AcrPull' --scope .*OurImages/),
  ]);
  expect(having.warnings).toEqual([]);
});

it("says what the cluster's own identity lacks at kubelets' of others, which machines carry", async () => {
  const said = async (cluster?: Scene["cluster"], more: Scene["settings"] = {}) => {
    const settings = { kubeletIdentityId, ...more };
    return (await answerTo({ settings, pulls: theirs, cluster })).warnings;
  };
  const role = "'Managed Identity Operator' --scope \\S+/kubelets";

  expect(await said()).toEqual([
    expect.stringMatching(
      `/zoned-test lacks rights.*\n.* --assignee-object-id "\\$\\(az identity show --ids \\S+/zoned-test .* ${role}\n.*As soon as`,
    ),
  ]);
  expect(await said("lacking")).toEqual([
    expect.stringMatching(`--assignee-object-id [0-9a-f-]{36} .* ${role}$`),
  ]);
  expect(await said("operator")).toEqual([]);
  expect(await said(undefined, { cloudProvider: false, diskDriver: false })).toEqual([]);
});

it("names an identity for kubelets that is not there", async () => {
  const { problems } = await answerTo({
    settings: { kubeletIdentityId: identityOf("nobody") },
  });

  expect(problems).toEqual([expect.stringMatching(/^kubeletIdentityId is .*nobody, /)]);
});
