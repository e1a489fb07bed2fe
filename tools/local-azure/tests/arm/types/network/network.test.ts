import { subscriptionPath } from "../../../../arm/resources/ids";
import { Body } from "../../../../arm/resources/resource";
import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { Kind, network, valid, withChange } from "../../../support/arm/valid-resources";

const zonesFixed = "ResourceAvailabilityZonesCannotBeModified";
const dynamicNic = {
  location: "westeurope",
  ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
};

itRefuses("vnet", [
  [{ "addressSpace.addressPrefixes": ["172.16.0.0"] }, "InvalidAddressPrefixFormat"],
  [
    {
      subnets: [
        { name: "a", addressPrefix: "172.16.1.0/24" },
        { name: "b", addressPrefixes: ["172.16.2.0/24", "172.16.0.0/23"] },
      ],
    },
    "NetcfgSubnetRangesOverlap",
  ],
]);
itNeverChanges("vnet", [
  [
    { subnets: [{ name: "nodes-1", addressPrefix: "172.16.9.0/24" }] },
    "InUsePrefixCannotBeDeleted",
  ],
  [{ subnets: [] }, "InUseSubnetCannotBeDeleted"],
]);

itRefuses("subnet", [
  [{ addressPrefix: "172.16.1.5/24" }, "InvalidCIDRNotation"],
  [{ addressPrefix: "10.0.0.0/24" }, "NetcfgSubnetRangeOutsideVnet"],
  [
    { "networkSecurityGroup.id": network("networkSecurityGroups/none") },
    "InvalidResourceReference",
  ],
]);
itNeverChanges("subnet", [
  [{ addressPrefix: "172.16.9.0/24" }, "InUsePrefixCannotBeDeleted"],
  [{ defaultOutboundAccess: false }, "SubnetDefaultOutboundAccessCannotBeChanged"],
]);

itRefuses("rule", [
  [{ sourceAddressPrefix: undefined }, "SecurityRuleParameterNotSpecified"],
  [{ access: "Maybe" }, "InvalidRequestFormat: .*access"],
  [{ access: undefined }, "InvalidParameter: .*'access'"],
]);
itLimits("rule", [
  ["priority", [100, 4096], [99, 4097, 100.5], "SecurityRuleInvalidPriority"],
  [
    "destinationPortRange",
    ["0", "65535", "0-65535", "*"],
    ["65536", "1-65536", "30-20", "-1", "1-2-3", "ssh"],
    "SecurityRuleInvalidPortRange",
  ],
  ["sourcePortRange", ["*"], ["65536"], "SecurityRuleInvalidPortRange"],
  [
    "protocol",
    ["Tcp", "Udp", "Icmp", "Esp", "Ah", "*", "tcp"],
    ["Sctp", "All"],
    "InvalidRequestFormat: .*protocol",
  ],
  ["direction", ["Inbound", "Outbound"], ["Both"], "InvalidRequestFormat: .*direction"],
  [
    "sourceAddressPrefix",
    ["*", "10.0.0.1", "2001:db8::/32", "Internet", "AzureCloud.westeurope"],
    ["10.0.0", "10.0.0.0/33", "example.com/x"],
    "SecurityRuleInvalidAddressPrefix",
  ],
  [
    "destinationAddressPrefix",
    ["VirtualNetwork"],
    ["10.0.0.0/33"],
    "SecurityRuleInvalidAddressPrefix",
  ],
]);

itRefuses("routeTable", [
  [{ routes: [{ name: "r", addressPrefix: "10.0.0.1/8" }] }, "InvalidCIDRNotation"],
]);

itRefuses("apiIp", [
  [{ sku: undefined }, "IPv4BasicSkuPublicIpCountLimitReached"],
  [{ publicIPAllocationMethod: "Dynamic" }, "StandardSkuPublicIPAddressesMustBeStatic"],
  [{ zones: ["4"] }, "InvalidAvailabilityZone"],
  [{ location: "westus" }, "LocationNotSupportAvailabilityZones"],
]);
itLimits("apiIp", [
  [
    "dnsSettings.domainNameLabel",
    ["abc", `a${"b".repeat(62)}`],
    ["ab", `a${"b".repeat(63)}`, "1abc", "abc-", "a_bc", "Zoned"],
    "InvalidDomainNameLabel",
  ],
]);
itNeverChanges("natIp", [
  [{ "sku.name": "StandardV2" }, "SkuCannotBeChangedForPublicIp"],
  [{ zones: ["2"] }, zonesFixed],
]);

it("puts an address of two zones into all that the region has, and changes that no more", async () => {
  const [id, body] = valid.apiIp;
  const { arm } = newArm();
  await createResources(arm, "group");
  const inTwo = { ...body, zones: ["1", "2"] };

  expect((await arm.put(id, inTwo)).body["zones"]).toEqual(["1", "2", "3"]);
  expect(await refusedBy(arm.put(id, inTwo))).toMatch(zonesFixed);
});

itRefuses("nat", [
  [{ zones: ["1", "2"] }, "ResourceCannotHaveMultipleZonesSpecified"],
  [{ zones: ["2"] }, "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch"],
]);
itLimits("nat", [
  ["idleTimeoutInMinutes", [4, 120], [3, 121], "InvalidIdleTimeout"],
  ["sku.name", ["Standard"], ["Basic", "StandardV2"], "InvalidRequestFormat: .*sku"],
]);
itNeverChanges("nat", [[{ zones: undefined }, zonesFixed]]);

itRefuses("nic", [
  [{ ipConfigurations: [] }, "NetworkInterfaceMustHaveAtleastOneIpConfiguration"],
  [{ "ipConfigurations.0.subnet": undefined }, "SubnetIsRequired"],
  [{ "ipConfigurations.0.privateIPAddress": "172.16.1" }, "InvalidIPAddressFormat"],
  // The fourth address is the first that Azure does not keep, and it keeps the last.
  [{ "ipConfigurations.0.privateIPAddress": "172.16.1.3" }, "PrivateIPAddressInReservedRange"],
  [{ "ipConfigurations.0.privateIPAddress": "172.16.1.255" }, "PrivateIPAddressInReservedRange"],
  [{ "ipConfigurations.0.privateIPAddress": "172.16.2.4" }, "PrivateIPAddressNotInSubnet"],
  [
    {
      "ipConfigurations.0.loadBalancerBackendAddressPools": [
        { id: network("loadBalancers/api/backendAddressPools/none") },
      ],
    },
    "InvalidResourceReference",
  ],
  // Its pool is in another region.
  [{ location: "northeurope" }, "InvalidResourceReference"],
  [{ zones: ["1"] }, "InvalidRequestFormat: .*zones"],
]);

it.each<[id: string, code: string, body: Body]>([
  [
    network("virtualNetworks/vnet/subnets/b"),
    "NetcfgSubnetRangesOverlap",
    { addressPrefix: "172.16.1.128/25" },
  ],
  [network("networkSecurityGroups/nsg/securityRules/b"), "SecurityRuleConflict", valid.rule[1]],
  [network("publicIPAddresses/b"), "DnsRecordInUse", valid.apiIp[1]],
  [network("networkInterfaces/b"), "PrivateIPAddressIsAllocated", valid.nic[1]],
  [
    network("virtualNetworks/none/subnets/b"),
    "ResourceNotFound",
    { addressPrefix: "172.16.7.0/24" },
  ],
  [valid.vnet[0].replace("/zoned/", "/none/"), "ResourceGroupNotFound", valid.vnet[1]],
  [
    valid.vnet[0].replace(subscriptionPath, "/subscriptions/other"),
    "SubscriptionNotFound",
    valid.vnet[1],
  ],
])("does not create %s beside what is there: %s", async (id, code, body) => {
  const { arm } = newArm();
  await createResources(arm);

  expect(await refusedBy(arm.put(id, body))).toMatch(new RegExp(`^${code}:`));
});

it.each<[kind: Kind, code: string]>([
  ["securityGroup", "InUseNetworkSecurityGroupCannotBeDeleted"],
  ["routeTable", "InUseRouteTableCannotBeDeleted"],
  ["natIp", "PublicIPAddressCannotBeDeleted"],
  ["apiIp", "PublicIPAddressCannotBeDeleted"],
  ["nat", "CannotDeleteNatGatewayAssociatedToSubnet"],
  ["vnet", "InUseSubnetCannotBeDeleted"],
  ["subnet", "InUseSubnetCannotBeDeleted"],
  ["nic", "NicInUse"],
])("does not delete a %s that is in use", async (kind, code) => {
  const { arm } = newArm();
  await createResources(arm);

  expect(await refusedBy(arm.delete(valid[kind][0]))).toMatch(new RegExp(`^${code}:`));
});

it("lets a rule of the other direction have the same priority", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  const outbound = arm.put(`${valid.rule[0]}-out`, { ...valid.rule[1], direction: "Outbound" });

  expect(await refusedBy(outbound)).toBe("not refused");
});

it("deletes rules that a PUT of their group leaves out", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  await arm.put(...valid.securityGroup);

  expect(arm.peek(valid.rule[0])).toBeUndefined();
});

it("keeps the rules and subnets that a PUT names", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const [group, vnet] = [arm.peek(valid.securityGroup[0])!, arm.peek(valid.vnet[0])!];

  await arm.put(
    valid.securityGroup[0],
    withChange("securityGroup", { securityRules: group["securityRules"] }),
  );
  await arm.put(valid.vnet[0], withChange("vnet", { subnets: vnet["subnets"] }));

  expect(arm.peek(valid.rule[0])).toMatchObject(valid.rule[1]);
  expect(arm.peek(valid.subnet[0])).toMatchObject(valid.subnet[1]);
});

it("allocates the lowest free address from .4 up", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");

  const [first, second] = [network("networkInterfaces/b"), network("networkInterfaces/c")];
  await arm.put(first, dynamicNic);
  await arm.put(second, dynamicNic);
  await arm.put(first, dynamicNic);

  const addresses = [first, second].map((id) => arm.peek(id)?.["ipConfigurations"]);
  expect(addresses).toMatchObject([
    [{ privateIPAddress: "172.16.1.5" }],
    [{ privateIPAddress: "172.16.1.6" }],
  ]);
});

it("refuses an address in a subnet that is full: Azure keeps five", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");
  const subnet = network("virtualNetworks/vnet/subnets/small");
  await arm.put(subnet, { addressPrefix: "172.16.9.0/29" });
  const put = (name: number) =>
    arm.put(network(`networkInterfaces/${name}`), {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: subnet } }],
    });

  for (const name of [1, 2, 3]) await put(name);

  expect(await refusedBy(put(4))).toMatch(/^SubnetIsFull/);
});

it("does not move an interface to another virtual network", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const subnet = network("virtualNetworks/other/subnets/nodes");
  await arm.put(network("virtualNetworks/other"), valid.vnet[1]);
  await arm.put(subnet, { addressPrefix: "172.16.1.0/24" });

  const moved = withChange("nic", { "ipConfigurations.0.subnet.id": subnet });

  expect(await refusedBy(arm.put(valid.nic[0], moved))).toMatch(/^SubnetsNotInSameVnet/);
});

it("shows the rules of every security group, by which a subnet is closed to the internet", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  const { defaultSecurityRules } = arm.peek(valid.securityGroup[0])! as any;

  // https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules
  expect(
    defaultSecurityRules.map((one: any) =>
      ["priority", "direction", "sourceAddressPrefix", "destinationAddressPrefix", "access"]
        .map((property) => one[property])
        .join(" "),
    ),
  ).toEqual([
    "65000 Inbound VirtualNetwork VirtualNetwork Allow",
    "65001 Inbound AzureLoadBalancer * Allow",
    "65500 Inbound * * Deny",
    "65000 Outbound VirtualNetwork VirtualNetwork Allow",
    "65001 Outbound * Internet Allow",
    "65500 Outbound * * Deny",
  ]);
});

describe("a peering of two networks", () => {
  const hub = network("virtualNetworks/hub");
  const peering = (of: string) => `${of}/virtualNetworkPeerings/other`;
  const to = (id: string) => ({ remoteVirtualNetwork: { id } });

  it("is initiated by one side, connected by the other, and tells each the other's addresses", async () => {
    const { arm } = newArm();
    await createResources(arm, "vnet");
    await arm.put(hub, {
      location: "westeurope",
      addressSpace: { addressPrefixes: ["10.0.0.0/16"] },
    });
    const [spoke] = valid.vnet;
    const seen = async () => (await arm.get(spoke)).body["virtualNetworkPeerings"];

    await arm.put(peering(spoke), to(hub));
    expect(await seen()).toMatchObject([
      { peeringState: "Initiated", remoteAddressSpace: { addressPrefixes: ["10.0.0.0/16"] } },
    ]);

    await arm.put(peering(hub), to(spoke));
    expect(await seen()).toMatchObject([{ peeringState: "Connected" }]);
  });

  it("is refused where addresses overlap, and where there is no other network", async () => {
    const { arm } = newArm();
    await createResources(arm, "vnet");
    await arm.put(hub, {
      location: "westeurope",
      addressSpace: { addressPrefixes: ["172.16.0.0/20"] },
    });
    const [spoke] = valid.vnet;

    expect(await refusedBy(arm.put(peering(spoke), to(hub)))).toMatch(/VnetAddressSpacesOverlap/);
    expect(await refusedBy(arm.put(peering(spoke), to(`${hub}-2`)))).toMatch(/NotFound/);
  });
});
