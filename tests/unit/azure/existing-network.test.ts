import type { AzureConnection } from "../../../components/azure/resource-manager";
import { getExistingNetwork } from "../../../components/azure/existing-network";
import { placed } from "../../../components/azure/free-addresses";
import { type Shown, shownAs } from "../../../components/azure/shown";
import { machinesOf } from "../../../components/settings/topology";
import type { ResourceManager } from "../../../tools/local-azure/arm/resource-manager";
import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { pool, validSettings } from "../../support/sample";

const location = "westeurope";
const group = `${subscriptionPath}/resourceGroups/network`;
const inNetwork = (path: string) => `${group}/providers/Microsoft.Network/${path}`;
const vnet = inNetwork("virtualNetworks/spoke");
const subnets = ["a", "b"].map((name) => `${vnet}/subnets/${name}`);
const standard = { name: "Standard" };

/** What a network team has made: a subnet with all that a cluster needs, and a bare one. */
async function make(arm: ResourceManager, second: object): Promise<void> {
  const put = (id: string, body: object) => arm.put(id, { location, ...body });
  await arm.put(group, { location });
  await put(inNetwork("networkSecurityGroups/guard"), {});
  await put(inNetwork("routeTables/table"), {
    routes: [{ name: "on-premises", addressPrefix: "192.168.0.0/16", nextHopType: "None" }],
  });
  await put(inNetwork("publicIPAddresses/out"), {
    ...{ sku: standard, publicIPAllocationMethod: "Static", zones: ["1"] },
  });
  await put(inNetwork("natGateways/out"), {
    ...{ sku: standard, zones: ["1"] },
    publicIpAddresses: [{ id: inNetwork("publicIPAddresses/out") }],
  });
  await put(vnet, {
    addressSpace: { addressPrefixes: ["10.1.0.0/16"] },
    dhcpOptions: { dnsServers: ["10.0.0.4"] },
  });
  await arm.put(subnets[0]!, {
    addressPrefix: "10.1.1.0/28",
    networkSecurityGroup: { id: inNetwork("networkSecurityGroups/guard") },
    routeTable: { id: inNetwork("routeTables/table") },
    natGateway: { id: inNetwork("natGateways/out") },
  });
  await arm.put(subnets[1]!, { addressPrefix: "10.1.2.0/28", ...second });
  await put(inNetwork("networkInterfaces/theirs"), {
    ipConfigurations: [
      {
        ...{ name: "one", subnet: { id: subnets[0] } },
        ...{ privateIPAllocationMethod: "Static", privateIPAddress: "10.1.1.13" },
      },
    ],
  });
}

const settings = {
  ...{ ...validSettings, zones: ["1", "2"], nodeSubnets: subnets, controlPlaneCount: 3 },
  workerPools: [{ ...pool, count: 1, zones: ["1", "2"] }],
};

async function withNetwork<T>(
  work: (connection: AzureConnection) => Promise<T>,
  second: object = {},
): Promise<T> {
  const { arm } = newArm();
  await make(arm, second);
  return work(await connectionTo(arm));
}

it("has of each subnet what belongs to it, and how much room there is", async () => {
  const network = await withNetwork((connection) => getExistingNetwork(settings, connection));

  expect([...network!.subnets.values()]).toMatchObject([
    {
      ...{ id: subnets[0], name: "a", ranges: ["10.1.1.0/28"], delegations: [] },
      securityGroup: inNetwork("networkSecurityGroups/guard"),
      routeTable: inNetwork("routeTables/table"),
      gateway: inNetwork("natGateways/out"),
      // Of 16 addresses, Azure keeps 5, and somebody has one.
      free: 10,
    },
    { name: "b", securityGroup: undefined, gateway: undefined, free: 11 },
  ]);
  expect([...network!.rules.values()].flat().map(({ name }) => name)).toContain("DenyAllInBound");
  expect([...network!.routes.values()].flat().map(({ name }) => name)).toEqual(["on-premises"]);
  expect([...network!.egress.values()]).toEqual([
    { zone: "1", ranges: [expect.stringMatching(/^[\d.]+\/32$/)] },
  ]);
  expect(network).toMatchObject({
    ...{ location, ranges: ["10.1.0.0/16"], dnsServers: ["10.0.0.4"] },
  });
});

it("takes the NAT gateway of the whole network for that of a subnet that has none", async () => {
  const whole = inNetwork("natGateways/whole");
  const network = await withNetwork(({ arm, ...rest }) => {
    const { get } = arm;
    jest.spyOn(arm, "get").mockImplementation(async (path, query, ...more) => {
      const found = (await get.call(arm, path, query, ...more)) as { properties: object };
      if (path !== vnet || query["api-version"]! < "2024-07-01") return found;
      return {
        ...found,
        properties: { ...found.properties, defaultPublicNatGateway: { id: whole } },
      };
    });
    return getExistingNetwork(settings, { arm, ...rest });
  });

  expect([...network!.subnets.values()].map(({ gateway }) => gateway)).toEqual([
    inNetwork("natGateways/out"),
    whole,
  ]);
});

it("finds no network where Azure has none", async () => {
  const nodeSubnets = [`${inNetwork("virtualNetworks/other")}/subnets/a`];

  expect(
    await withNetwork((connection) => getExistingNetwork({ nodeSubnets }, connection)),
  ).toBeUndefined();
});

it("finds none that the login may not read, and says what of its parts that may not", async () => {
  const from = (refused: string) =>
    withNetwork(({ arm, ...rest }) => {
      const { get } = arm;
      jest
        .spyOn(arm, "get")
        .mockImplementation((path, ...more) =>
          path.toLowerCase() === refused.toLowerCase()
            ? Promise.reject(new Error(`${path}: 403 AuthorizationFailed`))
            : get.call(arm, path, ...more),
        );
      return getExistingNetwork(settings, { arm, ...rest });
    });
  const guard = inNetwork("networkSecurityGroups/guard").toLowerCase();

  expect(await from(vnet)).toBeUndefined();
  expect(await from(guard)).toMatchObject({ unreadable: [guard], rules: new Map([[guard, []]]) });
});

it.each([
  ["how many are free", "usages/read", { free: undefined }, false],
  ["which are", "checkIpAddressAvailability/read", { free: 10 }, true],
])(
  "does not know of addresses %s where the login may not read it",
  async (_, hidden, first, areAddressesUnknown) => {
    const { arm } = newArm();
    await make(arm, {});
    const login = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/login`;
    const { body } = await arm.put(login, { location });
    const role = "00000000-0000-0000-0000-000000000001";
    const roleDefinitionId = `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${role}`;
    const notActions = [`Microsoft.Network/virtualNetworks/${hidden}`];
    await arm.put(roleDefinitionId, {
      ...{ roleName: "reads the network", assignableScopes: [subscriptionPath] },
      permissions: [{ actions: ["*/read"], notActions }],
    });
    await arm.put(`${group}/providers/Microsoft.Authorization/roleAssignments/${role}`, {
      ...{ principalId: (body as { principalId: string }).principalId, roleDefinitionId },
      principalType: "ServicePrincipal",
    });
    const connection = await connectionTo(arm, tokenOf(arm, login));
    const network = await getExistingNetwork(settings, connection);
    const known = { settings, network, shown: new Map(), before: { machines: [] } };

    const ask = jest.spyOn(connection.arm, "getIfReadable");

    expect([...network!.subnets.values()][0]).toMatchObject(first);
    expect((await placed(machinesOf(settings), known, connection)).areAddressesUnknown).toBe(
      areAddressesUnknown,
    );
    // What is refused once is refused for every machine.
    expect(ask.mock.calls.length === 1).toBe(areAddressesUnknown);
  },
);

it("asks what the login may do in each subnet", async () => {
  const network = await withNetwork((connection) => {
    jest
      .spyOn(connection.arm, "list")
      .mockImplementation(async (path: string) =>
        path.startsWith(`${subnets[1]}/providers`) ? [{ actions: ["*"] }] : [],
      );
    return getExistingNetwork(settings, connection);
  });

  expect([...network!.subnets.values()].map(({ permissions }) => permissions)).toEqual([
    [],
    [{ actions: ["*"] }],
  ]);
});

type Change = { readonly apiAccess?: "private"; readonly nodeSubnets?: string[] };

/** Where the machines, and a private API, are put: their addresses by their names. */
const addresses = (
  shown: Shown = new Map(),
  before: { machines: { name: string; address: string }[]; apiAddress?: string } = { machines: [] },
  change: Change = {},
) =>
  withNetwork(async (connection) => {
    const changed = { ...settings, ...change };
    const network = await getExistingNetwork(changed, connection);
    const { machines, apiAddress } = await placed(
      machinesOf(changed),
      { settings: changed, network, shown, before },
      connection,
    );
    return Object.fromEntries([
      ...machines.map(({ name, address }) => [name.replace("zoned-test-", ""), address]),
      ["api", apiAddress],
    ]);
  });

const shownOf = (token: string, name: string, list: string, privateIPAddress: string) =>
  [
    shownAs(`azure-native:network:${token}`, name),
    { name, properties: { [list]: [{ properties: { privateIPAddress } }] } },
  ] as const;

it("gives machines the last free addresses of their zones' subnets", async () => {
  expect(await addresses()).toEqual({
    "cp-1": "10.1.1.14",
    "cp-2": "10.1.2.14",
    // 10.1.1.13 is somebody's.
    "cp-3": "10.1.1.12",
    "workers-1": "10.1.2.13",
  });
});

it("gives a private API the last free address of the first subnet, which no machine gets then", async () => {
  expect(await addresses(new Map(), undefined, { apiAccess: "private" })).toMatchObject({
    api: "10.1.1.14",
    "cp-1": "10.1.1.12",
    "cp-2": "10.1.2.14",
  });
});

it("leaves a private API the address that its balancer has, or had when it was last seen", async () => {
  const isPrivate = { apiAccess: "private" } as const;
  const shown = new Map([
    shownOf("LoadBalancer", "zoned-test-api", "frontendIPConfigurations", "10.1.1.7"),
  ]);
  const before = { machines: [], apiAddress: "10.1.1.12" };

  expect(await addresses(shown, before, isPrivate)).toMatchObject({
    api: "10.1.1.7",
    "cp-1": "10.1.1.14",
  });
  expect(await addresses(new Map(), before, isPrivate)).toMatchObject({
    ...{ api: "10.1.1.12", "cp-1": "10.1.1.14" },
    // 10.1.1.13 is somebody's.
    "cp-3": "10.1.1.11",
  });
});

it("leaves a machine the address that its interface has, or had when it was last seen", async () => {
  const shown = new Map([
    shownOf("NetworkInterface", "zoned-test-cp-1-nic", "ipConfigurations", "10.1.1.7"),
  ]);
  const before = { machines: [{ name: "zoned-test-cp-2", address: "10.1.2.14" }] };

  expect(await addresses(shown, before)).toMatchObject({
    "cp-1": "10.1.1.7",
    "cp-2": "10.1.2.14",
    "cp-3": "10.1.1.14",
    // Which nothing has in Azure, and is cp-2's.
    "workers-1": "10.1.2.13",
  });
});

it.each([
  ["public", undefined],
  ["private", "172.16.0.4"],
] as const)(
  "leaves machines where they are in a network of the cluster's own, and a %s API",
  async (apiAccess, apiAddress) => {
    const machines = machinesOf(validSettings);
    const own = { settings: { ...validSettings, apiAccess }, network: undefined };
    const known = { ...own, shown: new Map(), before: { machines: [] } };

    expect(await withNetwork((connection) => placed(machines, known, connection))).toEqual({
      machines,
      apiAddress,
    });
  },
);

it("goes on in a subnet's second range where the first one is full", async () => {
  const ranges = { addressPrefix: undefined, addressPrefixes: ["10.1.2.0/29", "10.1.3.0/28"] };
  const full = ["10.1.2.4", "10.1.2.5", "10.1.2.6"].map((address, at) => ({
    ...{ name: `zoned-test-old-${at}`, address },
  }));
  const machines = await withNetwork(async (connection) => {
    const network = await getExistingNetwork(settings, connection);
    const planned = machinesOf(settings);
    const old = full.map((one) => ({ ...planned[1]!, ...one }));
    const known = { settings, network, shown: new Map(), before: { machines: full } };
    return (await placed([...old, ...planned], known, connection)).machines;
  }, ranges);

  expect(machines.find(({ name }) => name === "zoned-test-cp-2")).toMatchObject({
    ...{ address: "10.1.3.14", subnetCidr: "10.1.3.0/28" },
  });
});

it("leaves machines where they are in a subnet that has no address for others", async () => {
  const full = Array.from({ length: 11 }, (_, at) => ({
    ...{ name: `zoned-test-old-${at}`, address: `10.1.2.${at + 4}` },
  }));
  const machines = await withNetwork(async (connection) => {
    const network = await getExistingNetwork(settings, connection);
    const planned = machinesOf(settings);
    const old = full.map((one) => ({ ...planned[1]!, name: one.name }));
    const known = { settings, network, shown: new Map(), before: { machines: full } };
    return (await placed([...planned, ...old], known, connection)).machines;
  });

  expect(machines).toEqual(expect.arrayContaining(full.map((one) => expect.objectContaining(one))));
});
