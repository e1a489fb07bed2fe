import { ResourceGroup } from "@pulumi/azure-native/resources";

import type { ExistingNetwork } from "../../components/azure/existing-network";
import { type Shown, shownAs } from "../../components/azure/shown";
import { Network } from "../../components/network";
import { Settings } from "../../components/settings/settings";
import { dependenciesOf, Recorded, Recorder, valueOf } from "../support/record";
import { validSettings } from "../support/sample";

const type = (name: string) => `azure-native:network:${name}`;
const build = async (
  change: Partial<Settings> = {},
  existingNetwork?: ExistingNetwork,
  shown: Shown = new Map(),
) => {
  // An address of its own for each public IP, so that a forgotten one shows.
  let made = 0;
  const recorder = await Recorder.start({
    filledIn: { [type("PublicIPAddress")]: () => ({ ipAddress: `20.0.0.${++made}` }) },
  });
  const own = new ResourceGroup("cluster", { resourceGroupName: "zoned-test" });
  const resourceGroup = { name: own.name, id: own.id, own };
  const network = new Network(
    "network",
    {
      ...{ resourceGroup, settings: { ...validSettings, ...change }, shown },
      existingNetwork,
    },
    { transformations: [recorder.watch] },
  );
  return { recorder, network };
};

type Built = Awaited<ReturnType<typeof build>>;

let zonal: Built;
let withSsh: Built;

beforeAll(async () => {
  zonal = await build();
  withSsh = await build({ sshAccessCidrs: ["198.51.100.9/32"] });
});

const rulesOf = (recorder: Recorder) => recorder.of(type("SecurityRule"));
const named = (requests: readonly Recorded[], part: string) =>
  requests.filter(({ inputs }) => String(inputs.securityRuleName).includes(part));

it("makes nothing where the settings name subnets, and puts each zone's machines into its own", async () => {
  const existingNetwork = { id: "/spoke" } as ExistingNetwork;
  const one = await build({ nodeSubnets: ["/nodes"] }, existingNetwork);
  const three = await build({ nodeSubnets: ["/a", "/b", "/c"] }, existingNetwork);

  const subnetsOf = ({ network: { subnetIds } }: Built) =>
    Promise.all([...subnetIds].map(async ([zone, id]) => [zone, await valueOf(id)]));
  expect(await subnetsOf(one)).toEqual(["1", "2", "3"].map((zone) => [zone, "/nodes"]));
  expect(await subnetsOf(three)).toEqual([
    ["1", "/a"],
    ["2", "/b"],
    ["3", "/c"],
  ]);
  expect(await valueOf(three.network.balancerSubnetId)).toBe("/a");
  expect(await valueOf(three.network.virtualNetworkId)).toBe("/spoke");
  const made = await one.recorder.all();
  expect(made.filter(({ type: of }) => of.startsWith("azure-native:network:"))).toEqual([]);
});

it("gives every zone a subnet without the outbound access that Azure would add", async () => {
  const { recorder, network } = zonal;

  const subnets = await recorder.of(type("Subnet"));

  expect(
    subnets.map(({ inputs: one }) => [
      one.subnetName,
      one.addressPrefix,
      one.defaultOutboundAccess,
    ]),
  ).toEqual([
    ["nodes-1", "172.16.1.0/24", false],
    ["nodes-2", "172.16.2.0/24", false],
    ["nodes-3", "172.16.3.0/24", false],
    ["internal-balancers", "172.16.0.0/24", false],
  ]);
  for (const { inputs } of subnets) {
    expect(inputs.networkSecurityGroup).toEqual({ id: "/ids/network-nsg" });
  }
  for (const { inputs } of subnets.slice(0, 3)) {
    expect(inputs.routeTable).toEqual({ id: "/ids/network-rt" });
  }
  expect([...network.subnetIds.keys()]).toEqual(["1", "2", "3"]);
  expect(await valueOf(network.subnetIds.get("2")!)).toBe("/ids/network-nodes-2");
});

it("covers the subnets with one address space", async () => {
  const { inputs } = await zonal.recorder.only(type("VirtualNetwork"));

  expect(inputs.addressSpace).toEqual({ addressPrefixes: ["172.16.0.0/16"] });
  // Inline subnets and subnets of their own undo each other.
  expect(inputs).not.toHaveProperty("subnets");
});

it("lets every zone out through a gateway and an address of that same zone", async () => {
  const gateways = await zonal.recorder.of(type("NatGateway"));
  const addresses = await zonal.recorder.of(type("PublicIPAddress"));
  const subnets = await zonal.recorder.of(type("Subnet"));

  for (const zone of ["1", "2", "3"]) {
    const gateway = gateways.find(({ inputs }) => inputs.zones[0] === zone)!;
    expect(gateway.inputs).toMatchObject({ zones: [zone], sku: { name: "Standard" } });
    const [address] = gateway.inputs.publicIpAddresses;
    expect(addresses.find(({ name }) => `/ids/${name}` === address.id)?.inputs).toMatchObject({
      zones: [zone],
      sku: { name: "Standard" },
      publicIPAllocationMethod: "Static",
    });
    const subnet = subnets.find(({ inputs }) => inputs.subnetName === `nodes-${zone}`);
    expect(subnet?.inputs.natGateway).toEqual({ id: `/ids/${gateway.name}` });
  }
  expect([gateways.length, addresses.length]).toEqual([3, 3]);
});

it("lets all zones out through one gateway without a zone, if asked for a single one", async () => {
  const { recorder } = await build({ egress: "single" });

  const gateway = await recorder.only(type("NatGateway"));
  const address = await recorder.only(type("PublicIPAddress"));
  const subnets = await recorder.of(type("Subnet"));

  expect(gateway.inputs.zones ?? []).toEqual([]);
  const [rule] = named(await rulesOf(recorder), "egress");
  expect(rule?.inputs.sourceAddressPrefixes).toEqual(["20.0.0.1"]);
  expect(address.inputs.zones).toEqual(["1", "2", "3"]);
  expect(subnets.slice(0, 3).map(({ inputs }) => inputs.natGateway.id)).toEqual(
    Array(3).fill(`/ids/${gateway.name}`),
  );
});

describe("without a way out of its own", () => {
  const settings = { apiAccess: "private", apiAccessCidrs: [], egress: "none" } as const;

  it("has no gateway and no public address, and subnets that leave by the table of routes", async () => {
    const { recorder } = await build(settings);

    const subnets = await recorder.of(type("Subnet"));

    expect(await recorder.of(type("NatGateway"))).toEqual([]);
    expect(await recorder.of(type("PublicIPAddress"))).toEqual([]);
    for (const { inputs } of subnets.slice(0, 3)) {
      expect(inputs).toMatchObject({
        defaultOutboundAccess: false,
        routeTable: { id: "/ids/network-rt" },
      });
      expect(inputs).not.toHaveProperty("natGateway");
    }
  });
});

describe.each<Pick<Settings, "apiAccess" | "apiAccessCidrs"> & { egress: string[] }>([
  { apiAccess: "private", apiAccessCidrs: [], egress: [] },
  {
    ...{ apiAccess: "public", apiAccessCidrs: ["203.0.113.0/24"] },
    egress: ["20.0.0.1", "20.0.0.2", "20.0.0.3"],
  },
])("around a $apiAccess API", ({ apiAccess, apiAccessCidrs, egress }) => {
  it("admits to the API its nodes, its pods and Azure's probe, and nobody else who is connected", async () => {
    const { recorder } = await build({ apiAccess, apiAccessCidrs });

    const rules = (await rulesOf(recorder))
      .map(({ inputs }) => inputs)
      .filter(({ destinationPortRange }) => destinationPortRange === "6443")
      .sort((one, other) => one.priority - other.priority);

    expect(
      rules.map(({ access, sourceAddressPrefix, sourceAddressPrefixes }) => [
        access,
        sourceAddressPrefix ?? sourceAddressPrefixes,
      ]),
    ).toEqual([
      ...[apiAccessCidrs, ...egress.map((one) => [one])]
        .filter((from) => from.length > 0)
        .map((from) => ["Allow", from]),
      ["Allow", ["172.16.0.0/16", "10.244.0.0/16"]],
      ["Allow", "AzureLoadBalancer"],
      ["Deny", "VirtualNetwork"],
    ]);
    // A Service's frontend may have this port, in the subnet of internal balancers.
    expect(rules.at(-1)!.destinationAddressPrefixes).toEqual([
      "172.16.1.0/24",
      "172.16.2.0/24",
      "172.16.3.0/24",
    ]);
  });

  it("admits operators from connected networks before it denies, and below the cloud provider's priorities", async () => {
    const { recorder } = await build({ apiAccess, apiAccessCidrs: ["10.1.0.0/16"] });
    const rules = await rulesOf(recorder);

    const [operators] = named(rules, "operators-reach-the-api");
    const denied = named(rules, "nobody-else-reaches-the-api");

    expect(operators!.inputs.sourceAddressPrefixes).toEqual(["10.1.0.0/16"]);
    expect(denied.map(({ inputs }) => inputs.priority > operators!.inputs.priority)).toEqual([
      true,
    ]);
    expect(Math.max(...rules.map(({ inputs }) => inputs.priority))).toBeLessThan(500);
  });
});

it.each([
  ["to the gateway which addresses it has", "PublicIPAddress", "natGateway", 3],
  ["the etag of others' delegation to Azure", "Subnet", "delegations[0].etag", 4],
])("leaves %s, also after a refresh has seen it", async (_, what, path, count) => {
  const all = await zonal.recorder.of(type(what));

  expect(all.map(({ opts }) => opts.ignoreChanges)).toEqual(Array(count).fill([path]));
});

it("never sends a list of rules or routes, which would undo what the cloud provider adds", async () => {
  expect((await zonal.recorder.only(type("NetworkSecurityGroup"))).inputs).not.toHaveProperty(
    "securityRules",
  );
  expect((await zonal.recorder.only(type("RouteTable"))).inputs).not.toHaveProperty("routes");
});

it("admits nodes to the API from every address that they leave by, each by a rule of its own", async () => {
  const rules = named(await rulesOf(zonal.recorder), "egress");

  expect(rules.map(({ inputs }) => inputs.sourceAddressPrefixes)).toEqual([
    ["20.0.0.1"],
    ["20.0.0.2"],
    ["20.0.0.3"],
  ]);
  for (const { inputs } of rules) {
    expect(inputs).toMatchObject({
      access: "Allow",
      direction: "Inbound",
      protocol: "Tcp",
      destinationPortRange: "6443",
      destinationAddressPrefix: "172.16.0.0/16",
    });
  }
});

it("admits nodes from what others have put on their gateway too, by which each connection may leave", async () => {
  const added = { name: "zoned-test-egress-2", addedRanges: ["20.9.0.1/32", "20.9.1.0/28"] };
  const shown = new Map([[shownAs(type("NatGateway"), added.name), added]]);
  const { recorder } = await build({}, undefined, shown);

  const rules = named(await rulesOf(recorder), "egress");

  expect(rules.map(({ inputs }) => inputs.sourceAddressPrefixes)).toEqual([
    ["20.0.0.1"],
    ["20.0.0.2", "20.9.0.1/32", "20.9.1.0/28"],
    ["20.0.0.3"],
  ]);
});

it("admits operators to the API from the ranges they gave, and to nothing else", async () => {
  const { recorder } = await build({ apiAccessCidrs: ["198.51.100.0/24", "203.0.113.7/32"] });

  const rules = await rulesOf(recorder);

  expect(named(rules, "operators").map(({ inputs }) => inputs)).toEqual([
    expect.objectContaining({
      sourceAddressPrefixes: ["198.51.100.0/24", "203.0.113.7/32"],
      destinationPortRange: "6443",
    }),
  ]);
});

it("opens SSH only to the ranges that ask for it, and closes it to all other networks that are connected", async () => {
  const closed = {
    access: "Deny",
    sourceAddressPrefix: "VirtualNetwork",
    destinationAddressPrefixes: ["172.16.1.0/24", "172.16.2.0/24", "172.16.3.0/24"],
    destinationPortRange: "22",
  };
  const opened = {
    access: "Allow",
    sourceAddressPrefixes: ["198.51.100.9/32"],
    destinationPortRange: "22",
  };
  const ofSsh = async ({ recorder }: Built) =>
    named(await rulesOf(recorder), "ssh")
      .map(({ inputs }) => inputs)
      .sort((one, other) => one.priority - other.priority);

  expect(await ofSsh(zonal)).toEqual([expect.objectContaining(closed)]);
  expect(await ofSsh(withSsh)).toEqual([
    expect.objectContaining(opened),
    expect.objectContaining(closed),
  ]);
});

it("keeps its priorities apart, and below those that the cloud provider takes", async () => {
  // While the egress changes, the rules of both are there.
  const { recorder: single } = await build({ egress: "single" });
  const rules = [...(await rulesOf(withSsh.recorder)), ...(await rulesOf(single))];
  const names = new Map(rules.map(({ inputs }) => [inputs.securityRuleName, inputs.priority]));
  const priorities = [...names.values()];

  expect([names.size, new Set(priorities).size]).toEqual([10, 10]);
  for (const priority of priorities) {
    expect(priority).toBeGreaterThanOrEqual(100);
    expect(priority).toBeLessThan(500);
  }
});

it("changes one subnet and one rule at a time, as Azure does", async () => {
  const serial = [
    ...(await withSsh.recorder.of(type("Subnet"))),
    ...(await rulesOf(withSsh.recorder)),
  ];
  const waitsFor = await Promise.all(serial.map(dependenciesOf));

  const firsts = waitsFor.filter((found) => found.length === 0);
  expect(firsts).toHaveLength(1);
  // No two wait for the same: that is a chain.
  expect(waitsFor.every((found) => found.length <= 1)).toBe(true);
  expect(new Set(waitsFor.flat()).size).toBe(serial.length - 1);
  const links = waitsFor.flat().map((one) => serial.find(({ resource }) => resource === one));
  expect(links).not.toContain(undefined);
});
