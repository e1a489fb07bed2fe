import type { ExistingNetwork, ExistingSubnet } from "../../../components/azure/existing-network";
import {
  networkMessages,
  networkProblems,
  networkWarnings,
} from "../../../components/plan/network-requests";
import type { SecurityRule } from "../../../components/azure/security-rules";
import type { Settings } from "../../../components/settings/settings";
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
  ...{ securityGroup: guard, gateway: nat, permissions: [] },
});

const network: ExistingNetwork = {
  ...{ id, location: "westeurope", ranges: ["10.1.0.0/16"], dnsServers: [], permissions: [] },
  subnets: new Map([
    [ids[0].toLowerCase(), subnetOf("a", "10.1.1.0/24")],
    [ids[1].toLowerCase(), subnetOf("b", "10.1.2.0/24")],
  ]),
  rules: new Map([[guard, rules]]),
  groupTags: new Map(),
  routes: new Map(),
  egress: new Map([[nat, { ranges: ["20.0.0.1/32"] }]]),
  unreadable: [],
};

const created = [{ zone: "1" }, { zone: "2" }, { zone: "2" }];

const addresses = ["10.1.1.254", "10.1.2.126"];

const none = {
  ...{ network: undefined, created, addresses, hasArm: false },
  ...{ hasBalancer: false, isLinked: false, exists: false, subscriptionId },
};

const problemsOf = (change: Partial<ExistingNetwork> = {}, of: Partial<Settings> = {}) =>
  networkProblems({ ...settings, ...of }, { ...none, network: { ...network, ...change } }).problems;

const withSubnet = (change: Partial<ExistingSubnet>, of: Partial<Settings> = {}) =>
  problemsOf(
    {
      subnets: new Map(
        [...network.subnets].map(([key, one], at) => [key, at === 0 ? { ...one, ...change } : one]),
      ),
    },
    of,
  );

const withRules = (...more: readonly SecurityRule[]) =>
  problemsOf({ rules: new Map([[guard, [...rules, ...more]]]) });

it("finds nothing in a network that has all", () => {
  expect(problemsOf()).toEqual([]);
});

it("asks nothing where the network is the cluster's own", () => {
  expect(networkProblems(validSettings, none)).toEqual({
    ...{ problems: [], letter: [], warnings: [] },
  });
});

it("names each subnet that is not there", () => {
  expect(networkProblems(settings, none)).toEqual({
    problems: [
      expect.stringMatching(/no subnet .*subnets\/a, or this login does not see it: ask for/),
      expect.stringMatching(/no subnet .*subnets\/b/),
    ],
    letter: [expect.stringContaining("1. the subnet a, and the role Reader on spoke")],
    warnings: [],
  });
});

it.each<[string, Partial<ExistingSubnet>, RegExp]>([
  ["is delegated", { delegations: ["Microsoft.Web/serverFarms"] }, /delegated to Microsoft\.Web/],
  ["has no security group", { securityGroup: undefined }, /no network security group is on a,/],
  [
    "has no way out",
    { gateway: undefined },
    /no NAT gateway is on a, .*: ask for a NAT gateway on a$/,
  ],
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
  expect(withSubnet(change)).toEqual([expect.stringMatching(says)]);
});

it("has machines ask each other without the proxy, whose command for that names what is missing", () => {
  const https = "http://proxy.example:3128";
  const by = (...noProxy: string[]) =>
    problemsOf({}, { httpProxy: { http: "", https, noProxy, ca: "" } });

  expect(by(".example.com", "10.1.1.0/25")).toEqual(
    ["10.1.1.0/24", "10.1.2.0/24"].map((range, at) =>
      expect.stringMatching(
        RegExp(
          `in ${range}, .*: pulumi config set --path 'httpProxy.noProxy\\[${at + 2}\\]' ${range}$`,
        ),
      ),
    ),
  );
  expect(by("10.1.1.0/24")).toEqual([expect.stringContaining("in 10.1.2.0/24,")]);
  expect(by("10.1.0.0/16")).toEqual([]);
});

/** A network whose subnets have routes of their own, by default one for all, and a NAT gateway or none. */
const leavingBy = (
  nextHopType: string,
  gateway?: string,
  prefixes: readonly string[] = ["0.0.0.0/0"],
): Partial<ExistingNetwork> => ({
  routes: new Map([
    [
      table,
      prefixes.map((addressPrefix) => ({
        name: "all",
        properties: { addressPrefix, nextHopType },
      })),
    ],
  ]),
  subnets: new Map(
    [...network.subnets].map(([key, one]) => [key, { ...one, routeTable: table, gateway }]),
  ),
});

it("refuses a route to a firewall, by which answers of a public API would leave", () => {
  expect(problemsOf(leavingBy("VirtualAppliance", nat))[0]).toMatch(
    /route all of .* leads 0\.0\.0\.0\/0 to VirtualAppliance.*: ask for no route .*, or have no public API/,
  );
});

it.each([
  ["in two halves", ["0.0.0.0/1", "128.0.0.0/1"]],
  ["by which some of its clients are answered", ["203.0.113.128/25", "203.0.0.0/16"]],
])("refuses routes to a firewall %s beside a public API", (_, prefixes) => {
  const problems = problemsOf(leavingBy("VirtualAppliance", nat, prefixes));

  expect(problems).toEqual(
    ["a", "b"].flatMap((name) =>
      prefixes.map((prefix) =>
        expect.stringContaining(`the subnet ${name} leads ${prefix} to VirtualAppliance`),
      ),
    ),
  );
});

it("leaves routes to others than the API's clients alone, and those of private ranges to who asks at all", () => {
  const others = leavingBy("VirtualAppliance", nat, ["10.8.0.0/16", "198.51.100.0/24"]);

  expect(problemsOf(others)).toEqual([]);
  expect(
    problemsOf(leavingBy("VirtualAppliance", nat, ["10.8.0.0/16"]), {
      apiAccessCidrs: ["10.8.0.0/16", "203.0.113.0/24"],
    }),
  ).toEqual([]);
});

it.each<[string, readonly string[], readonly string[]]>([
  ["a part of a range", ["203.0.113.0/24"], ["203.0.113.0/28"]],
  ["one of its ranges", ["203.0.113.0/24", "198.51.100.7/32"], ["203.0.113.0/24"]],
  ["a list of who is kept out", ["0.0.0.0/0"], ["192.0.2.0/24"]],
])(
  "warns of a route by which some of a public API's clients get no answer: %s",
  (_, clients, to) => {
    const away = leavingBy("None", nat, to);
    const open = rule("open", { priority: 100 });
    const asked = { ...network, ...away, rules: new Map([[guard, [open, ...rules]]]) };

    expect(
      networkProblems({ ...settings, apiAccessCidrs: clients }, { ...none, network: asked }),
    ).toEqual({
      problems: [],
      letter: [],
      warnings: [
        expect.stringMatching(
          RegExp(
            `^the route all of the subnet a leads ${to[0]} to None, .*subnet b .*: clients there`,
          ),
        ),
      ],
    });
  },
);

it("does not refuse a route of all of a range, a part of which goes to the internet", () => {
  const back = {
    name: "back",
    properties: { addressPrefix: "203.0.113.0/28", nextHopType: "Internet" },
  };
  const { routes, ...change } = leavingBy("VirtualAppliance", nat, ["203.0.113.0/24"]);
  const split = new Map([[table, [...routes!.get(table)!, back]]]);

  expect(problemsOf({ ...change, routes })).toHaveLength(2);
  expect(problemsOf({ ...change, routes: split })).toEqual([]);
});

it.each([
  ["None", "10.1.0.0/16"],
  ["Internet", "10.1.2.0/25"],
  ["None", "10.1.1.254/32"],
])("refuses a route to %s by which machines do not reach each other", (hop, prefix) => {
  expect(problemsOf(leavingBy(hop, nat, [prefix]))).toEqual(
    ["a", "b"].map((name) =>
      expect.stringMatching(
        RegExp(
          `subnet ${name} leads ${prefix}, .* to ${hop}, .*: ask for .* to VnetLocal, or none`,
        ),
      ),
    ),
  );
  for (const change of [
    leavingBy("VirtualAppliance", nat, [prefix]),
    leavingBy(hop, nat, ["10.0.0.0/8", "10.1.7.0/24", "10.1.1.4/32", "10.1.2.128/25"]),
  ])
    expect(problemsOf(change)).toEqual([]);
});

describe("a private API", () => {
  const isPrivate = { apiAccess: "private", apiAccessCidrs: [] } as const;

  it.each([
    ["a firewall", leavingBy("VirtualAppliance")],
    ["a VPN gateway", leavingBy("VirtualNetworkGateway")],
    ["a NAT gateway", {}],
    ["a route that is not to be seen here", leavingBy("Internet")],
  ])("is content with %s as the way out", (_, change) => {
    expect(problemsOf(change, isPrivate)).toEqual([]);
  });

  it("refuses a route that drops everything, but where a proxy leads out", () => {
    const httpProxy = {
      http: "",
      https: "http://proxy.example:3128",
      noProxy: ["10.1.0.0/16"],
      ca: "",
    };

    expect(problemsOf(leavingBy("None", nat), isPrivate)[0]).toMatch(
      /route all of the subnet a drops .*: ask for a route 0\.0\.0\.0\/0 of a to a firewall/,
    );
    expect(problemsOf(leavingBy("None"), { ...isPrivate, httpProxy })).toEqual([]);
    expect(problemsOf(leavingBy("None", nat, ["0.0.0.0/1", "128.0.0.0/1"]), isPrivate)).toEqual(
      Array(2)
        .fill([
          expect.stringContaining("goes to 0.0.0.0/1,"),
          expect.stringContaining("goes to 128.0.0.0/1,"),
        ])
        .flat(),
    );
  });

  it("needs no rule for the egress of machines, and keeps those for probes and operators", () => {
    const only = rules.filter(({ name }) => name !== "api");
    const closed = [
      rule("closed", { access: "Deny", priority: 300, destinationPortRange: "6443" }),
      rule("nodes", { priority: 250, sourceAddressPrefix: "10.1.0.0/16" }),
    ];
    const change = { rules: new Map([[guard, [...only, ...closed]]]) };

    expect(problemsOf(change, { ...isPrivate, apiAccessCidrs: ["10.7.0.0/16"] })).toEqual([
      expect.stringMatching(/TCP 6443 from AzureLoadBalancer .*probes/),
      expect.stringMatching(/TCP 6443 from 10\.7\.0\.0\/16 .*operators/),
    ]);
  });

  it("needs an address of the first subnet until it has its balancer", () => {
    expect(withSubnet({ free: 9 }, isPrivate)).toEqual([
      expect.stringMatching(
        /the subnet a has 9 free .* needs 1 for machines, 1 for the API and 8 for internal balancers: ask for a subnet with 10 /,
      ),
    ]);
    const there = { ...none, network, created: [], hasBalancer: true };
    const full = new Map([...network.subnets].map(([key, one]) => [key, { ...one, free: 0 }]));
    const asked = { ...there, network: { ...network, subnets: full } };
    expect(networkProblems({ ...settings, ...isPrivate }, asked).problems).toEqual([]);
  });

  it("wants the right to link its DNS zone, unless its name is kept by somebody else", () => {
    const join = ["Microsoft.Network/virtualNetworks/subnets/join/action", "*/read"];
    const machinesOnly = { permissions: [{ actions: join, notActions: [] }] };
    const theirs = { ...isPrivate, identityId: "/an/identity" };

    expect(problemsOf(machinesOnly, theirs)).toEqual([
      expect.stringMatching(
        /may not link the private DNS zone .*: ask for a role with Microsoft\.Network\/virtualNetworks\/join\/action on spoke .*, or .*config set apiName/,
      ),
    ]);
    expect(problemsOf(machinesOnly, { ...theirs, apiName: "api.zoned.example" })).toEqual([]);
    expect(problemsOf(machinesOnly, { identityId: "/an/identity" })).toEqual([]);
    const asked = { ...none, exists: true, network: { ...network, ...machinesOnly } };
    const problems = (isLinked: boolean) =>
      networkProblems({ ...settings, ...theirs }, { ...asked, isLinked }).problems;
    expect(problems(true)).toEqual([]);
    expect(problems(false)).toEqual([expect.not.stringContaining("apiName")]);
  });
});

it("counts the ranges that a route table leads to among the network", () => {
  const apiAccessCidrs = ["51.4.0.0/16"];
  const saidWith = (addressPrefix: string) => {
    const route = {
      name: "branch",
      properties: { addressPrefix, nextHopType: "VirtualAppliance" },
    };
    return problemsOf({ routes: new Map([["routes", [route]]]) }, { apiAccessCidrs });
  };

  expect(saidWith("51.4.0.0/16")).toEqual([]);
  for (const other of ["51.5.0.0/16", "AzureCloud", "0.0.0.0/0", "51.4.0.0/0"])
    expect(saidWith(other)).toEqual([expect.stringContaining("6443 from 51.4.0.0/16")]);
});

it("asks for no way out by a rule where machines go by a proxy, but to the API's public address", () => {
  const address = "http://proxy.example:3128";
  const httpProxy = { http: address, https: address, noProxy: ["10.1.0.0/16"], ca: "" };
  const closed = rule("closed", {
    ...{ direction: "Outbound", destinationAddressPrefix: "Internet" },
    ...{ access: "Deny", priority: 100 },
  });

  const saidWith = (more: Partial<typeof httpProxy>) =>
    problemsOf(
      { rules: new Map([[guard, [...rules, closed]]]) },
      { httpProxy: { ...httpProxy, ...more } },
    );
  const toApi = expect.stringMatching(/outbound TCP 6443 from .* to Internet/);

  expect(saidWith({})).toEqual([toApi]);
  expect(saidWith({ https: "" })).toEqual([toApi, expect.stringContaining("TCP 443 ")]);
  expect(saidWith({ http: "" })).toEqual([toApi, expect.stringContaining("TCP 80 ")]);
});

describe("servers whose addresses are known", () => {
  const out = { direction: "Outbound", priority: 4000 } as const;
  /** As networks of hubs have it: out to the network and to the internet by these ports, and nowhere else. */
  const narrow = [
    ...["6443", "2379", "2380", "10250", "8472"].map((destinationPortRange, at) =>
      rule(`node-${at}`, {
        ...{ ...out, destinationPortRange, priority: 300 + at },
        destinationAddressPrefix: "VirtualNetwork",
      }),
    ),
    ...["6443", "443", "80"].map((destinationPortRange, at) =>
      rule(`out-${at}`, {
        ...{ ...out, destinationPortRange, priority: 400 + at },
        destinationAddressPrefix: "Internet",
      }),
    ),
    rule("DenyAllOutbound", { ...out, access: "Deny" }),
  ];
  const saidWith = (dnsServers: readonly string[], ...more: readonly SecurityRule[]) =>
    problemsOf({ dnsServers, rules: new Map([[guard, [...rules, ...more, ...narrow]]]) });
  const by = (https: string, http = "") => ({
    httpProxy: { http, https, noProxy: ["10.1.0.0/16"], ca: "" },
  });

  const dns = rule("dns", {
    ...{ ...out, priority: 200, protocol: "Udp", destinationPortRange: "53" },
    destinationAddressPrefix: "10.0.0.0/24",
  });

  it.each<[string, readonly string[], readonly SecurityRule[], readonly string[]]>([
    ["none of them", ["10.0.0.4", "10.3.0.4"], [], ["10.0.0.4 and 10.3.0.4"]],
    ["one of them, by UDP", ["10.0.0.4", "10.3.0.4"], [dns], []],
    ["Azure's beside theirs", ["10.0.0.4", "168.63.129.16"], [], []],
  ])("are the network's for DNS, where a rule lets machines out to %s", (_, servers, opens, to) => {
    expect(saidWith(servers, ...opens)).toEqual(
      to.map((one) =>
        expect.stringMatching(
          RegExp(
            `DenyAllOutbound \\(priority 4000\\) of guard stops outbound UDP 53 from .* to ${one}, by which machines look up names`,
          ),
        ),
      ),
    );
  });

  it("may be in a service tag, or behind a gateway, where they are public: this is warned of", () => {
    const closed = rule("closed", {
      ...{ ...out, access: "Deny", priority: 100, destinationPortRange: "3128" },
      destinationAddressPrefix: "Internet",
    });
    const asked = { ...network, rules: new Map([[guard, [...rules, closed]]]) };

    expect(
      networkProblems({ ...settings, ...by("http://20.1.2.3:3128") }, { ...none, network: asked }),
    ).toEqual({
      problems: [],
      letter: [],
      warnings: [
        expect.stringMatching(
          /TCP 3128 from .* to 20\.1\.2\.3, .*: rules before it have to let these/,
        ),
      ],
    });
  });

  it.each<[string, Partial<Settings>, RegExp[]]>([
    [
      "a proxy",
      by("http://me:hush@10.0.0.4:3128", "http://10.0.0.4:3128"),
      [/TCP 3128 from .* to 10\.0\.0\.4, by which machines ask the proxy/],
    ],
    ["a proxy by the port of its scheme", by("http://10.0.0.4"), [/TCP 80 from .* to 10\.0\.0\.4/]],
    ["no proxy that has a name", by("http://proxy.example:3128"), []],
    [
      "a mirror",
      { mirror: "https://10.0.0.5/k8s" },
      [/TCP 443 from .* to 10\.0\.0\.5, by which machines get .* from the mirror/],
    ],
    ["no mirror that is a folder", { mirror: "/srv/manifests" }, []],
  ])("are those of %s", (_, of, expected) => {
    const hub = rule("hub", {
      ...{ direction: "Outbound", access: "Deny", priority: 100 },
      destinationAddressPrefix: "10.0.0.0/24",
    });
    const problems = problemsOf({ rules: new Map([[guard, [...rules, hub]]]) }, of);

    expect(problems).toEqual(expected.map((one) => expect.stringMatching(one)));
    expect(problems.join()).not.toContain("hush");
  });
});

it("needs no Ubuntu's archive beside a mirror's address, and does beside a folder of manifests", () => {
  const closed = rule("closed", {
    ...{ direction: "Outbound", destinationAddressPrefix: "Internet" },
    ...{ access: "Deny", priority: 100, destinationPortRange: "80" },
  });
  const saidWith = (mirror: string) =>
    problemsOf({ rules: new Map([[guard, [...rules, closed]]]) }, { mirror });

  expect(saidWith("https://mirror.example/k8s")).toEqual([]);
  expect(saidWith("/srv/manifests")).toEqual([expect.stringContaining("outbound TCP 80 ")]);
});

it.each<[string, Partial<SecurityRule["properties"]>, RegExp]>([
  ["etcd", { destinationPortRange: "2380" }, /inbound TCP 2380 .*members of etcd/],
  ["VXLAN", { protocol: "Udp" }, /inbound UDP 8472 .*pods talk to each other/],
  ["kubelets", { destinationPortRange: "10250" }, /inbound TCP 10250 .*the API asks kubelets/],
  [
    "the balancer's probes",
    { sourceAddressPrefix: "AzureLoadBalancer", destinationPortRange: "6443" },
    /TCP 6443 from AzureLoadBalancer .*probes control planes/,
  ],
  [
    "operators",
    { sourceAddressPrefix: "203.0.113.128/25" },
    /from 203\.0\.113\.0\/24 .*operators reach the API/,
  ],
  [
    "machines that come back from their NAT gateway",
    { sourceAddressPrefix: "20.0.0.0/8" },
    /from 20\.0\.0\.1\/32 .*through their egress/,
  ],
  ["SSH", { destinationPortRange: "22" }, /TCP 22 from 10\.9\.0\.0\/16 .*operators reach SSH/],
  [
    "probes of Services",
    { sourceAddressPrefix: "AzureLoadBalancer", destinationPortRange: "31000" },
    /inbound TCP 30000-32767 from AzureLoadBalancer to .*, by which balancers probe Services/,
  ],
  [
    "the way out",
    {
      ...{ direction: "Outbound", destinationAddressPrefix: "Internet" },
      destinationPortRange: "443",
    },
    /outbound TCP 443 from .* to Internet, by which machines get packages/,
  ],
  [
    "Ubuntu's packages",
    {
      ...{ direction: "Outbound", destinationAddressPrefix: "Internet" },
      destinationPortRange: "80",
    },
    /outbound TCP 80 from .* to Internet, by which machines get Ubuntu's packages/,
  ],
])("asks for a rule for %s before one that denies it", (_, denies, says) => {
  const [problem, ...others] = withRules(
    rule("closed", { ...denies, access: "Deny", priority: 100 }),
  );

  expect(problem).toMatch(/the rule closed \(priority 100\) of guard stops/);
  expect(problem).toMatch(says);
  expect(others).toEqual([]);
});

describe("rules that let machines out to a part of the internet alone", () => {
  const out = { direction: "Outbound", destinationAddressPrefix: "Internet" } as const;
  const closed = rule("closed", { ...out, access: "Deny", priority: 300 });
  const services = ["AzureCloud", "198.51.100.0/24"].map((destinationAddressPrefix, at) =>
    rule(`opens-${at}`, { ...out, destinationAddressPrefix, priority: 200 + at }),
  );
  const answer = (of: Partial<Settings>, more: readonly SecurityRule[] = [], asks = none) => {
    const asked = { ...network, rules: new Map([[guard, [...rules, ...more, closed]]]) };
    return networkProblems({ ...settings, ...of }, { ...asks, network: asked });
  };

  it("may suffice: who makes machines is told what they have to reach", () => {
    const { problems, letter, warnings } = answer({}, services);

    expect([problems, letter]).toEqual([[], []]);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the rule closed \(priority 300\) of guard stops outbound TCP 6443 .* TCP 443 .* TCP 80 .*: rules before it have to let machines out to .*registry\.k8s\.io.*docs\/firewall\.md/,
      ),
    ]);
    expect(answer({}, services, { ...none, created: [] }).warnings).toEqual([]);
    expect(answer({}, services, { ...none, hasArm: true }).warnings[0]).toContain(", ports.ubuntu");
    const ofOne = services.map((one) =>
      rule(one.name, { ...one.properties, sourceAddressPrefix: "10.1.1.0/24" }),
    );
    expect(answer({}, ofOne).problems).toHaveLength(3);
  });

  it("may do without any beside a mirror, which is where nobody knows, and a private API", () => {
    const isPrivate = { apiAccess: "private", apiAccessCidrs: [] } as const;
    const mirror = "https://mirror.example/k8s";

    expect(answer({ ...isPrivate, mirror })).toMatchObject({
      problems: [],
      warnings: [expect.stringMatching(/TCP 443 .*let machines out to .*mirror\.example/)],
    });
    expect(answer({ mirror }).problems).toEqual([expect.stringContaining("outbound TCP 6443")]);
    expect(answer(isPrivate).problems).toHaveLength(2);
  });
});

it("leaves rules that deny single addresses of others in the machines' subnets alone, as of a Service's frontend", () => {
  const denying = (destinationAddressPrefix: string, destinationAddressPrefixes?: string[]) =>
    rule("k8s-azure-lb_deny-all_IPv4", {
      ...{ destinationAddressPrefix, destinationAddressPrefixes },
      ...{ access: "Deny", priority: 4095 },
    });
  const others = ["10.1.1.4", "10.1.2.5/32"];
  const source = { sourceAddressPrefix: "10.1.1.4", access: "Deny", priority: 100 };

  expect(withRules(denying("10.1.1.4"), denying("", others), rule("vm", source))).toEqual([]);
  for (const closed of ["10.1.1.254", "10.1.1.4/31", "10.1.1.0/24", "*"]) {
    expect(withRules(denying(closed))).not.toEqual([]);
  }
  expect(withRules(denying("", [...others, "10.1.2.126"]))).not.toEqual([]);
  const ofDns = {
    dnsServers: ["10.1.1.4"],
    rules: new Map([[guard, [denying("10.1.1.4"), ...rules]]]),
  };
  const out = rule("dns", { ...denying("10.1.1.4").properties, direction: "Outbound" });
  expect(problemsOf(ofDns)).not.toEqual([]);
  expect(problemsOf({ ...ofDns, rules: new Map([[guard, [out, ...rules]]]) })).toEqual(
    expect.arrayContaining([expect.stringMatching(/UDP 53/)]),
  );
});

it("takes the address from where Azure probes for its balancers' tag", () => {
  const baseline = (sourceAddressPrefix: string) =>
    withRules(
      rule("probes", { sourceAddressPrefix, priority: 100 }),
      rule("own", {
        sourceAddressPrefixes: ["10.0.0.0/8", "203.0.113.0/24", "20.0.0.1/32"],
        sourceAddressPrefix: "",
        priority: 101,
      }),
      rule("closed", { access: "Deny", priority: 102 }),
    );

  for (const tag of ["168.63.129.16/32", "VirtualNetwork"]) expect(baseline(tag)).toEqual([]);
  expect(baseline("168.63.129.17/32")).toEqual([
    expect.stringMatching(/TCP 6443 from AzureLoadBalancer .*probes/),
    expect.stringMatching(/TCP 30000-32767 from AzureLoadBalancer .*probe/),
  ]);
});

it("takes a rule against the tag of the network for one against probes, which come from an address in it", () => {
  const closed = rule("closed", {
    ...{ sourceAddressPrefix: "VirtualNetwork", access: "Deny", priority: 4000 },
  });
  const nodes = rule("nodes", { sourceAddressPrefix: "10.1.0.0/16", priority: 100 });
  const probes = rule("probes", { sourceAddressPrefix: "AzureLoadBalancer", priority: 101 });

  expect(withRules(nodes, probes, closed)).toEqual([]);
  expect(withRules(nodes, closed)).toEqual([
    expect.stringMatching(/closed \(priority 4000\) .*TCP 6443 from AzureLoadBalancer .*probes/),
    expect.stringMatching(/TCP 30000-32767 from AzureLoadBalancer .*probe/),
  ]);
});

it("keeps addresses for internal balancers in a new cluster's first subnet alone", () => {
  const free = (a: number, b: number, exists: boolean) =>
    networkProblems(settings, {
      ...{ ...none, exists },
      network: {
        ...network,
        subnets: new Map(
          [...network.subnets].map(([key, one], at) => [key, { ...one, free: at === 0 ? a : b }]),
        ),
      },
    }).problems;

  expect(free(9, 2, false)).toEqual([]);
  expect(free(8, 1, false)).toEqual([
    expect.stringMatching(/subnet a has 8 free .* 1 for machines and 8 for internal balancers:/),
    expect.stringMatching(/subnet b has 1 free addresses, and this change needs 2 for machines:/),
  ]);
  expect(free(1, 2, true)).toEqual([]);
  expect(withSubnet({ free: 1 }, { cloudProvider: false })).toEqual([]);
  expect(free(0, 1, true)).toHaveLength(2);
});

it("names each rule that stops a flow, and the ends that it stops", () => {
  const closing = (name: string, destinationAddressPrefix: string) =>
    rule(name, {
      ...{ destinationAddressPrefix, destinationPortRange: "10250" },
      ...{ access: "Deny", priority: 100 },
    });

  expect(withRules(closing("one", "10.1.1.0/24"), closing("two", "10.1.2.0/25"))).toEqual([
    expect.stringMatching(
      /rule one \(priority 100\) and two \(priority 100\) of guard stops inbound TCP 10250 from 10\.1\.1\.0\/24 and 10\.1\.2\.0\/24 to 10\.1\.1\.0\/24 and 10\.1\.2\.0\/24,/,
    ),
  ]);
  expect(withRules(closing("one", "10.1.1.0/24"))).toEqual([
    expect.stringMatching(/from 10\.1\.1\.0\/24 and 10\.1\.2\.0\/24 to 10\.1\.1\.0\/24, by/),
  ]);
});

it("gives all that is to be asked for once more as one text, with the ids of what it names", () => {
  const closed = rule("closed", { protocol: "Udp", access: "Deny", priority: 100 });
  const asked = {
    ...network,
    rules: new Map([[guard, [...rules, closed]]]),
    ranges: ["10.1.0.0/16", "10.244.0.0/16"],
  };
  const { problems, letter } = networkProblems(settings, { ...none, network: asked });

  expect(problems).toEqual([
    expect.stringMatching(/podCidr .*: pulumi config set podCidr RANGE$/),
    expect.stringContaining("UDP 8472"),
  ]);
  expect(letter.join().split(/\n */)).toEqual([
    "for the owners of the network, as one text:",
    "",
    "The machines of the Kubernetes cluster zoned-test are to be in the subnets a and b of the network spoke. Please give us",
    expect.stringMatching(
      /^1\. a rule in guard before closed \(priority 100\) that allows inbound UDP/,
    ),
    "By these names we mean",
    `- spoke: ${id}`,
    `- guard: ${guard}`,
  ]);
});

it("looks at the rules of each security group for its own subnets", () => {
  const other = `${inGroup}/networkSecurityGroups/other`.toLowerCase();
  const closed = (direction: string) =>
    rule(`closed-${direction}`, {
      ...{ direction, protocol: "Udp", access: "Deny", priority: 100 },
    });
  const [a, b] = [...network.subnets.values()] as [ExistingSubnet, ExistingSubnet];
  const change = {
    subnets: new Map([
      [ids[0].toLowerCase(), a],
      [ids[1].toLowerCase(), { ...b, securityGroup: other }],
    ]),
    rules: new Map([
      [guard, rules],
      [other, [closed("Inbound"), closed("Outbound"), ...rules]],
    ]),
  };

  expect(problemsOf(change)).toEqual([
    expect.stringMatching(/have 2 network security groups/),
    expect.stringMatching(
      /of other stops inbound UDP 8472 from 10\.1\.1\.0\/24 and 10\.1\.2\.0\/24 to 10\.1\.2\.0\/24, by/,
    ),
    expect.stringMatching(
      /of other stops outbound UDP 8472 from 10\.1\.2\.0\/24 to 10\.1\.1\.0\/24 and 10\.1\.2\.0\/24, by/,
    ),
  ]);
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

it.each<[string, Partial<ExistingNetwork>, Partial<Settings>, RegExp]>([
  [
    "a DNS server",
    { dnsServers: ["10.1.9.9", "10.244.1.10"] },
    {},
    /^podCidr is .* apart from 10\.244\.1\.10, a DNS server of the network: pulumi config set podCidr RANGE/,
  ],
  [
    "a proxy",
    {},
    {
      httpProxy: {
        ...{ http: "http://10.97.0.5:3128", https: "http://proxy.example:3128", ca: "" },
        noProxy: ["10.1.0.0/16"],
      },
    },
    /^serviceCidr is .* apart from 10\.97\.0\.5, httpProxy:/,
  ],
  ["a mirror", {}, { mirror: "http://10.244.3.1:8080" }, /^podCidr .*10\.244\.3\.1, mirror:/],
])("wants pods and Services apart from %s behind a hub", (_, change, of, says) => {
  expect(problemsOf(change, of).filter((one) => says.test(one))).toHaveLength(1);
});

describe("in a network of the cluster's own", () => {
  const httpProxy = { http: "", https: "http://10.100.0.4:3128", noProxy: [], ca: "" };

  it.each<[string, Partial<Settings>, string]>([
    ["a proxy", { httpProxy }, "serviceCidr is 10.96.0.0/12, .* 10.100.0.4, httpProxy"],
    ["a mirror", { mirror: "http://10.244.3.1" }, "podCidr is .* 10.244.3.1, mirror"],
    [
      "clients",
      { apiAccessCidrs: ["10.97.0.0/16"] },
      "serviceCidr .* 10.97.0.0/16, apiAccessCidrs",
    ],
    [
      "operators",
      { sshAccessCidrs: ["10.244.9.7/32"] },
      "podCidr .* 10.244.9.7/32, sshAccessCidrs",
    ],
  ])("wants pods and Services apart from %s, before they are there for good", (_, of, says) => {
    const given = { ...validSettings, ...of };

    expect(networkProblems(given, none)).toEqual({
      ...{ letter: [], warnings: [] },
      problems: [expect.stringMatching(`^${says}: pulumi config set (pod|service)Cidr RANGE$`)],
    });
    expect(networkProblems(given, { ...none, exists: true })).toEqual({
      ...{ problems: [], letter: [] },
      warnings: [expect.stringMatching(`^${says}: the cluster reaches nothing .*: take another`)],
    });
  });

  it("lets ranges be of which they are a part, and names, of which nobody knows the address here", () => {
    const around = {
      ...{ apiAccessCidrs: ["10.0.0.0/8"], sshAccessCidrs: ["0.0.0.0/0"] },
      ...{ mirror: "http://mirror.example", httpProxy: { ...httpProxy, https: "http://proxy:80" } },
    };

    expect(networkProblems({ ...validSettings, ...around }, none).problems).toEqual([]);
  });
});

it("warns of a peering that a living cluster's pods overlap with, where machines are made, and stops no update", () => {
  const ranges = [...network.ranges, "10.244.128.0/20"];
  const living = { ...none, exists: true, network: { ...network, ranges } };

  expect(networkProblems(settings, living)).toEqual({
    ...{ problems: [], letter: [] },
    warnings: [
      expect.stringMatching(
        /^podCidr is .* apart from 10\.244\.128\.0\/20, .*: the cluster reaches nothing there/,
      ),
    ],
  });
  expect(networkProblems(settings, { ...living, created: [] }).warnings).toEqual([]);
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

describe("rules of another cluster's Services", () => {
  const warned = (name: string, priority: number, of: Partial<Settings> = {}) => {
    const more = [...rules, rule(name, { priority, destinationPortRange: "80" })];
    return networkWarnings({ ...settings, ...of }, { ...network, rules: new Map([[guard, more]]) });
  };

  it("are warned of, since two cloud providers delete each other's", () => {
    expect(warned("k8s-azure-lb_allow_IPv4_1", 500)).toEqual([
      expect.stringMatching(/guard has rules .*k8s-azure-lb_allow_IPv4_1.* group of its own/),
    ]);
  });

  it.each([
    ["other names", "shop", 500, {}],
    ["a priority that no cloud provider gives", "k8s-azure-lb_allow_IPv4_1", 499, {}],
    [
      "these names beside a cluster without cloud provider",
      "k8s-azure-lb_a",
      500,
      { cloudProvider: false },
    ],
  ])("are not seen in rules with %s", (_, name, priority, of) => {
    expect(warned(name, priority, of)).toEqual([]);
  });

  it("are in no network of the cluster's own", () => {
    expect(networkWarnings(validSettings, undefined)).toEqual([]);
  });
});

it("warns of application security groups that the cloud provider may not join, each once", () => {
  const bastions = [{ id: "/groups/bastions" }];
  const to = { destinationApplicationSecurityGroups: bastions, destinationAddressPrefix: "" };
  const from = { sourceApplicationSecurityGroups: bastions, sourceAddressPrefix: "" };
  const more = [...rules, rule("ssh-from", { ...from, priority: 300 }), rule("ssh-to", to)];

  expect(networkWarnings(settings, { ...network, rules: new Map([[guard, more]]) })).toEqual([
    expect.stringMatching(
      /group guard .*joinNetworkSecurityRule.* identity on \/groups\/bastions$/,
    ),
  ]);
});

it.each<[string, Record<string, string>, Partial<Settings>, RegExp[]]>([
  ["says nothing of tags that are there", { CostCenter: "4711", owner: "net" }, {}, []],
  ["names those that are added", { owner: "net" }, {}, [/group guard .*: costCenter=4711\. /]],
  [
    "and what they are in place of",
    { costcenter: "42" },
    {},
    [/: costCenter=4711 in place of 42\./],
  ],
  ["but where nothing writes any", {}, { cloudProvider: false }, []],
  ["but where the settings have none", { owner: "net" }, { tags: {} }, []],
])("%s, of the settings' on a security group of others", (_, theirs, of, said) => {
  const groupTags = new Map([[guard, theirs]]);
  const given = { ...settings, tags: { costCenter: "4711" }, ...of };

  expect(networkWarnings(given, { ...network, groupTags })).toEqual(
    said.map((text) => expect.stringMatching(text)),
  );
});

it("wants a network of the cluster's region", () => {
  expect(problemsOf({ location: "northeurope" })).toEqual([
    expect.stringContaining("is in northeurope, and machines in westeurope"),
  ]);
});

it("wants a network of the cluster's subscription", () => {
  const asked = { ...none, network, subscriptionId: "00000000-0000-0000-0000-000000000000" };

  expect(networkProblems(settings, asked)).toEqual({
    problems: [expect.stringMatching(/is in another subscription than the cluster, 00000000-/)],
    letter: [],
    warnings: [],
  });
  expect(networkProblems(settings, { ...asked, network: undefined }).problems).toContainEqual(
    expect.stringMatching(/is in another subscription/),
  );
});

it("asks for Reader on what belongs to a subnet and may not be read", () => {
  expect(problemsOf({ unreadable: [guard], rules: new Map([[guard, []]]) })).toEqual([
    expect.stringMatching(/may not read .*: ask for the role Reader on .*guard for who runs/),
  ]);
});

it("is content with the right to put machines into the subnets alone", () => {
  const reader = [{ actions: ["*/read"], notActions: [] }];
  const join = { actions: ["Microsoft.Network/virtualNetworks/subnets/join/action"] };
  const [a, b] = [...network.subnets.values()];
  const saidWith = (...permissions: ExistingSubnet["permissions"][]) =>
    problemsOf(
      {
        permissions: reader,
        subnets: new Map(
          [a!, b!].map((one, at) => [
            one.id.toLowerCase(),
            { ...one, permissions: permissions[at]! },
          ]),
        ),
      },
      { identityId: "/an/identity" },
    );

  expect(saidWith([join], [join])).toEqual([]);
  expect(saidWith([join], reader)).toEqual([
    expect.stringMatching(/may not put machines into b: .*join\/action on the subnet b for/),
  ]);
});

it("asks for the rights to see what is free, once in the text", () => {
  const unread = new Map(
    [...network.subnets].map(([key, one]) => [key, { ...one, free: undefined }]),
  );
  const asked = { ...none, network: { ...network, subnets: unread }, areAddressesUnknown: true };

  const { problems, letter } = networkProblems(settings, asked);

  expect(problems).toEqual([
    expect.stringMatching(
      /may not ask which addresses of spoke are free .*: ask for the role Reader on spoke/,
    ),
    expect.stringMatching(
      /how many addresses of the subnet a are free .* needs 9: ask for the role Reader/,
    ),
    expect.stringMatching(/how many addresses of the subnet b are free .* needs 2: /),
  ]);
  expect(letter.join().match(/^ *\d+\. .*Reader on spoke/gm)).toHaveLength(1);
  expect(
    networkProblems(settings, { ...asked, created: [], areAddressesUnknown: false }).problems,
  ).toEqual([]);
});

it("asks for the rights that the login lacks in the network", () => {
  const permissions = [{ actions: ["*/read"], notActions: [] }];
  const subnets = new Map([...network.subnets].map(([key, one]) => [key, { ...one, permissions }]));
  const reader = { permissions, subnets };

  expect(problemsOf(reader)).toEqual([
    expect.stringMatching(
      /may not put machines into a and b: .*subnets\/join\/action on the subnets a and b/,
    ),
  ]);
  const asked = { ...none, exists: true, network: { ...network, ...reader } };
  const problems = (machines: typeof created) =>
    networkProblems(settings, { ...asked, created: machines }).problems;
  expect(problems([])).toEqual([]);
  expect(problems([{ zone: "2" }])).toEqual([expect.stringMatching(/put machines into b: /)]);
});

it("has everything that is wrong at once, and each of its asks once in the text", () => {
  const denied = [
    ["2380", "Tcp", "*"],
    ["8472", "Udp", "*"],
    ["6443", "*", "AzureLoadBalancer"],
    ["6443", "*", "203.0.113.0/24"],
  ] as const;
  const closed = denied.map(([destinationPortRange, protocol, sourceAddressPrefix], at) =>
    rule(`closed-${at}`, {
      ...{ destinationPortRange, protocol, sourceAddressPrefix },
      ...{ access: "Deny", priority: 100 + at },
    }),
  );
  const permissions = [{ actions: ["*/read"], notActions: [] }];
  const [a, b] = [...network.subnets.values()] as [ExistingSubnet, ExistingSubnet];
  const firewall = leavingBy("VirtualAppliance");
  const wrong: ExistingNetwork = {
    ...{ ...network, ...firewall, location: "northeurope" },
    ranges: [...network.ranges, "10.244.0.0/16"],
    permissions,
    subnets: new Map([
      [
        ids[0].toLowerCase(),
        {
          ...{ ...a, permissions, delegations: ["Microsoft.Web/serverFarms"] },
          ...{ routeTable: table, free: 2 },
        },
      ],
      [ids[1].toLowerCase(), { ...b, permissions, securityGroup: undefined, gateway: undefined }],
    ]),
    rules: new Map([[guard, [...closed, ...rules]]]),
  };
  const given = { ...settings, zones: ["1", "2", "3"], nodeSubnets: [...ids, `${id}/subnets/c`] };

  const { problems, letter } = networkProblems(given, { ...none, network: wrong });

  const kinds = [
    /no subnet .*\/c,/,
    /spoke is in northeurope/,
    /may not put machines into a and b/,
    /podCidr is 10\.244\.0\.0\/16/,
    /a is delegated/,
    /a has 2 free addresses/,
    /route all of the subnet a leads/,
    /no NAT gateway is on b/,
    /no network security group is on b/,
    /TCP 2380/,
    /UDP 8472/,
    /TCP 6443 from AzureLoadBalancer/,
    /TCP 6443 from 203\.0\.113\.0\/24/,
  ];
  expect(problems).toEqual(kinds.map((kind) => expect.stringMatching(kind)));
  for (const kind of kinds) {
    expect(problems.filter((problem) => kind.test(problem))).toHaveLength(1);
  }
  // podCidr is for who runs Pulumi to change.
  expect(letter.join().match(/^ *\d+\. /gm)).toHaveLength(kinds.length - 1);
});
