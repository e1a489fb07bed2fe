import {
  defaultRoutes,
  type Route,
  routesAround,
  routesTo,
} from "../../../components/azure/routes";

type Given = readonly (readonly [prefix: string, hop: string])[];

const table = (routes: Given): Route[] =>
  routes.map(([addressPrefix, nextHopType]) => ({
    name: `${addressPrefix} ${nextHopType}`,
    properties: { addressPrefix, nextHopType },
  }));
const prefixes = (routes: readonly Route[]) =>
  routes.map(({ properties }) => properties.addressPrefix);

it.each<[string, readonly string[], readonly string[]]>([
  ["a route that covers it", ["10.0.0.0/8"], ["10.0.0.0/8"]],
  ["one for a part of it", ["10.1.1.128/25"], ["10.1.1.128/25"]],
  ["the longer of two", ["10.0.0.0/8", "10.1.0.0/16"], ["10.1.0.0/16"]],
  [
    "both where the longer leaves a part",
    ["10.0.0.0/8", "10.1.1.0/25"],
    ["10.0.0.0/8", "10.1.1.0/25"],
  ],
  [
    "no route that two longer ones cover together",
    ["10.1.0.0/16", "10.1.1.0/25", "10.1.1.128/25"],
    ["10.1.1.0/25", "10.1.1.128/25"],
  ],
  ["none of elsewhere, of IPv6 or of a service", ["10.2.0.0/16", "fd00::/8", "AzureCloud"], []],
])("goes to a range by %s", (_, given, expected) => {
  const routes = table(given.map((prefix) => [prefix, "VirtualAppliance"] as const));

  expect(prefixes(routesTo(routes)("10.1.1.0/24"))).toEqual(expected);
});

it.each<[string, Given, readonly string[]]>([
  ["0.0.0.0/0", [["0.0.0.0/0", "VirtualAppliance"]], ["0.0.0.0/0"]],
  ["the same by another address", [["10.1.0.0/0", "None"]], ["10.1.0.0/0"]],
  [
    "two halves",
    [
      ["0.0.0.0/1", "VirtualAppliance"],
      ["128.0.0.0/1", "None"],
      ["10.0.0.0/8", "VirtualNetworkGateway"],
    ],
    ["0.0.0.0/1", "128.0.0.0/1"],
  ],
  [
    "two halves before a route for all to the internet",
    [
      ["0.0.0.0/0", "Internet"],
      ["0.0.0.0/1", "None"],
      ["128.0.0.0/1", "None"],
    ],
    ["0.0.0.0/1", "128.0.0.0/1"],
  ],
  ["no half alone", [["0.0.0.0/1", "VirtualAppliance"]], []],
  [
    "no route for all that halves to the internet go before",
    [
      ["0.0.0.0/0", "VirtualAppliance"],
      ["0.0.0.0/1", "Internet"],
      ["128.0.0.0/1", "Internet"],
    ],
    [],
  ],
])("takes for default routes %s", (_, given, expected) => {
  expect(prefixes(defaultRoutes(table(given)))).toEqual(expected);
});

it.each<[string, Given, readonly string[]]>([
  ["the address space", [["10.1.0.0/16", "VirtualAppliance"]], ["10.1.0.0/16"]],
  ["a part of a subnet", [["10.1.1.4/32", "None"]], ["10.1.1.4/32"]],
  ["nothing by a wider range, which Azure's own route goes before", [["10.0.0.0/8", "None"]], []],
  [
    "nothing where the subnet itself is kept in the network",
    [
      ["10.1.0.0/16", "VirtualAppliance"],
      ["10.1.1.0/24", "VnetLocal"],
    ],
    [],
  ],
])("leads out of the network %s", (_, given, expected) => {
  const routes = routesAround(table(given), ["10.9.0.0/16", "10.1.0.0/16"])("10.1.1.0/24");

  expect(prefixes(routes)).toEqual(expected);
});

it("reads each prefix of a table once, however many ranges and routes there are", () => {
  const all = Array.from({ length: 400 }, (_, at) => `51.${at >> 8}.${at & 255}.0/24`);
  let reads = 0;
  const counted = all.map((addressPrefix) => ({
    name: addressPrefix,
    properties: {
      nextHopType: "None",
      get addressPrefix() {
        reads++;
        return addressPrefix;
      },
    },
  }));
  const [to, around] = [routesTo(counted), routesAround(counted, ["51.0.0.0/8"])];
  const before = reads;

  for (const range of all) expect([to(range), around(range)]).toHaveLength(2);

  expect(reads).toBe(before);
});
