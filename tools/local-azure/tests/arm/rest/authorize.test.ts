import { account, subscriptionPath } from "../../../arm/resources/resource";
import { serveRest } from "../../../arm/rest/rest";
import { loginToken } from "../../../machines/identity-token";
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

it("says which action over which scope an identity may not do", async () => {
  const ask = await withRoles([]);

  expect(await ask("GET", valid.machine[0])).toMatchObject({
    ...{ status: 403, code: "AuthorizationFailed" },
    message: expect.stringMatching(
      /^The client '[0-9a-f-]+' with object id '[0-9a-f-]+' .*'Microsoft\.Compute\/virtualMachines\/read' over scope '.*\/virtualMachines\/cp-1'/,
    ),
  });
});

const balancer = network("loadBalancers/api");
const restrictions = `${group}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions`;
const question = { resourceDetails: { resourceContent: { type: "Microsoft.Compute/disks" } } };
const roles = {
  networkContributor: [group, networkContributor],
  reader: [group, roleDefinition(reader)],
  // All of compute but deletions, and to read machines.
  withExceptions: [group, own],
} as const;

it.each<[keyof typeof roles, method: string, path: string, status: number, body?: object]>([
  ["networkContributor", "GET", balancer, 200],
  ["networkContributor", "GET", network("loadBalancers"), 200],
  ["networkContributor", "GET", `${balancer}/backendAddressPools/cp`, 200],
  ["networkContributor", "DELETE", network("networkSecurityGroups/none"), 204],
  ["networkContributor", "GET", group, 200],
  ["networkContributor", "GET", valid.machine[0], 403],
  ["networkContributor", "DELETE", group, 403],
  // Its own group's name is only the beginning of this one's.
  ["networkContributor", "GET", `${group}-2`, 403],
  [
    ...(["networkContributor", "GET"] as const),
    ...([`${subscriptionPath}/providers/Microsoft.Network/publicIPAddresses`, 403] as const),
  ],
  ["networkContributor", "GET", `${subscriptionPath}/providers/Microsoft.Compute`, 403],
  ["networkContributor", "POST", restrictions, 403, question],
  ["reader", "POST", restrictions, 200, question],
  ["reader", "HEAD", balancer, 204],
  ["reader", "GET", balancer, 200],
  ["reader", "PUT", balancer, 403],
  ["withExceptions", "GET", `${valid.machine[0]}/instanceView`, 200],
  ["withExceptions", "POST", `${valid.machine[0]}/restart`, 202],
  ["withExceptions", "DELETE", compute("virtualMachines/none"), 403],
])("answers %s who asks for %s %s: %i", async (role, method, path, status, ...body) => {
  const answer = await (await withRoles([roles[role]]))(method, path, ...body);

  expect(answer).toMatchObject({ status, ...(status === 403 && { code: "AuthorizationFailed" }) });
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

const [machine, { location, ...properties }] = valid.machine;

it.each([
  ["as it is", properties],
  // As the disk driver does it.
  ["as far as data disks go", { storageProfile: { dataDisks: [] } }],
])("refuses to write a machine %s at an interface that one may not join", async (_, sent) => {
  const ask = await withRoles([[group, own]]);

  expect(await ask("PUT", machine, { location, properties: sent })).toMatchObject({
    status: 403,
    code: "LinkedAuthorizationFailed",
    message: expect.stringContaining("'Microsoft.Network/networkInterfaces/join/action'"),
  });
});

const pool = {
  virtualNetwork: { id: network("virtualNetworks/spoke") },
  loadBalancerBackendAddresses: [{ name: "cp-1", properties: { ipAddress: "10.1.0.4" } }],
};
const named = { name: "services", properties: pool };

it.each([
  ["a balancer", network("loadBalancers/services"), { backendAddressPools: [named] }],
  ["a pool of one", `${balancer}/backendAddressPools/services`, pool],
])("refuses %s with addresses of a network that one may not join", async (_, path, properties) => {
  const write = ["", "/backendAddressPools"].map(
    (part) => `Microsoft.Network/loadBalancers${part}/write`,
  );
  const join = "Microsoft.Network/virtualNetworks/joinLoadBalancer/action";
  const put = async (actions: readonly string[]) => {
    const ask = await withRoles([[group, own]], actions, []);
    return ask("PUT", path, { location: "westeurope", sku: { name: "Standard" }, properties });
  };

  expect(await put(write)).toMatchObject({
    ...{ status: 403, code: "LinkedAuthorizationFailed" },
    message: expect.stringContaining(
      `'${join}' on the linked scope(s) '${pool.virtualNetwork.id}'`,
    ),
  });
  expect(await put([...write, join])).not.toMatchObject({ status: 403 });
});

it("refuses a security group with a rule for an application security group that one may not join", async () => {
  const join = "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action";
  const bastions = network("applicationSecurityGroups/bastions");
  const properties = {
    ...{ access: "Allow", direction: "Inbound", priority: 200, protocol: "Tcp" },
    ...{ sourcePortRange: "*", destinationAddressPrefix: "*", destinationPortRange: "22" },
    sourceApplicationSecurityGroups: [{ id: bastions }],
  };
  const put = async (actions: readonly string[]) => {
    const ask = await withRoles([[group, own]], actions, []);
    return ask("PUT", network("networkSecurityGroups/guard"), {
      location: "westeurope",
      properties: { securityRules: [{ name: "ssh", properties }] },
    });
  };
  const write = "Microsoft.Network/networkSecurityGroups/write";

  expect(await put([write])).toMatchObject({
    ...{ status: 403, code: "LinkedAuthorizationFailed" },
    message: expect.stringContaining(`'${join}' on the linked scope(s) '${bastions}'`),
  });
  expect(await put([write, join])).not.toMatchObject({ status: 403 });
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

it("takes the login for the subscription's owner, until it has the roles alone that others assign to it", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  const contributor = roleDefinition("b24988ac-6180-42a0-ab88-20f7382dd24c");
  const assignment = (digit: number) =>
    `${group}/providers/Microsoft.Authorization/roleAssignments/${guid(digit)}`;
  const properties = { principalId: account.objectId, roleDefinitionId: contributor };
  await arm.put(assignment(2), properties);
  const server = await serveRest(arm, 0);
  const ask = async (method: string, path: string, sent?: object, token = loginToken()) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}?api-version=2022-04-01`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      body: sent && JSON.stringify(sent),
    });
    const text = await answer.text();
    return { status: answer.status, ...(text === "" ? {} : JSON.parse(text)) };
  };
  const other = { properties: { ...properties, roleDefinitionId: roleDefinition(reader) } };
  const permissions = (scope: string) =>
    ask("GET", `${scope}/providers/Microsoft.Authorization/permissions`);
  try {
    expect(await ask("PUT", assignment(3), other)).toMatchObject({ status: 201 });
    expect((await permissions(group)).value).toMatchObject([{ actions: ["*"], notActions: [] }]);

    await ask("PUT", "/local/login", { isOwner: false });

    expect((await permissions(group)).value).toMatchObject([
      { actions: ["*"], notActions: expect.arrayContaining(["Microsoft.Authorization/*/Write"]) },
      { actions: ["*/read"] },
    ]);
    expect(await ask("PUT", assignment(4), other)).toMatchObject({
      status: 403,
      error: {
        code: "AuthorizationFailed",
        message:
          `The client '${account.clientId}' with object id '${account.objectId}' does not have authorization to perform action ` +
          `'Microsoft.Authorization/roleAssignments/write' over scope '${assignment(4)}' or the scope is invalid. ` +
          "If access was recently granted, please refresh your credentials.",
      },
    });
    expect((await permissions(subscriptionPath)).error.code).toBe("AuthorizationFailed");
    expect((await ask("DELETE", assignment(3), undefined, "of-others")).status).toBe(200);
  } finally {
    await server.close();
  }
});
