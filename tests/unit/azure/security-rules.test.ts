import {
  type Flow,
  mayPass,
  type SecurityRule,
  stoppedBy,
} from "../../../components/azure/security-rules";
import { addressesOf } from "../../../components/azure/spans";

type Change = Partial<SecurityRule["properties"]>;

let priority = 100;
const rule = (name: string, change: Change): SecurityRule => ({
  name,
  properties: {
    ...{ direction: "Inbound", access: "Allow", protocol: "*", priority: priority++ },
    ...{ sourceAddressPrefix: "*", sourcePortRange: "*" },
    ...{ destinationAddressPrefix: "*", destinationPortRange: "*" },
    // Azure shows one or the other.
    ...(change.sourceAddressPrefixes && { sourceAddressPrefix: undefined }),
    ...(change.destinationPortRanges && { destinationPortRange: undefined }),
    ...change,
  },
});
const last = rule("DenyAllInBound", { access: "Deny", priority: 65500 });
const ofNetwork = rule("AllowVnetInBound", {
  ...{ priority: 65000, sourceAddressPrefix: "VirtualNetwork" },
  destinationAddressPrefix: "VirtualNetwork",
});
const network = [addressesOf("10.0.0.0/16")];
const flow: Flow = {
  ...{ direction: "Inbound", protocol: "Tcp", from: "203.0.113.0/24" },
  ...{ to: "10.0.1.0/24", port: 6443 },
};

const stops = (rules: readonly SecurityRule[], change: Partial<Flow> = {}) =>
  stoppedBy({ ...flow, ...change }, [last, ofNetwork, ...rules], network)?.name;

it.each<[string, Change]>([
  ["any packet", {}],
  [
    "the range and the port",
    { sourceAddressPrefix: "203.0.113.0/24", destinationPortRange: "6443" },
  ],
  ["a wider range", { sourceAddressPrefixes: ["198.51.100.0/24", "203.0.0.0/16"] }],
  ["ports around it", { destinationPortRanges: ["80", "6000-7000"] }],
  ["the internet", { sourceAddressPrefix: "Internet" }],
  ["the nodes' network", { destinationAddressPrefix: "VirtualNetwork" }],
  ["TCP, in whichever letters", { protocol: "TCP" }],
])("lets a flow pass by a rule for %s", (_, change) => {
  expect(stops([rule("opens", change)])).toBeUndefined();
});

it.each<[string, Change]>([
  ["another port", { destinationPortRange: "443" }],
  ["another protocol", { protocol: "Udp" }],
  ["a part of the range", { sourceAddressPrefix: "203.0.113.0/25" }],
  ["another direction", { direction: "Outbound" }],
  ["some source ports", { sourcePortRange: "1024-2048" }],
  ["services of Azure", { sourceAddressPrefix: "AzureCloud" }],
  ["application security groups", { sourceAddressPrefixes: [] }],
])("stops it where there is only a rule for %s", (_, change) => {
  expect(stops([rule("opens", change)])).toBe("DenyAllInBound");
});

it("goes by the lowest priority, in whatever order Azure lists the rules", () => {
  const opens = rule("opens", { priority: 300 });
  const closes = rule("closes", { priority: 200, access: "Deny" });

  expect(stops([opens, closes])).toBe("closes");
  expect(stops([opens, { ...closes, properties: { ...closes.properties, priority: 400 } }])).toBe(
    undefined,
  );
});

it("is stopped by a rule that denies a part of it", () => {
  const closes = rule("closes", { access: "Deny", sourceAddressPrefix: "203.0.113.7/32" });

  expect(stops([closes, rule("opens", {})])).toBe("closes");
});

it("lets machines of a network reach each other, as Azure does by itself", () => {
  expect(stops([], { from: "10.0.2.0/24" })).toBeUndefined();
  expect(stops([], { from: "9.1.2.0/24" })).toBe("DenyAllInBound");
});

it("stops nobody behind a gateway, who may be in the tag VirtualNetwork", () => {
  const closes = (sourceAddressPrefix: string) =>
    rule("closes", { access: "Deny", sourceAddressPrefix });

  expect(stops([], { from: "10.200.0.0/16" })).toBeUndefined();
  expect(stops([closes("VirtualNetwork")], { from: "10.200.0.0/16" })).toBeUndefined();
  expect(stops([closes("Internet")], { from: "10.200.0.0/16" })).toBeUndefined();
  expect(stops([closes("VirtualNetwork")], { from: "10.0.2.0/24" })).toBe("closes");
  expect(stops([closes("10.0.0.0/8")], { from: "10.200.0.0/16" })).toBe("closes");
});

it("closes the internet by a rule for all of it, and not by one for a range", () => {
  const out: Partial<Flow> = { direction: "Outbound", from: "10.0.1.0/24", to: "Internet" };
  const closes = (destinationAddressPrefix: string) =>
    rule("closes", { access: "Deny", direction: "Outbound", destinationAddressPrefix });

  for (const range of ["10.0.0.0/8", "198.51.100.0/24", "VirtualNetwork", "Storage"])
    expect(stops([closes(range)], out)).toBeUndefined();
  for (const range of ["*", "0.0.0.0/0", "Internet"])
    expect(stops([closes(range)], out)).toBe("closes");
});

it("takes several ports as one flow", () => {
  const ports: Partial<Flow> = { port: 30_000, lastPort: 32_767 };
  const opens = (destinationPortRange: string) => rule("opens", { destinationPortRange });
  const closes = rule("closes", { access: "Deny", destinationPortRange: "31000" });

  expect(stops([opens("30000-32767")], ports)).toBeUndefined();
  expect(stops([opens("*")], ports)).toBeUndefined();
  expect(stops([opens("30000-31000")], ports)).toBe("DenyAllInBound");
  expect(stops([closes, opens("*")], ports)).toBe("closes");
});

it("takes what one rule names for as much as it is together", () => {
  const opens = (change: Change) => stops([rule("opens", change)], { port: 100, lastPort: 200 });
  const [low, high] = ["203.0.113.0/25", "203.0.113.128/25"] as const;

  expect(opens({ destinationPortRanges: ["151-200", "90-120", "121-150"] })).toBeUndefined();
  expect(opens({ destinationPortRanges: ["90-120", "122-200"] })).toBe("DenyAllInBound");
  expect(opens({ sourceAddressPrefixes: [high, low] })).toBeUndefined();
  expect(opens({ sourceAddressPrefixes: [high, "203.0.113.0/26"] })).toBe("DenyAllInBound");
});

it("knows of a rule against the internet whether others before it open a part of that", () => {
  const out = { ...flow, direction: "Outbound", from: "10.0.1.0/24", to: "Internet" } as const;
  const closes = rule("closes", {
    ...{ direction: "Outbound", access: "Deny", priority: 500 },
    destinationAddressPrefix: "Internet",
  });
  const opens = (destinationAddressPrefix: string, change: Change = {}) => {
    const before = rule("opens", { direction: "Outbound", destinationAddressPrefix, ...change });
    return mayPass(out, closes, [before, closes], network);
  };

  for (const one of ["AzureCloud", "Storage.WestEurope", "198.51.100.0/24"])
    expect(opens(one)).toBe(true);
  for (const one of ["VirtualNetwork", "10.0.0.0/8"]) expect(opens(one)).toBe(false);
  expect(opens("AzureCloud", { priority: 600 })).toBe(false);
  expect(opens("AzureCloud", { destinationPortRange: "443" })).toBe(false);
  expect(opens("AzureCloud", { sourceAddressPrefix: "10.0.2.0/24" })).toBe(false);
  expect(opens("AzureCloud", { access: "Deny" })).toBe(false);
});

it.each<[string, string, Change, Change, boolean]>([
  ["a tag of Azure's services", "20.1.2.3", { destinationAddressPrefix: "AzureCloud" }, {}, true],
  [
    "the tag of what a gateway leads to",
    "131.1.2.3",
    { destinationAddressPrefix: "VirtualNetwork" },
    {},
    true,
  ],
  ["no rule for another range", "20.1.2.3", { destinationAddressPrefix: "20.2.0.0/16" }, {}, false],
  [
    "no rule for another port",
    "20.1.2.3",
    { destinationAddressPrefix: "AzureCloud", destinationPortRange: "443" },
    {},
    false,
  ],
  [
    "Azure's own, where the internet is closed and a gateway may lead there",
    "131.1.2.3",
    { access: "Deny", destinationAddressPrefix: "Storage" },
    { destinationAddressPrefix: "Internet" },
    true,
  ],
  [
    "no tag for a private address",
    "10.9.0.4",
    { destinationAddressPrefix: "AzureCloud" },
    {},
    false,
  ],
  [
    "no tag for the network's own public addresses",
    "51.0.1.4",
    { destinationAddressPrefix: "Internet" },
    {},
    false,
  ],
])("may let a host's packets pass: %s", (_, to, opens, closes, expected) => {
  const out = { ...flow, direction: "Outbound", from: "10.0.1.0/24", to } as const;
  const before = rule("opens", { direction: "Outbound", ...opens });
  const closing = rule("closes", { direction: "Outbound", access: "Deny", ...closes });
  const own = { ...ofNetwork, properties: { ...ofNetwork.properties, direction: "Outbound" } };

  expect(
    mayPass(out, closing, [before, closing, own], [...network, addressesOf("51.0.0.0/16")]),
  ).toBe(expected);
});

it("takes the balancers' probes by their tag, and by the network's, which has their address too", () => {
  const probes = { from: "AzureLoadBalancer" };
  const from = (sourceAddressPrefix: string, change: Change = {}) =>
    rule("probes", { sourceAddressPrefix, ...change });
  const closes = rule("closes", { access: "Deny", priority: 4096 });

  expect(stops([], probes)).toBeUndefined();
  expect(stops([closes], probes)).toBe("closes");
  expect(stops([closes, from("AzureLoadBalancer")], probes)).toBeUndefined();
  expect(stops([closes, from("VirtualNetwork")], probes)).toBeUndefined();
  expect(stops([from("VirtualNetwork", { access: "Deny" })], probes)).toBe("probes");
});
