import type { ExistingNetwork, ExistingSubnet } from "../../../components/azure/existing-network";
import { networkMessages, networkProblems } from "../../../components/plan/network-requests";
import type { SecurityRule } from "../../../components/azure/security-rules";
import { subscriptionId, validSettings } from "../../support/sample";

const inGroup = `/subscriptions/${subscriptionId}/resourceGroups/network/providers/Microsoft.Network`;
const id = `${inGroup}/virtualNetworks/spoke`;
const ids = ["a", "b"].map((name) => `${id}/subnets/${name}`) as [string, string];
const [guard, table, nat] = [
  `${inGroup}/networkSecurityGroups/guard`.toLowerCase(),
  `${inGroup}/routeTables/table`.toLowerCase(),
  `${inGroup}/natGateways/nat`.toLowerCase(),
] as const;

const settings = {
  ...{ ...validSettings, zones: ["1", "2"], nodeSubnets: ids },
  sshAccessCidrs: ["10.9.0.0/16"],
};

const rule = (name: string, change: Partial<SecurityRule["properties"]>): SecurityRule => ({
  name,
  properties: {
    ...{ direction: "Inbound", access: "Allow", protocol: "*", priority: 200 },
    ...{ sourceAddressPrefix: "*", sourcePortRange: "*" },
    ...{ destinationAddressPrefix: "*", destinationPortRange: "*" },
    ...change,
  },
});

const vnet = {
  sourceAddressPrefix: "VirtualNetwork",
  destinationAddressPrefix: "VirtualNetwork",
  priority: 65000,
};
/** Azure's own rules, and those that a cluster needs. */
const rules: readonly SecurityRule[] = [
  rule("api", {
    sourceAddressPrefixes: ["203.0.113.0/24", "20.0.0.1/32"],
    sourceAddressPrefix: "",
    destinationPortRange: "6443",
  }),
  rule("ssh", { sourceAddressPrefix: "10.9.0.0/16", destinationPortRange: "22" }),
  rule("AllowVnetInBound", vnet),
  rule("AllowAzureLoadBalancerInBound", {
    ...{ sourceAddressPrefix: "AzureLoadBalancer", priority: 65001 },
  }),
  rule("DenyAllInBound", { access: "Deny", priority: 65500 }),
  rule("AllowVnetOutBound", { ...vnet, direction: "Outbound" }),
  rule("AllowInternetOutBound", {
    ...{ direction: "Outbound", destinationAddressPrefix: "Internet", priority: 65001 },
  }),
  rule("DenyAllOutBound", { direction: "Outbound", access: "Deny", priority: 65500 }),
];

const subnetOf = (name: string, range: string): ExistingSubnet => ({
  ...{ id: `${id}/subnets/${name}`, name, ranges: [range], delegations: [], free: 100 },
  ...{ securityGroup: guard, gateway: nat },
});

const network: ExistingNetwork = {
  ...{ id, location: "westeurope", ranges: ["10.1.0.0/16"], permissions: [] },
  subnets: new Map([
    [ids[0].toLowerCase(), subnetOf("a", "10.1.1.0/24")],
    [ids[1].toLowerCase(), subnetOf("b", "10.1.2.0/24")],
  ]),
  rules: new Map([[guard, rules]]),
  routes: new Map(),
  egress: new Map([[nat, { ranges: ["20.0.0.1/32"] }]]),
};

const created = [{ zone: "1" }, { zone: "2" }, { zone: "2" }];

const none = { network: undefined, created, subscriptionId };

const problemsOf = (change: Partial<ExistingNetwork> = {}, of: Partial<typeof settings> = {}) =>
  networkProblems(
    { ...settings, ...of },
    { network: { ...network, ...change }, created, subscriptionId },
  );

const withSubnet = (change: Partial<ExistingSubnet>) =>
  problemsOf({
    subnets: new Map(
      [...network.subnets].map(([key, one], at) => [key, at === 0 ? { ...one, ...change } : one]),
    ),
  });

const withRules = (...more: readonly SecurityRule[]) =>
  problemsOf({ rules: new Map([[guard, [...rules, ...more]]]) });

it("finds nothing in a network that has all", () => {
  expect(problemsOf()).toEqual([]);
});

it("asks nothing where the network is the cluster's own", () => {
  expect(networkProblems(validSettings, none)).toEqual([]);
});

it("names each subnet that is not there", () => {
  expect(networkProblems(settings, none)).toEqual([
    expect.stringMatching(/no subnet .*subnets\/a, or this login does not see it: ask for/),
    expect.stringMatching(/no subnet .*subnets\/b/),
    expect.stringContaining("for the owners of the network, as one text"),
  ]);
});

it.each<[string, Partial<ExistingSubnet>, RegExp]>([
  ["is delegated", { delegations: ["Microsoft.Web/serverFarms"] }, /delegated to Microsoft\.Web/],
  ["has no security group", { securityGroup: undefined }, /has no network security group/],
  ["has no way out", { gateway: undefined }, /has no NAT gateway, .*: ask for a NAT gateway on/],
  [
    "is too small for its machines and internal balancers",
    { free: 8 },
    /has 8 free addresses, .* needs 1 for machines and 8 for internal balancers: ask for a subnet with 9/,
  ],
  [
    "has another security group than the others",
    { securityGroup: `${inGroup}/networksecuritygroups/other` },
    /have 2 network security groups .*cloud provider knows one/,
  ],
])("asks for another subnet, or a part of it, where one %s", (_, change, says) => {
  const [problem, asked, ...others] = withSubnet(change);

  expect(problem).toMatch(says);
  expect(asked).toMatch(/as one text: .*zoned-test .* needs\n +- /);
  expect(others).toEqual([]);
});

it("refuses a route to a firewall, by which answers of a public API would leave", () => {
  const routes = new Map([
    [
      table,
      [
        {
          name: "all",
          properties: { addressPrefix: "0.0.0.0/0", nextHopType: "VirtualAppliance" },
        },
      ],
    ],
  ]);
  const subnets = new Map(
    [...network.subnets].map(([key, one]) => [key, { ...one, routeTable: table }]),
  );

  expect(problemsOf({ routes, subnets })[0]).toMatch(
    /route all of .* leads 0\.0\.0\.0\/0 to VirtualAppliance/,
  );
});

it.each<[string, Partial<SecurityRule["properties"]>, RegExp, number]>([
  ["etcd", { destinationPortRange: "2380" }, /inbound TCP 2380 .*members of etcd/, 4],
  ["VXLAN", { protocol: "Udp" }, /inbound UDP 8472 .*pods talk to each other/, 4],
  ["kubelets", { destinationPortRange: "10250" }, /inbound TCP 10250 .*the API asks kubelets/, 4],
  [
    "the balancer's probes",
    { sourceAddressPrefix: "AzureLoadBalancer" },
    /TCP 6443 from AzureLoadBalancer .*probes control planes/,
    2,
  ],
  [
    "operators",
    { sourceAddressPrefix: "203.0.113.128/25" },
    /from 203\.0\.113\.0\/24 .*operators reach the API/,
    2,
  ],
  [
    "machines that come back from their NAT gateway",
    { sourceAddressPrefix: "20.0.0.0/8" },
    /from 20\.0\.0\.1\/32 .*through their egress/,
    2,
  ],
  ["SSH", { destinationPortRange: "22" }, /TCP 22 from 10\.9\.0\.0\/16 .*operators reach SSH/, 2],
  [
    "the way out",
    { direction: "Outbound", destinationAddressPrefix: "Internet" },
    /outbound TCP 443 from .* to Internet .*packages/,
    2,
  ],
])("asks for a rule for %s before one that denies it", (_, denies, says, times) => {
  const problems = withRules(rule("closed", { ...denies, access: "Deny", priority: 100 }));

  expect(problems).toHaveLength(times + 1);
  expect(problems[0]).toMatch(/the rule closed \(priority 100\) of .*guard stops/);
  expect(problems[0]).toMatch(says);
  expect(problems.at(-1)!.split("\n")).toHaveLength(times + 1);
});

it("needs no VXLAN where the pod network is the operator's own", () => {
  const closed = rule("closed", { protocol: "Udp", access: "Deny", priority: 100 });

  expect(problemsOf({ rules: new Map([[guard, [...rules, closed]]]) }, { cni: "none" })).toEqual(
    [],
  );
});

it("wants pods and Services apart from the network, and from those it is peered with", () => {
  const ranges = ["10.1.0.0/16", "10.244.128.0/20"];

  expect(problemsOf({ ranges })).toEqual([
    expect.stringMatching(
      /podCidr is 10\.244\.0\.0\/16, expected .* apart from 10\.244\.128\.0\/20/,
    ),
  ]);
});

it.each([
  ["is in a zone and serves others", { zone: "1" }, 1],
  ["is in no zone that one could name", {}, 0],
])("says of a NAT gateway that %s what the loss of its zone takes", (_, at, times) => {
  const egress = new Map([[nat, { ranges: [], ...at }]]);

  const messages = networkMessages(settings, { ...network, egress });

  expect(messages).toHaveLength(times);
  expect(messages.join()).toMatch(
    times === 0 ? /^$/ : /is in zone 1 and serves .* zone 1, zone 2:/,
  );
});

it("wants a network of the cluster's region", () => {
  expect(problemsOf({ location: "northeurope" })).toEqual([
    expect.stringContaining("is in northeurope, and machines in westeurope"),
  ]);
});

it("wants a network of the cluster's subscription", () => {
  const asked = { network, created, subscriptionId: "00000000-0000-0000-0000-000000000000" };

  expect(networkProblems(settings, asked)).toEqual([
    expect.stringMatching(/is in another subscription than the cluster, 00000000-/),
  ]);
});

it("asks for the rights that the login lacks in the network", () => {
  const reader = { permissions: [{ actions: ["*/read"], notActions: [] }] };

  expect(problemsOf(reader)).toEqual([
    expect.stringMatching(/may not put machines into .*subnets\/join\/action/),
    expect.stringMatching(/may not assign roles in .*config set identityId/),
    expect.stringContaining("as one text"),
  ]);
  expect(problemsOf(reader, { identityId: "/an/identity" })).toHaveLength(2);
});
