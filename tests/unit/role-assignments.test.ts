import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import type { ExistingIdentity } from "../../components/azure/identities";
import type { ExistingNetwork } from "../../components/azure/existing-network";
import type { Registry } from "../../components/azure/registries";
import { neededRights } from "../../components/azure/lacking-rights";
import { Identity, KubeletIdentity } from "../../components/identity";
import { RoleAssignments } from "../../components/role-assignments";
import { Settings } from "../../components/settings/settings";
import { roleProblems, Roles, takenRoles } from "../../components/roles";
import {
  account,
  type Resource,
  subscriptionPath,
  type View,
} from "../../tools/local-azure/arm/resources/resource";
import { mayDo } from "../../tools/local-azure/arm/types/authorization/role";
import { dependenciesOf, Recorder, valueOf } from "../support/record";
import { subscriptionId, validSettings } from "../support/sample";
import { newArm, tokenOf } from "../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../support/azure";

const subscription = `/subscriptions/${subscriptionId}`;
const groupId = `${subscription}/resourceGroups/zoned-test`;
const assignment = "azure-native:authorization:RoleAssignment";
const definition = "azure-native:authorization:RoleDefinition";
const theirs = `${subscription}/resourceGroups/theirs/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;
const principal = "11111111-2222-3333-4444-555555555555";

interface Stack {
  readonly change?: Partial<Settings>;
  readonly principalId?: string;
  readonly subscriptionId?: string;
  readonly existingIdentity?: ExistingIdentity;
  readonly existingNetwork?: ExistingNetwork;
  readonly existingKubeletIdentity?: ExistingIdentity;
  readonly registries?: readonly Registry[];
}

const build = async (stack: Stack = {}) => {
  const recorder = await Recorder.start({
    filledIn: {
      "azure-native:managedidentity:UserAssignedIdentity": {
        principalId: stack.principalId ?? principal,
        clientId: "the-client",
      },
    },
  });
  const own = new ResourceGroup("cluster", {}, { import: groupId });
  const resourceGroup = { name: own.name, id: own.id, own };
  const args = {
    settings: { ...validSettings, ...stack.change },
    shown: new Map(),
    subscriptionId: stack.subscriptionId ?? subscriptionId,
  };
  const watched = { transformations: [recorder.watch] };
  const roles = new Roles("identity", args, watched);
  const identity = new Identity(
    "identity",
    { resourceGroup, ...args, existingIdentity: stack.existingIdentity },
    watched,
  );
  const machine = new pulumi.ComponentResource("test:index:Machine", "machine");
  const { existingNetwork } = stack;
  const kubeletIdentity = new KubeletIdentity(
    "kubelets",
    { resourceGroup, ...args, existingKubeletIdentity: stack.existingKubeletIdentity },
    watched,
  );
  const rights = {
    ...{ resourceGroup, roles, identity, kubeletIdentity, ...args, existingNetwork },
    registries: stack.registries ?? [],
    after: machine,
  };
  new RoleAssignments("identity", rights, watched);
  return { recorder, resourceGroup, identity, kubeletIdentity, machine };
};

const named = async (recorder: Recorder, name: string) =>
  (await recorder.of(definition)).find((one) => one.name === name)!;

const namesOf = async (stack?: Stack) => {
  const { recorder } = await build(stack);
  return (await recorder.of(assignment)).map(({ inputs }) => inputs.roleAssignmentName as string);
};

it("tells Azure that the principal is no user, which azure-native would assume", async () => {
  const { recorder } = await build();

  for (const { inputs } of await recorder.of(assignment)) {
    expect(inputs).toMatchObject({ principalType: "ServicePrincipal", principalId: principal });
  }
});

it("gets its rights when a machine has been made, since Azure knows no new identity and role at once", async () => {
  const { recorder, machine } = await build();

  for (const request of await recorder.of(assignment)) {
    expect(await dependenciesOf(request)).toContain(machine);
  }
});

it("may change network, machines and snapshots in its group, and nothing at the subscription", async () => {
  const { recorder } = await build();

  const rights = (await recorder.of(assignment)).map(({ inputs }) => [
    inputs.scope,
    inputs.roleDefinitionId.split("/").pop(),
  ]);

  expect(rights).toEqual(
    expect.arrayContaining([
      [groupId, "4d97b98b-1d4f-4787-a291-c67834d212e7"],
      [groupId, "identity-attaches-disks"],
      ["/ids/identity-identity", "f1a07417-d97a-45cb-824c-7a7467783830"],
      [subscription, "identity-reads-providers"],
    ]),
  );
  expect(rights).toHaveLength(4);
});

it("may do one thing at the subscription: read which zones a region has", async () => {
  const { recorder } = await build();

  const { inputs } = await named(recorder, "identity-reads-providers");

  expect(inputs).toMatchObject({ scope: subscription, assignableScopes: [subscription] });
  expect(inputs.permissions).toEqual([
    { actions: ["Microsoft.Resources/subscriptions/providers/read"] },
  ]);
});

/** What the recorded roles allow the identity, as Azure decides it. */
async function rights(change: Partial<Settings> = {}, existingNetwork?: ExistingNetwork) {
  const { recorder } = await build({ change, existingNetwork });
  const resourcesOf = async (type: string) =>
    (await recorder.of(type)).map(({ name, inputs }): Resource => ({
      ...{ id: `/ids/${name}`, type: type.split(":").pop()!, hidden: {}, changed: "2026-01-01" },
      body: inputs,
    }));
  const resources: Readonly<Record<string, Resource[]>> = {
    "Microsoft.Authorization/roleAssignments": await resourcesOf(assignment),
    "Microsoft.Authorization/roleDefinitions": await resourcesOf(definition),
  };
  const view = { ofType: (type: string) => resources[type] ?? [] } as unknown as View;
  const at = { now: new Date(), pace: 1 };
  return (action: string, scope: string, kind: "actions" | "dataActions" = "actions") =>
    mayDo(principal, { kind, action, scope }, view, at);
}

const inGroup = (actions: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(actions).flatMap(([type, verbs]) =>
    verbs.split(" ").map((verb): [string, string] => [`Microsoft.${type}/${verb}`, groupId]),
  );

it("may do all that the cloud provider and the disk driver call", async () => {
  const isAllowed = await rights();

  const calls = [
    ...inGroup({
      "Network/loadBalancers": "read write delete",
      "Network/loadBalancers/backendAddressPools": "read write delete join/action",
      "Network/publicIPAddresses": "read write delete join/action",
      "Network/networkSecurityGroups": "read write",
      "Network/virtualNetworks/subnets": "read join/action",
      "Network/networkInterfaces": "read join/action",
      "Network/privateLinkServices": "read",
      "Network/routeTables": "read",
      "Compute/virtualMachines": "read write",
      "Compute/disks": "read write delete beginGetAccess/action",
      "Compute/diskEncryptionSets": "read",
      "Compute/snapshots": "read write delete",
    }),
    ["Microsoft.Resources/subscriptions/providers/read", subscription],
    ["Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", "/ids/identity-identity"],
  ] as const;
  expect(calls.filter(([action, scope]) => !isAllowed(action, scope))).toEqual([]);
});

it("may do all that an existing identity is asked to have", async () => {
  const etcdBackups = { container: "/the/container", every: "1h" };
  const settings = { ...validSettings, identityId: "/ids/identity-identity", etcdBackups };
  const isAllowed = await rights({ etcdBackups });

  const lacking = neededRights(settings, subscriptionId).flatMap(
    ({ scope, actions, dataActions = [] }) => [
      ...actions.filter((action) => !isAllowed(action, scope)),
      ...dataActions.filter((action) => !isAllowed(action, scope, "dataActions")),
    ],
  );
  expect(lacking).toEqual([]);
});

it("may use a network of others, and change nothing of it but its security group", async () => {
  const guard = "/resourceGroups/network/providers/Microsoft.Network/networkSecurityGroups/guard";
  const id = "/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/spoke";
  const subnet = `${id}/subnets/nodes`.toLowerCase();
  const existingNetwork = {
    ...{ id, rules: new Map([[guard, []]]), subnets: new Map([[subnet, { id: subnet }]]) },
  } as unknown as ExistingNetwork;
  const change = { nodeSubnets: [subnet] };
  const isAllowed = await rights(change, existingNetwork);

  const needed = neededRights({ ...validSettings, ...change }, subscriptionId, existingNetwork);
  const inNetwork = needed.filter(({ scope }) => [id, subnet, guard].includes(scope));
  expect(inNetwork).toHaveLength(3);
  for (const { scope, actions } of inNetwork) {
    expect(actions.filter((action) => !isAllowed(action, scope))).toEqual([]);
  }
  const calls = [
    ["virtualNetworks/joinLoadBalancer/action", id, true],
    ["virtualNetworks/read", id, false],
    ["virtualNetworks/subnets/read", subnet, true],
    ["virtualNetworks/subnets/join/action", subnet, true],
    ["virtualNetworks/subnets/join/action", `${id}/subnets/of-others`, false],
    ["virtualNetworks/subnets/write", subnet, false],
    ["networkSecurityGroups/read", guard, true],
    ["networkSecurityGroups/write", guard, true],
    ["networkSecurityGroups/join/action", guard, false],
    ["networkSecurityGroups/delete", guard, false],
  ] as const;
  const wrong = calls.filter(
    ([action, scope, may]) => isAllowed(`Microsoft.Network/${action}`, scope) !== may,
  );
  expect(wrong).toEqual([]);
});

it("tells a network, subnets and security groups of others apart where they are called the same", async () => {
  const inGroup = (group: string, type: string) =>
    `/resourceGroups/${group}/providers/Microsoft.Network/${type}/spoke`;
  const id = inGroup("network", "virtualNetworks");
  const guards = ["network", "other"].map((group) => inGroup(group, "networkSecurityGroups"));
  const existingNetwork = {
    id,
    rules: new Map(guards.map((guard) => [guard, []])),
    subnets: new Map([[`${id}/subnets/spoke`, { id: `${id}/subnets/spoke` }]]),
  } as unknown as ExistingNetwork;
  const change = { nodeSubnets: [`${id}/subnets/nodes`] };
  const { recorder } = await build({ change, existingNetwork });

  const names = (await recorder.of(assignment))
    .filter(({ inputs }) => [id, `${id}/subnets/spoke`, ...guards].includes(inputs.scope))
    .map(({ name }) => name);
  expect(names).toHaveLength(4);
  expect(new Set(names).size).toBe(4);
});

it("may become root on no machine, take none away, and give nobody rights", async () => {
  const isAllowed = await rights();

  const others = [
    ...inGroup({
      "Compute/virtualMachines": "delete runCommand/action restart/action extensions/write",
      "Authorization/roleAssignments": "write delete",
      "Resources/subscriptions/resourceGroups": "write delete",
    }),
    ["Microsoft.Compute/virtualMachines/read", subscription],
    ["Microsoft.Network/loadBalancers/read", subscription],
    ["Microsoft.ManagedIdentity/userAssignedIdentities/write", "/ids/identity-identity"],
  ] as const;
  expect(others.filter(([action, scope]) => isAllowed(action, scope))).toEqual([]);
});

it("may write blobs into the container of snapshots alone, which does not go with the group", async () => {
  const container =
    "/subscriptions/1/resourceGroups/backups/providers/Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd";
  const change = { etcdBackups: { container, every: "1h" } };
  const { recorder, resourceGroup } = await build({ change });

  const found = (await recorder.of(assignment)).filter(({ inputs }) => inputs.scope === container);
  expect(found.map(({ name }) => name)).toEqual(["identity-snapshots"]);
  // As Azure shows it: by the container's own subscription.
  expect(found[0]!.inputs.roleDefinitionId).toMatch(
    /^\/subscriptions\/1\/.*\/ba92f5b4-2d11-453d-a403-e96b0029c9fe$/,
  );
  expect(found[0]!.opts.deletedWith).not.toBe(resourceGroup.own);
});

it("may read the disk encryption set of others and change nothing of it, and that does not go with the group", async () => {
  const diskEncryptionSetId =
    "/subscriptions/1/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/ours";
  const change = { diskEncryptionSetId };
  const { recorder, resourceGroup } = await build({ change });

  const found = (await recorder.of(assignment)).filter(
    ({ inputs }) => inputs.scope === diskEncryptionSetId,
  );
  expect(found.map(({ name }) => name)).toEqual(["identity-encryption-set"]);
  expect(found[0]!.inputs.roleDefinitionId).toMatch(/\/acdd72a7-3385-48ef-bd42-f606fba81ae7$/);
  expect(found[0]!.opts.deletedWith).not.toBe(resourceGroup.own);
  const isAllowed = await rights(change);
  const needed = neededRights({ ...validSettings, ...change }, subscriptionId).filter(
    ({ scope }) => scope === diskEncryptionSetId,
  );
  expect(needed).toHaveLength(1);
  for (const action of needed[0]!.actions) {
    expect(isAllowed(action, diskEncryptionSetId)).toBe(true);
  }
  expect(isAllowed("Microsoft.Compute/diskEncryptionSets/write", diskEncryptionSetId)).toBe(false);
});

it("may attach disks to machines, and neither run commands nor install anything on them", async () => {
  const { recorder } = await build();

  const { inputs } = await named(recorder, "identity-attaches-disks");

  const [{ actions }] = inputs.permissions as [{ actions: string[] }];
  expect(actions.map((action) => action.replace(/^Microsoft\.Compute\//, "")).sort()).toEqual([
    "diskEncryptionSets/read",
    ...["disks/beginGetAccess/action", "disks/delete", "disks/read", "disks/write"],
    ...["locations/DiskOperations/read", "locations/operations/read", "locations/vmSizes/read"],
    ...["snapshots/delete", "snapshots/read", "snapshots/write"],
    ...["virtualMachines/instanceView/read", "virtualMachines/read", "virtualMachines/write"],
  ]);
});

it("may restart and redeploy machines where they are repaired, and nothing else of that", async () => {
  const { recorder } = await build({ change: { autoRepair: true } });

  const { inputs } = await named(recorder, "identity-attaches-disks");

  const [{ actions }] = inputs.permissions as [{ actions: string[] }];
  expect(actions.filter((action) => /virtualMachines\/.*\/action$/.test(action))).toEqual([
    "Microsoft.Compute/virtualMachines/restart/action",
    "Microsoft.Compute/virtualMachines/redeploy/action",
  ]);
  const needed = neededRights({ ...validSettings, autoRepair: true }, subscriptionId);
  expect(needed.flatMap((one) => one.actions)).toEqual(expect.arrayContaining(actions));
});

it("names assignments by the same GUIDs in every release, since Azure renames none", async () => {
  expect((await namesOf()).sort()).toEqual([
    "292c6246-44e6-56e2-85b6-cf4c9c88c4d5",
    "e200cd1e-3c29-5aaa-82ee-08d5ee3bd621",
    "e9e2a22d-47c7-5561-8e6a-8dc974f4633c",
    "ef527d33-57f3-59a2-8379-c447482242d1",
  ]);
});

it("names its own roles by the same GUIDs in every release", async () => {
  const { recorder } = await build();

  const roles = await recorder.of(definition);

  expect(roles.map(({ inputs }) => inputs.roleDefinitionId).sort()).toEqual([
    "d4d569aa-34c8-5153-833a-51f853e625b2",
    "f701ca4e-6e8a-537a-8339-80fe75124a52",
  ]);
});

it("gives another principal other assignments, since Azure moves none", async () => {
  const before = await namesOf();
  const after = await namesOf({ principalId: "99999999-2222-3333-4444-555555555555" });

  expect(after.filter((name) => before.includes(name))).toEqual([]);
});

it("names its own roles so that no other cluster of the tenant has the same", async () => {
  const stacks = [
    {},
    { change: { clusterName: "zoned-prod" } },
    { subscriptionId: "00000000-0000-0000-0000-000000000000" },
  ];
  const roles = [];
  for (const stack of stacks) {
    const { recorder } = await build(stack);
    roles.push(...(await recorder.of(definition)).map(({ inputs }) => inputs));
  }

  expect(new Set(roles.map(({ roleName }) => roleName)).size).toBe(6);
  expect(new Set(roles.map(({ roleDefinitionId }) => roleDefinitionId)).size).toBe(6);
});

it("hands its identity to machines and its client id to azure.json", async () => {
  const { identity } = await build();

  expect(await valueOf(identity.resourceId!)).toBe("/ids/identity-identity");
  expect(await valueOf(identity.credential.clientId)).toBe("the-client");
  expect(identity.credential.clientSecret).toBeUndefined();
  expect(identity.place!.isOwn).toBe(true);
});

it("makes nothing where an identity exists, and hands that to machines and azure.json", async () => {
  const existingIdentity = { clientId: "the-client-of-others", principalId: principal };
  const { recorder, identity } = await build({
    change: { identityId: theirs },
    existingIdentity,
  });

  const made = (await recorder.all()).map(({ type }) => type);

  expect(made.filter((type) => /managedidentity|authorization/.test(type))).toEqual([]);
  expect(await valueOf(identity.resourceId!)).toBe(theirs);
  expect(identity.place!.isOwn).toBe(false);
  expect(await valueOf(identity.credential.clientId)).toBe("the-client-of-others");
});

it("makes nothing where a service principal is given", async () => {
  const clientSecret = pulumi.secret("hush");
  const servicePrincipal = { clientId: "the-application", clientSecret };
  const { recorder, identity } = await build({ change: { servicePrincipal } });

  const made = (await recorder.all()).map(({ type }) => type);

  expect(made.filter((type) => /managedidentity|authorization/.test(type))).toEqual([]);
  expect(identity.resourceId).toBeUndefined();
  expect(await valueOf(identity.credential.clientId)).toBe("the-application");
  expect(await pulumi.isSecret(identity.credential.clientSecret!)).toBe(true);
});

const registryIn = (subscriptionId: string): Registry => ({
  id: `/subscriptions/${subscriptionId}/resourceGroups/images/providers/Microsoft.ContainerRegistry/registries/OurImages`,
  server: "ourimages.azurecr.io",
  pull: { builtIn: "AcrPull", guid: "7f951dda-4ed3-4680-a7ca-43fe172d538d", actions: [] },
});
const elsewhere = "99999999-2222-3333-4444-555555555555";
const withRegistry = {
  change: { registries: [registryIn(elsewhere).id] },
  registries: [registryIn(elsewhere)],
};

it("lets kubelets pull from a registry of any subscription, by an identity that may do nothing else", async () => {
  const { recorder, kubeletIdentity, machine } = await build(withRegistry);

  const made = await recorder.of("azure-native:managedidentity:UserAssignedIdentity");
  const pulls = (await recorder.of(assignment)).filter(({ name }) => name.includes("pulls"));

  expect(made.map(({ inputs }) => inputs.resourceName).sort()).toEqual([
    "zoned-test",
    "zoned-test-kubelet",
  ]);
  expect(pulls).toHaveLength(1);
  expect(pulls[0]!.inputs).toMatchObject({
    scope: registryIn(elsewhere).id,
    roleDefinitionId: expect.stringMatching(
      `^/subscriptions/${elsewhere}/.*/7f951dda-4ed3-4680-a7ca-43fe172d538d$`,
    ),
  });
  expect(await dependenciesOf(pulls[0]!)).toContain(machine);
  expect(await valueOf(kubeletIdentity.resourceId!)).toBe("/ids/kubelets-identity");
});

it("may leave kubelets' identity on a machine to which it attaches a disk", async () => {
  const { recorder, resourceGroup } = await build(withRegistry);

  const [found, ...others] = (await recorder.of(assignment)).filter(
    ({ inputs }) => inputs.scope === "/ids/kubelets-identity",
  );
  expect(others).toEqual([]);
  expect(found!.inputs.roleDefinitionId).toMatch(/\/f1a07417-d97a-45cb-824c-7a7467783830$/);
  expect(found!.opts.deletedWith).toBe(resourceGroup.own);
});

it.each([{ identityId: theirs }, {}])(
  "assigns kubelets no role where others give their identity, with %j",
  async (change) => {
    const existing = { clientId: "kubelets-of-others", principalId: principal };
    const { recorder, kubeletIdentity } = await build({
      change: { ...withRegistry.change, ...change, kubeletIdentityId: "/their-kubelets" },
      registries: withRegistry.registries,
      existingIdentity: "identityId" in change ? existing : undefined,
      existingKubeletIdentity: existing,
    });

    const made = (await recorder.all()).map(({ name }) => name);

    expect(made.filter((one) => /kubelets-|pulls/.test(one))).toEqual([]);
    expect(await valueOf(kubeletIdentity.clientId!)).toBe("kubelets-of-others");
    expect(await valueOf(kubeletIdentity.resourceId!)).toBe("/their-kubelets");
  },
);

it("makes kubelets no identity without registries", async () => {
  const { kubeletIdentity } = await build();

  expect([kubeletIdentity.resourceId, kubeletIdentity.clientId]).toEqual([undefined, undefined]);
});

describe("the custom roles", () => {
  const { subscriptionId } = account;
  const mine = "organization/zoned/test";

  /** An Azure with the roles of this stack's cluster, as this program has made them. */
  async function madeBefore(description = (text: string) => text) {
    const recorder = await Recorder.start();
    new Roles(
      "identity",
      { settings: validSettings, subscriptionId },
      { transformations: [recorder.watch] },
    );
    const { arm } = newArm();
    for (const { inputs } of await recorder.of("azure-native:authorization:RoleDefinition")) {
      const { scope: _, roleDefinitionId, ...role } = inputs;
      await arm.put(
        `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roleDefinitionId}`,
        { ...role, description: description(role["description"]) },
      );
    }
    return arm;
  }

  /** What a first update says of them. */
  const saidOf = async (description: (text: string) => string, more = {}) =>
    takenRoles({ ...validSettings, ...more }, await connectionTo(await madeBefore(description)));

  const more =
    /^the login may not change the roles .*\/restart\/action, \S+\/redeploy\/action as well: .*'User Access Administrator' --scope \S+$/;

  it.each<[string, boolean, object, RegExp[]]>([
    ["is refused where they are to allow more", false, { autoRepair: true }, [more]],
    ["changes none", false, {}, []],
    ["has an identity of others", false, { autoRepair: true, identityId: theirs }, []],
    ["is not, but an owner's", true, { autoRepair: true }, []],
  ])(
    "of a living cluster a login that may not change them %s",
    async (_, isOwner, change, said) => {
      const arm = await madeBefore();
      const group = `${subscriptionPath}/resourceGroups/theirs`;
      const login = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/login`;
      await arm.put(group, { location: "westeurope" });
      const { body } = await arm.put(login, { location: "westeurope" });
      const contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c";
      await arm.put(
        `${subscriptionPath}/providers/Microsoft.Authorization/roleAssignments/${principal}`,
        {
          principalId: body["principalId"],
          principalType: "ServicePrincipal",
          roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${contributor}`,
        },
      );
      const connection = await connectionTo(arm, isOwner ? undefined : tokenOf(arm, login));

      expect(await roleProblems({ ...validSettings, ...change }, connection)).toEqual(
        said.map((text) => expect.stringMatching(text)),
      );
    },
  );

  const ofOther = (text: string) => text.replace(mine, "organization/zoned/other");

  it("names roles of another stack's cluster with the same name, and what to set", async () => {
    expect(await saidOf(ofOther)).toEqual([
      expect.stringMatching(
        /^clusterName is zoned-test, .* of stack organization\/zoned\/other: .*\(pulumi config set clusterName NAME\)$/,
      ),
    ]);
  });

  it.each<[string, (text: string) => string, object]>([
    ["of this stack, as an interrupted update leaves them", (text) => text, {}],
    ["of an older release", (text) => text.replace(` Of stack ${mine}.`, ""), {}],
    ["that the cluster does not make", ofOther, { identityId: "/ids/theirs" }],
    ["of a cluster of another name", ofOther, { clusterName: "zoned-prod" }],
  ])("lets roles be %s", async (_, description, more) => {
    expect(await saidOf(description, more)).toEqual([]);
  });
});
