import { subscriptionPath } from "../../../arm/resources/ids";
import { serveRest } from "../../../arm/rest/rest";
import { createResources, newArm, tokenOf } from "../../support/arm/fixture";
import {
  compute,
  group,
  network,
  reader,
  roleDefinition,
  valid,
} from "../../support/arm/valid-resources";

const guid = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`;
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;
const networkContributor = roleDefinition("4d97b98b-1d4f-4787-a291-c67834d212e7");
const operator = roleDefinition("f1a07417-d97a-45cb-824c-7a7467783830");
const own = roleDefinition(guid(1));
const snapshot = compute("snapshots/of-a-disk");

interface Answer {
  readonly status: number;
  readonly code?: string;
  readonly message?: string;
}

/** A Resource Manager, and requests to it as an identity that has these roles. */
async function withRoles(
  roles: readonly (readonly [scope: string, role: string])[],
  actions: readonly string[] = ["Microsoft.Compute/virtualMachines/read"],
  others: readonly string[] = ["Microsoft.Compute/*"],
) {
  const { arm } = newArm();
  await createResources(arm);
  await arm.put(snapshot, {
    location: "westeurope",
    creationData: { createOption: "Copy", sourceResourceId: valid.disk[0] },
  });
  await arm.put(identity, { location: "westeurope" });
  const { principalId } = arm.peek(identity) as Record<string, string>;
  await arm.put(own, {
    roleName: "own",
    permissions: [{ actions: others, notActions: ["Microsoft.Compute/*/delete"] }, { actions }],
    assignableScopes: [subscriptionPath],
  });
  for (const [number, [scope, roleDefinitionId]] of roles.entries()) {
    const assignment = `${scope}/providers/Microsoft.Authorization/roleAssignments/${guid(number + 2)}`;
    await arm.put(assignment, { principalId, roleDefinitionId });
  }
  const token = tokenOf(arm, identity);
  return async (method: string, path: string, sent?: object): Promise<Answer> => {
    const server = await serveRest(arm, 0);
    try {
      const version = path.includes("PolicyInsights")
        ? "2024-10-01"
        : /\/(disks|snapshots)\//.test(path)
          ? "2024-03-02"
          : "2024-03-01";
      const url = `http://127.0.0.1:${server.port}${path}?api-version=${version}`;
      const answer = await fetch(url, {
        method,
        headers: { authorization: `Bearer ${token}` },
        body: sent && JSON.stringify(sent),
      });
      const text = await answer.text();
      const { error } = (text === "" ? {} : JSON.parse(text)) as { error?: Omit<Answer, "status"> };
      return { status: answer.status, ...error };
    } finally {
      await server.close();
    }
  };
}

const failed = { status: 403, code: "AuthorizationFailed" };

it("refuses an identity without a role everything, in Azure's words", async () => {
  const ask = await withRoles([]);

  const { message, ...refusal } = await ask("GET", valid.machine[0]);

  expect(refusal).toMatchObject(failed);
  expect(message).toMatch(
    /^The client '[0-9a-f-]+' with object id '[0-9a-f-]+' does not have authorization to perform action 'Microsoft\.Compute\/virtualMachines\/read' over scope '.*\/virtualMachines\/cp-1'/,
  );
});

it.each([
  ["GET", network("loadBalancers/api")],
  ["GET", network("loadBalancers")],
  ["GET", network("loadBalancers/api/backendAddressPools/cp")],
  ["DELETE", network("networkSecurityGroups/none")],
  ["GET", group],
])("lets an identity with Network Contributor at its group %s %s", async (method, path) => {
  const ask = await withRoles([[group, networkContributor]]);

  expect((await ask(method, path)).status).toBeLessThan(300);
});

it.each([
  ["Reader", reader, 200],
  ["a role without that right", "4d97b98b-1d4f-4787-a291-c67834d212e7", 403],
])(
  "answers whether policies would refuse something to an identity with %s",
  async (_, role, status) => {
    const ask = await withRoles([[group, roleDefinition(role)]]);
    const question = { resourceDetails: { resourceContent: { type: "Microsoft.Compute/disks" } } };

    const path = `${group}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions`;
    expect((await ask("POST", path, question)).status).toBe(status);
  },
);

it.each([
  ["GET", valid.machine[0]],
  ["DELETE", group],
  // Its own group's name is only the beginning of this one's.
  ["GET", `${group}-2`],
  ["GET", `${subscriptionPath}/providers/Microsoft.Network/publicIPAddresses`],
  ["GET", `${subscriptionPath}/providers/Microsoft.Compute`],
])("lets it not %s %s", async (method, path) => {
  const ask = await withRoles([[group, networkContributor]]);

  expect(await ask(method, path)).toMatchObject(failed);
});

it.each([
  ["GET", `${valid.machine[0]}/instanceView`, 200],
  ["POST", `${valid.machine[0]}/restart`, 202],
  ["DELETE", compute("virtualMachines/none"), 403],
])("lets a role with exceptions %s %s: %i", async (method, path, status) => {
  const ask = await withRoles([[group, own]]);

  expect((await ask(method, path)).status).toBe(status);
});

it.each([
  ["HEAD", 204],
  ["GET", 200],
  ["PUT", 403],
])("lets a reader %s: %i", async (method, status) => {
  const ask = await withRoles([[group, roleDefinition(reader)]]);

  expect((await ask(method, network("loadBalancers/api"))).status).toBe(status);
});

it("lets a role of the subscription describe a provider", async () => {
  const action = "Microsoft.Resources/subscriptions/providers/read";
  const ask = await withRoles([[subscriptionPath, own]], [action]);

  expect((await ask("GET", `${subscriptionPath}/providers/Microsoft.Compute`)).status).toBe(200);
});

it("refuses to give a machine an identity that one may not assign, and lets who operates it", async () => {
  const [machine, body] = valid.machine;
  const { location, ...properties } = body;
  const wanted = {
    location,
    properties,
    identity: { type: "UserAssigned", userAssignedIdentities: { [identity]: {} } },
  };
  const roles = [
    [group, own],
    [group, networkContributor],
  ] as const;

  const without = await (await withRoles(roles))("PUT", machine, wanted);
  const with_ = await (await withRoles([...roles, [identity, operator]]))("PUT", machine, wanted);

  expect(without).toMatchObject({ status: 403, code: "LinkedAuthorizationFailed" });
  expect(without.message).toContain(
    "'Microsoft.ManagedIdentity/userAssignedIdentities/assign/action'",
  );
  expect(with_).not.toMatchObject({ status: 403 });
});

it("refuses a machine at an interface of a network that one may not join", async () => {
  const [machine, { location, ...properties }] = valid.machine;
  const ask = await withRoles([[group, own]]);

  expect(await ask("PUT", machine, { location, properties })).toMatchObject({
    status: 403,
    code: "LinkedAuthorizationFailed",
    message: expect.stringContaining("'Microsoft.Network/networkInterfaces/join/action'"),
  });
});

const [set] = valid.set;
const read = "Microsoft.Compute/diskEncryptionSets/read";
const copy = "Microsoft.Compute/disks/beginGetAccess/action";

it.each([
  {
    what: "encrypt a disk by a set that one may not read",
    of: "disks",
    properties: {
      creationData: { createOption: "Empty" },
      diskSizeGB: 4,
      encryption: { diskEncryptionSetId: set },
    },
    lacks: [read, set],
  },
  {
    what: "take a snapshot of a disk that one may not copy",
    of: "snapshots",
    properties: { creationData: { createOption: "Copy", sourceResourceId: valid.disk[0] } },
    lacks: [copy, valid.disk[0]],
  },
  {
    what: "make a disk of a snapshot that one may not copy",
    of: "disks",
    properties: { creationData: { createOption: "Copy", sourceResourceId: snapshot } },
    lacks: [copy, snapshot],
  },
])("refuses to $what, and lets who may", async ({ of, properties, lacks: [right, scope] }) => {
  const disks = ["disks", "snapshots"].map((type) => `Microsoft.Compute/${type}/write`);
  const put = async (actions: readonly string[]) =>
    (await withRoles([[group, own]], actions, []))("PUT", compute(`${of}/another`), {
      location: "westeurope",
      properties,
    });

  const { message, ...refusal } = await put(disks);
  expect(refusal).toMatchObject({ status: 403, code: "LinkedAuthorizationFailed" });
  expect(message).toMatch(
    `does not have permission to perform action(s) '${right}' on the linked scope(s) '${scope}'`,
  );
  expect((await put([...disks, right!])).status).toBeLessThan(300);
});
