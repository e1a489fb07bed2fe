import { unknown } from "../../plugins/protocol/values";
import { check, diff } from "../../provider/check";
import { createResources, newArm } from "../support/arm/fixture";
import { subject, type } from "../support/arm/valid-resources";

const request = (news: object, olds: object = {}) => ({
  ...subject,
  olds: { ...olds },
  news: { ...news },
});

/** Old inputs, new ones, and the outputs in between. */
const changing = (olds: object, news: object, state: object = {}) => ({
  olds: { ...olds },
  news: { ...news },
  state: { ...state },
});

it("defaults the location to that of the old inputs, the configuration, the group", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  const nsg = type("network:NetworkSecurityGroup");
  const news = { resourceGroupName: "zoned" };
  const located = (olds: object, location?: string, more: object = news) =>
    check(nsg, request(more, olds), { arm, location }).inputs["location"];

  expect(located({})).toBe("westeurope");
  expect(located({}, "northeurope")).toBe("northeurope");
  expect(located({ location: "uksouth" }, "northeurope")).toBe("uksouth");
  expect(located({}, undefined, { resourceGroupName: unknown })).toBe(unknown);
  expect(located({}, undefined, { ...news, location: "eastus" })).toBe("eastus");
});

it("reports all missing properties, nested ones too, but no unknown ones", () => {
  const { arm } = newArm();
  const reasons = (token: string, news: object) =>
    check(type(token), request(news), { arm }).failures?.map(({ reason }) => reason);

  const named = { virtualNetworkName: "net" };
  expect(reasons("network:VirtualNetwork", { ...named, resourceGroupName: "none" })).toEqual([
    "missing required property 'addressSpace.addressPrefixes'",
    expect.stringMatching(/^missing required property 'location'. Either set it explicitly/),
  ]);
  expect(reasons("network:SecurityRule", { securityRuleName: "a", access: "Allow" })).toEqual(
    ["resourceGroupName", "networkSecurityGroupName", "direction", "priority", "protocol"].map(
      (name) => `missing required property '${name}'`,
    ),
  );
  const later = { ...named, resourceGroupName: unknown, addressSpace: unknown };
  expect(reasons("network:VirtualNetwork", later)).toEqual([]);
});

it("makes up no name", () => {
  const { arm } = newArm();
  const news = { resourceGroupName: "zoned", location: "westeurope" };

  expect(check(type("network:RouteTable"), request(news), { arm }).failures).toEqual([
    { property: "", reason: "only the official plugin makes up a name: set 'routeTableName'" },
  ]);
});

const sku = (tier?: string) => ({ sku: { name: "Standard", ...(tier && { tier }) } });
const by = (name: string) => [{ [name]: "a" }, { [name]: "b" }] as const;

it.each<[token: string, olds: object, news: object, replaces: boolean]>([
  ["network:Subnet", ...by("subnetName"), true],
  ["network:VirtualNetwork", ...by("location"), true],
  ["network:PublicIPAddress", ...by("location"), true],
  ["network:PublicIPAddress", ...by("publicIPAddressVersion"), true],
  ["network:PublicIPAddress", ...by("publicIPPrefix"), true],
  ["network:PublicIPAddress", { sku: { name: "Basic" } }, sku(), true],
  ["network:PublicIPAddress", sku(), sku("Regional"), false],
  ["network:PublicIPAddress", sku("Regional"), sku(), false],
  ["resources:ResourceGroup", ...by("location"), true],
  ["authorization:RoleAssignment", ...by("scope"), true],
  ["authorization:RoleAssignment", ...by("principalId"), true],
  ["authorization:RoleAssignment", ...by("roleDefinitionId"), false],
  ["managedidentity:UserAssignedIdentity", ...by("location"), true],
  ["compute:VirtualMachine", { zones: ["1"] }, { zones: ["2"] }, false],
])(
  "plans for a %s, of %j to %j, a replacement as azure-native does: %s",
  (token, olds, news, replaces) => {
    const { changes, deleteBeforeReplace } = diff(type(token), changing(olds, news, olds));

    expect(changes.some((change) => change.replaces)).toBe(replaces);
    expect(deleteBeforeReplace).toBe(replaces);
  },
);

it("reports changes by their full path, and none for another spelling of a region", () => {
  const machine = (location: string, version: string) => ({
    location,
    storageProfile: { imageReference: { version } },
  });

  const { changes } = diff(
    type("compute:VirtualMachine"),
    changing(machine("West Europe", "1"), machine("westeurope", "2")),
  );

  expect(changes.map(({ path }) => path)).toEqual(["storageProfile.imageReference.version"]);
});

it.each<
  [what: string, token: string, olds: object, news: object, state: object, changes: string[]]
>([
  [
    "another spelling of a resource group",
    "network:RouteTable",
    { resourceGroupName: "Zoned" },
    { resourceGroupName: "zoned" },
    {},
    [],
  ],
  [
    "another resource group",
    "network:RouteTable",
    { resourceGroupName: "zoned" },
    { resourceGroupName: "other" },
    {},
    ["update resourceGroupName, replaces"],
  ],
  [
    "what is added as Azure has it",
    "network:PublicIPAddress",
    {},
    { publicIPAddressVersion: "IPv4", sku: { name: "Standard" } },
    { publicIPAddressVersion: "IPv4", sku: { name: "Standard" } },
    ["add publicIPAddressVersion", "add sku"],
  ],
  [
    "what is added otherwise than Azure has it",
    "network:PublicIPAddress",
    {},
    { publicIPAddressVersion: "IPv6", sku: { name: "Standard" } },
    { publicIPAddressVersion: "IPv4", sku: { name: "Standard", tier: "Regional" } },
    ["add publicIPAddressVersion, replaces", "add sku, replaces"],
  ],
  [
    "what is added with its default",
    "network:Subnet",
    {},
    { privateEndpointNetworkPolicies: "Disabled", privateLinkServiceNetworkPolicies: "Disabled" },
    {},
    ["add privateLinkServiceNetworkPolicies"],
  ],
  [
    "a change to its default",
    "network:Subnet",
    { privateEndpointNetworkPolicies: "Enabled" },
    { privateEndpointNetworkPolicies: "Disabled" },
    {},
    ["update privateEndpointNetworkPolicies"],
  ],
  [
    "another order of disks",
    "compute:VirtualMachine",
    { storageProfile: { dataDisks: [{ lun: 0 }, { lun: 1, caching: "None" }] } },
    { storageProfile: { dataDisks: [{ lun: 1, caching: "None" }, { lun: 0 }] } },
    {},
    [],
  ],
  [
    "a disk that is put before others, and one that goes",
    "compute:VirtualMachine",
    { storageProfile: { dataDisks: [{ lun: 0 }, { lun: 1 }, { lun: 2 }] } },
    { storageProfile: { dataDisks: [{ lun: 3 }, { lun: 1, caching: "None" }, { lun: 2 }] } },
    {},
    [
      "add storageProfile.dataDisks[0]",
      "add storageProfile.dataDisks[1].caching",
      "delete storageProfile.dataDisks[0]",
    ],
  ],
  [
    "another order of pools, which have no identifier",
    "network:LoadBalancer",
    { backendAddressPools: [{ name: "a" }, { name: "b" }] },
    { backendAddressPools: [{ name: "b" }, { name: "a" }] },
    {},
    ["update backendAddressPools[0].name", "update backendAddressPools[1].name"],
  ],
])("sees of %s as azure-native does", (_, token, olds, news, state, expected) => {
  const { changes } = diff(type(token), changing(olds, news, state));

  expect(
    changes.map(({ kind, path, replaces }) => `${kind} ${path}${replaces ? ", replaces" : ""}`),
  ).toEqual(expected);
});
