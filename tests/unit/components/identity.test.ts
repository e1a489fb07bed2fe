import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Identity } from "../../../components/identity";
import { Settings } from "../../../components/plan/settings/settings";
import { Recorder, valueOf } from "../../support/record";
import { validSettings, subscriptionId } from "../../support/sample";

const subscription = `/subscriptions/${subscriptionId}`;
const groupId = `${subscription}/resourceGroups/zoned-test`;
const assignment = "azure-native:authorization:RoleAssignment";
const definition = "azure-native:authorization:RoleDefinition";
const principal = "11111111-2222-3333-4444-555555555555";

interface Stack {
  readonly change?: Partial<Settings>;
  readonly principalId?: string;
  readonly subscriptionId?: string;
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
  const resourceGroup = new ResourceGroup("cluster", {}, { import: groupId });
  const identity = new Identity(
    "identity",
    {
      resourceGroup,
      settings: { ...validSettings, ...stack.change },
      subscriptionId: stack.subscriptionId ?? subscriptionId,
    },
    { transformations: [recorder.watch] },
  );
  return { recorder, resourceGroup, identity };
};

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

it("may change network, machines and snapshots in its group, and nothing at the subscription", async () => {
  const { recorder } = await build();

  const rights = (await recorder.of(assignment)).map(({ inputs }) => [
    inputs.scope,
    inputs.roleDefinitionId.split("/").pop(),
  ]);

  expect(rights).toEqual(
    expect.arrayContaining([
      [groupId, "4d97b98b-1d4f-4787-a291-c67834d212e7"],
      [groupId, "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"],
      [groupId, "7efff54f-a5b4-42b5-a1c5-5411624893ce"],
      ["/ids/identity-identity", "f1a07417-d97a-45cb-824c-7a7467783830"],
      [subscription, "identity-reads-providers"],
    ]),
  );
  expect(rights).toHaveLength(5);
});

it("may do one thing at the subscription: read which zones a region has", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(definition);

  expect(inputs).toMatchObject({ scope: subscription, assignableScopes: [subscription] });
  expect(inputs.permissions).toEqual([
    { actions: ["Microsoft.Resources/subscriptions/providers/read"] },
  ]);
});

it("names assignments by the same GUIDs in every release, since Azure renames none", async () => {
  expect((await namesOf()).sort()).toEqual([
    "18d36e13-f910-5889-82cc-3bcea5415580",
    "292c6246-44e6-56e2-85b6-cf4c9c88c4d5",
    "767f5bff-5fba-59f0-868b-ff581ee97d6e",
    "e9e2a22d-47c7-5561-8e6a-8dc974f4633c",
    "ef527d33-57f3-59a2-8379-c447482242d1",
  ]);
});

it("names its own role by the same GUID in every release", async () => {
  const { recorder } = await build();

  expect((await recorder.only(definition)).inputs.roleDefinitionId).toBe(
    "d4d569aa-34c8-5153-833a-51f853e625b2",
  );
});

it("gives another principal other assignments, since Azure moves none", async () => {
  const before = await namesOf();
  const after = await namesOf({ principalId: "99999999-2222-3333-4444-555555555555" });

  expect(after.filter((name) => before.includes(name))).toEqual([]);
});

it("names its own role so that no other cluster of the tenant has the same", async () => {
  const stacks = [
    {},
    { change: { clusterName: "zoned-prod" } },
    { subscriptionId: "00000000-0000-0000-0000-000000000000" },
  ];
  const roles = [];
  for (const stack of stacks) {
    const { recorder } = await build(stack);
    roles.push((await recorder.only(definition)).inputs);
  }

  expect(new Set(roles.map(({ roleName }) => roleName)).size).toBe(3);
  expect(new Set(roles.map(({ roleDefinitionId }) => roleDefinitionId)).size).toBe(3);
});

it("goes with the group where it lies in it, and only there", async () => {
  const { recorder, resourceGroup } = await build();

  const requests = (await recorder.all()).filter(({ type }) =>
    /:(RoleAssignment|RoleDefinition|UserAssignedIdentity)$/.test(type),
  );
  const left = requests.filter(({ opts }) => opts.deletedWith !== resourceGroup);

  expect(left.map(({ name }) => name).sort()).toEqual([
    "identity-reads-providers",
    "identity-zones",
  ]);
  expect(left.filter(({ inputs }) => inputs.scope !== subscription)).toEqual([]);
  expect(requests).toHaveLength(7);
});

it("hands its identity to machines and its client id to azure.json", async () => {
  const { identity } = await build();

  expect(await valueOf(identity.resourceId!)).toBe("/ids/identity-identity");
  expect(await valueOf(identity.credential.clientId)).toBe("the-client");
  expect(identity.credential.clientSecret).toBeUndefined();
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
