import { type Body, subscriptionPath } from "../../../arm/resources/resource";
import {
  type Answer,
  createResources,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  newArm,
  put,
  remove,
  type Step,
  taken,
} from "../../support/arm/fixture";
import { Kind, network, valid, withChange } from "../../support/arm/valid-resources";

describe("network", () => {
  const zonesFixed = "ResourceAvailabilityZonesCannotBeModified";
  const location = "westeurope";
  const dynamicNic = (subnet: string = valid.subnet[0]) => ({
    location,
    ipConfigurations: [{ name: "ip", subnet: { id: subnet } }],
  });
  const [vnet, vnetBody] = valid.vnet;
  const nowhere = network("natGateways/none");
  const [nic] = valid.nic;
  const [other, hub] = [network("virtualNetworks/other"), network("virtualNetworks/hub")];
  const [nicB, nicC] = [network("networkInterfaces/b"), network("networkInterfaces/c")];

  itRefuses("vnet", [
    [{ "addressSpace.addressPrefixes": ["172.16.0.0"] }, "InvalidAddressPrefixFormat"],
    ...["127.0.0.0/8", "169.254.9.0/24", "168.63.129.0/24", "224.0.0.0/8", "0.0.0.0/0"].map(
      (range) =>
        [{ "addressSpace.addressPrefixes": [range] }, "NetcfgInvalidIPAddressPrefix"] as const,
    ),
    [
      { "addressSpace.addressPrefixes": ["172.16.0.0/16", "172.16.1.0/24"] },
      "NetcfgInvalidVirtualNetworkSite",
    ],
    [{ subnets: [{ name: "a", addressPrefix: "172.16.1.0/30" }] }, "NetcfgInvalidSubnet"],
    [
      {
        subnets: [
          { name: "a", addressPrefix: "172.16.1.0/24" },
          { name: "b", addressPrefixes: ["172.16.2.0/24", "172.16.0.0/23"] },
        ],
      },
      "NetcfgSubnetRangesOverlap",
    ],
    ...["networkSecurityGroup", "routeTable", "natGateway"].map(
      (used) =>
        [
          { subnets: [{ name: "a", addressPrefix: "172.16.1.0/24", [used]: { id: nowhere } }] },
          "InvalidResourceReference",
        ] as const,
    ),
    [
      {
        subnets: ["172.16.1.0/24", "172.16.2.0/24"].map((of) => ({ name: "a", addressPrefix: of })),
      },
      "InvalidRequestFormat: .*subnets .*twice",
    ],
    [{ subnets: [{ addressPrefix: "172.16.1.0/24" }] }, "InvalidRequestFormat: .*not at all"],
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
  itLimits("subnet", [
    ["addressPrefix", ["172.16.1.0/29"], ["172.16.1.0/30"], "NetcfgInvalidSubnet"],
  ]);
  itNeverChanges("subnet", [
    [{ addressPrefix: "172.16.9.0/24" }, "InUsePrefixCannotBeDeleted"],
    [{ defaultOutboundAccess: false }, "SubnetDefaultOutboundAccessCannotBeChanged"],
  ]);

  itRefuses("rule", [
    [{ sourceAddressPrefix: undefined }, "SecurityRuleParameterNotSpecified"],
    [{ access: undefined }, "InvalidParameter: .*'access'"],
    ...[
      [["10.0.0.0/8", "10.1.0.0/16"], "OverlappingSubnetsNotPermittedInSecurityRule"],
      [["10.1.0.1", "10.1.0.1"], "OverlappingSubnetsNotPermittedInSecurityRule"],
      [["2001:db8:1::/48", "2001:db8::/32"], "OverlappingSubnetsNotPermittedInSecurityRule"],
      [["*"], "SecurityRuleParameterContainsUnsupportedValue"],
      [["10.0.0.0/8", "Internet"], "SecurityRuleParameterContainsUnsupportedValue"],
    ].map(
      ([sourceAddressPrefixes, code]) =>
        [{ sourceAddressPrefix: undefined, sourceAddressPrefixes }, code as string] as const,
    ),
    [{ sourceAddressPrefixes: ["11.0.0.0/8"] }, "InvalidRequestFormat: .*both sourceAddressPrefix"],
    [
      { destinationPortRange: undefined, destinationPortRanges: ["*"] },
      "SecurityRuleParameterContainsInvalidPortRanges",
    ],
    [
      { sourceApplicationSecurityGroups: [{ id: network("applicationSecurityGroups/none") }] },
      "InvalidResourceReference",
    ],
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
      "sourceAddressPrefix",
      ["*", "10.0.0.1", "2001:db8::/32", "Internet", "AzureCloud.westeurope"],
      ["10.0.0", "10.0.0.0/33", "10.0.0.5/24", "2001:db8::1/32", "example.com/x"],
      "SecurityRuleInvalidAddressPrefix",
    ],
    [
      "destinationAddressPrefix",
      ["VirtualNetwork"],
      ["10.0.0.0/33"],
      "SecurityRuleInvalidAddressPrefix",
    ],
  ]);

  itRefuses("securityGroup", [
    [
      {
        securityRules: [
          { name: "api", ...valid.rule[1] },
          { name: "API", ...withChange("rule", { priority: 101 }) },
        ],
      },
      "InvalidRequestFormat: .*twice",
    ],
    [
      { securityRules: [{ name: "api", ...withChange("rule", { direction: undefined }) }] },
      "InvalidRequestFormat: .*no direction",
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
  const inTwoZones = put(valid.apiIp[0], { ...valid.apiIp[1], zones: ["1", "2"] });
  itShows("group", [
    [
      "an address of two zones in all of the region",
      valid.apiIp[0],
      { zones: ["1", "2", "3"] },
      inTwoZones,
    ],
  ]);
  itAnswers("group", [["such an address again", zonesFixed, inTwoZones, inTwoZones]]);

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
    [
      {
        ipConfigurations: ["a", "b"].map((name) => ({
          ...{ name, primary: true, subnet: { id: valid.subnet[0] } },
        })),
      },
      "InvalidRequestFormat: .*primary",
    ],
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

  const create = (code: string, id: string, body: Body): Answer => [
    `another ${id}`,
    code,
    put(id, body),
  ];
  const end = (kind: Kind, code: string): Answer => [
    `the end of a ${kind} in use`,
    code,
    remove(valid[kind][0]),
  ];
  const small = `${vnet}/subnets/small`;
  const inSmall = (name: number) => put(network(`networkInterfaces/${name}`), dynamicNic(small));
  itAnswers("extension", [
    create("NetcfgSubnetRangesOverlap", `${vnet}/subnets/b`, { addressPrefix: "172.16.1.128/25" }),
    create("SecurityRuleConflict", `${valid.rule[0]}-2`, valid.rule[1]),
    create(taken, `${valid.rule[0]}-out`, withChange("rule", { direction: "Outbound" })),
    create(
      taken,
      `${valid.rule[0]}-apart`,
      withChange("rule", {
        ...{ priority: 101, sourceAddressPrefix: "" },
        sourceAddressPrefixes: ["10.0.0.0/16", "10.1.0.0/16", "10.2.0.1"],
      }),
    ),
    create("DnsRecordInUse", network("publicIPAddresses/b"), valid.apiIp[1]),
    create("PrivateIPAddressIsAllocated", nicB, valid.nic[1]),
    create("ResourceNotFound", `${other}/subnets/b`, { addressPrefix: "172.16.7.0/24" }),
    create("ResourceGroupNotFound", vnet.replace("/zoned/", "/none/"), vnetBody),
    create(
      "SubscriptionNotFound",
      vnet.replace(subscriptionPath, "/subscriptions/other"),
      vnetBody,
    ),
    [
      "the end of what no group has",
      "ResourceGroupNotFound",
      remove(vnet.replace("/zoned/", "/none/")),
    ],
    [
      "the end of no group",
      "ResourceGroupNotFound",
      remove(`${subscriptionPath}/resourceGroups/none`),
    ],
    ["the end of nothing", taken, remove(network("routeTables/none"))],
    end("securityGroup", "InUseNetworkSecurityGroupCannotBeDeleted"),
    end("routeTable", "InUseRouteTableCannotBeDeleted"),
    end("natIp", "PublicIPAddressCannotBeDeleted"),
    end("apiIp", "PublicIPAddressCannotBeDeleted"),
    end("nat", "CannotDeleteNatGatewayAssociatedToSubnet"),
    end("vnet", "InUseSubnetCannotBeDeleted"),
    end("subnet", "InUseSubnetCannotBeDeleted"),
    end("nic", "NicInUse"),
    // Azure keeps five addresses of a subnet.
    [
      "a fourth address of eight",
      "SubnetIsFull",
      put(small, { addressPrefix: "172.16.9.0/29" }),
      ...[1, 2, 3, 4].map(inSmall),
    ],
    [
      "a NAT gateway's second network",
      "NatGatewayCannotBeUsedBySubnetsBelongingToDifferentVirtualNetworks",
      put(other, vnetBody),
      put(`${other}/subnets/b`, {
        addressPrefix: "172.16.7.0/24",
        natGateway: { id: valid.nat[0] },
      }),
    ],
    [
      "an interface in another network",
      "SubnetsNotInSameVnet",
      put(other, vnetBody),
      put(`${other}/subnets/nodes`, { addressPrefix: "172.16.1.0/24" }),
      put(nic, withChange("nic", { "ipConfigurations.0.subnet.id": `${other}/subnets/nodes` })),
    ],
  ]);

  // A subnet is where its network is.
  const north = { location: "northeurope" };
  const elsewhere = (what: string, ...steps: Step[]): Answer => [
    what,
    "InvalidResourceReference",
    ...steps,
  ];
  itAnswers("extension", [
    elsewhere(
      "an interface in another region than its subnet",
      put(nicB, { ...dynamicNic(), ...north }),
    ),
    elsewhere(
      "a frontend in another region than its subnet",
      put(network("loadBalancers/b"), {
        ...north,
        sku: { name: "Standard" },
        frontendIPConfigurations: [{ name: "api", subnet: { id: valid.subnet[0] } }],
      }),
    ),
    ...(
      [
        ["networkSecurityGroup", network("networkSecurityGroups/b")],
        ["routeTable", network("routeTables/b")],
        ["natGateway", network("natGateways/b")],
      ] as const
    ).map(([property, id]) =>
      elsewhere(
        `a subnet in another region than its ${property}`,
        put(id, { ...north, ...(property === "natGateway" && { sku: { name: "Standard" } }) }),
        put(`${vnet}/subnets/b`, { addressPrefix: "172.16.9.0/24", [property]: { id } }),
      ),
    ),
  ]);

  const addressOf = (privateIPAddress: string) => ({ ipConfigurations: [{ privateIPAddress }] });
  const lowest = [
    put(nicB, dynamicNic()),
    put(nicC, dynamicNic()),
    put(nicB, dynamicNic()),
  ] as const;
  const { subnet: ofNic } = valid.nic[1].ipConfigurations[0];
  itShows("nic", [
    [
      "a subnet's id alone, whatever else was sent with it",
      nic,
      { ipConfigurations: [expect.objectContaining({ subnet: { id: ofNic.id } })] },
      put(
        nic,
        withChange("nic", {
          "ipConfigurations.0.subnet": { ...ofNic, privateEndpointNetworkPolicies: "Disabled" },
        }),
      ),
    ],
    [
      "no rule that a PUT of its group leaves out",
      valid.rule[0],
      undefined,
      put(...valid.securityGroup),
    ],
    [
      "a rule that a PUT of its group names",
      valid.rule[0],
      valid.rule[1],
      (arm) => {
        const { securityRules } = arm.peek(valid.securityGroup[0])!;
        return arm.put(valid.securityGroup[0], withChange("securityGroup", { securityRules }));
      },
    ],
    [
      "a subnet that a PUT of its network names",
      valid.subnet[0],
      valid.subnet[1],
      (arm) => arm.put(vnet, withChange("vnet", { subnets: arm.peek(vnet)!["subnets"] })),
    ],
    ["the lowest free address", nicB, addressOf("172.16.1.5"), ...lowest],
    ["the lowest free address after it", nicC, addressOf("172.16.1.6"), ...lowest],
  ]);

  it("shows the rules of every security group, by which a subnet is closed to the internet", async () => {
    const { arm } = newArm();
    await createResources(arm, "rule");

    const { defaultSecurityRules } = arm.peek(valid.securityGroup[0])! as any;

    // https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules
    const shown = [
      "priority",
      "direction",
      "sourceAddressPrefix",
      "destinationAddressPrefix",
      "access",
    ];
    expect(
      defaultSecurityRules.map((one: any) => shown.map((property) => one[property]).join(" ")),
    ).toEqual([
      "65000 Inbound VirtualNetwork VirtualNetwork Allow",
      "65001 Inbound AzureLoadBalancer * Allow",
      "65500 Inbound * * Deny",
      "65000 Outbound VirtualNetwork VirtualNetwork Allow",
      "65001 Outbound * Internet Allow",
      "65500 Outbound * * Deny",
    ]);
  });

  const peering = (of: string, to: string) =>
    put(`${of}/virtualNetworkPeerings/other`, { remoteVirtualNetwork: { id: to } });
  const hubAt = (prefix: string) =>
    put(hub, { location, addressSpace: { addressPrefixes: [prefix] } });
  const peered = (peeringState: string) => ({
    virtualNetworkPeerings: [
      { peeringState, remoteAddressSpace: { addressPrefixes: ["10.0.0.0/16"] } },
    ],
  });
  itAnswers("vnet", [
    [
      "a peering with the same addresses",
      "VnetAddressSpacesOverlap",
      hubAt("172.16.0.0/20"),
      peering(vnet, hub),
    ],
    ["a peering with no network", ".*NotFound", peering(vnet, hub)],
  ]);
  itShows("vnet", [
    ["a peering of one side", vnet, peered("Initiated"), hubAt("10.0.0.0/16"), peering(vnet, hub)],
    [
      "a peering of both sides",
      vnet,
      peered("Connected"),
      hubAt("10.0.0.0/16"),
      peering(vnet, hub),
      peering(hub, vnet),
    ],
  ]);
});

describe("private dns", () => {
  const [zone] = valid.zone;
  const [link] = valid.link;
  const [record] = valid.record;
  const other = network("virtualNetworks/other");

  itRefuses("zone", [
    [{ location: "westeurope" }, "LocationNotAvailableForResourceType: .*'global'"],
  ]);
  itRefuses("link", [
    [{ location: "westeurope" }, "LocationNotAvailableForResourceType: .*'global'"],
    [{ virtualNetwork: { id: network("virtualNetworks/none") } }, "InvalidResourceReference"],
    [{ virtualNetwork: undefined }, "InvalidParameter"],
  ]);
  itRefuses("record", [
    [{ aRecords: [{ ipv4Address: "api" }] }, "BadRequest: .*IPv4"],
    [{ aRecords: [{ ipv4Address: "10.0.0.4/32" }] }, "BadRequest"],
    [{ aRecords: [] }, "BadRequest: .*0 records"],
    [{ ttl: 0 }, "BadRequest: .*TTL '0'"],
  ]);
  itAnswers("record", [
    ...(
      [
        ["internal", "InvalidResourceName"],
        ["-zoned.internal", "InvalidResourceName"],
        ["azure.com", "BadRequest: .*reserved"],
      ] as const
    ).map(([name, code]): Answer => [
      `a zone ${name}`,
      code,
      put(network(`privateDnsZones/${name}`), valid.zone[1]),
    ]),
    [
      "a link to another network",
      "InvalidParameter: The virtual network of link",
      put(other, valid.vnet[1]),
      put(link, withChange("link", { virtualNetwork: { id: other } })),
    ],
    [
      "a network's second link to a zone",
      "BadRequest: .*overlapping namespaces",
      put(`${zone}/virtualNetworkLinks/again`, valid.link[1]),
    ],
    ["the end of a zone with links", "CannotDeleteResource: .*/vnet'", remove(zone)],
  ]);
  itShows("record", [
    [
      "a zone's records, with Azure's own, and links",
      zone,
      { numberOfRecordSets: 2, numberOfVirtualNetworkLinks: 1 },
    ],
    ["a record's full name", record, { fqdn: "api.zoned-abc.internal." }],
    ["no record of a zone that is gone", record, undefined, remove(link), remove(zone)],
  ]);

  it.each(["zone", "link"] as const)("drops tags of a %s by their names", async (kind) => {
    const { arm } = newArm();
    await createResources(arm, kind);
    const [id] = valid[kind];
    const tags = { "Cost Center": "1", "2nd": "2", "a:b": "3", "cost-center": "4" };

    await arm.put(id, withChange(kind, { tags }));
    expect(arm.peek(id)!["tags"]).toEqual({ "cost-center": "4" });
    await arm.patch(id, { tags: { ...tags, owner: "5" } });
    expect(arm.peek(id)!["tags"]).toEqual({ "cost-center": "4", owner: "5" });
  });
});

describe("location", () => {
  itRefuses("group", [
    [{ location: undefined }, "LocationRequired"],
    [{ location: "atlantis" }, "LocationNotAvailableForResourceGroup"],
  ]);
  itRefuses("vnet", [[{ location: "x" }, "LocationNotAvailableForResourceType"]]);

  const located = (Object.keys(valid) as Kind[]).filter((kind) => "location" in valid[kind][1]);
  for (const kind of located) {
    const codes: Partial<Record<Kind, string>> = {
      group: "InvalidResourceGroupLocation:",
      zone: "LocationNotAvailableForResourceType:",
      link: "LocationNotAvailableForResourceType:",
    };
    const code = codes[kind] ?? "InvalidResourceLocation:";
    itNeverChanges(kind, [[{ location: "northeurope" }, code]]);
  }
});

const [id, body] = valid.balancer;
const [rule] = body.loadBalancingRules;
const part = (list: string, name: string) => ({ id: `${id}/${list}/${name}` });
const frontend = (more: object) => ({ frontendIPConfigurations: [{ name: "api", ...more }] });
const address = { publicIPAddress: { id: valid.apiIp[0] } };
const byAddress = (...members: Body[]) => ({
  backendAddressPools: [
    { name: "cp" },
    { name: "ip", loadBalancerBackendAddresses: members.map((one) => ({ name: "a", ...one })) },
  ],
});
const [virtualNetwork, ipAddress] = [{ id: valid.vnet[0] }, "172.16.1.9"];
const outbound = {
  name: "out",
  protocol: "All",
  frontendIPConfigurations: [part("frontendIPConfigurations", "api")],
  backendAddressPool: part("backendAddressPools", "cp"),
};
const another = (change: object) => ({
  loadBalancingRules: [rule, { ...rule, name: "b", ...change }],
});

itRefuses("balancer", [
  [frontend({}), "FrontendIPConfigurationHasNoSubnetOrPublicIPAddressOrPublicIPPrefix"],
  [
    frontend({ ...address, subnet: { id: valid.subnet[0] } }),
    "FrontendIPConfigHasBothSubnetAndPublicIP",
  ],
  [
    frontend({ ...address, zones: ["1"] }),
    "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
  ],
  [{ "sku.name": "Basic" }, "PublicIPAndLBSkuDoNotMatch"],
  [another({ frontendPort: 443 }), "RulesUseSameBackendPortProtocolAndPool"],
  [another({ backendPort: 443 }), "RulesUseSameFrontendPortProtocolAndIPConfig"],
  // The rule has SNAT on the address of an outbound rule.
  [
    { outboundRules: [outbound] },
    "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
  ],
  [{ "probes.0.requestPath": undefined }, "InvalidRequestFormat: Probe readyz .*requestPath"],
  [
    { "probes.0.protocol": "Tcp", "probes.0.requestPath": "/readyz" },
    "InvalidRequestFormat: .*requestPath",
  ],
  [{ backendAddressPools: [{ name: "cp" }, { name: "CP" }] }, "InvalidRequestFormat: .*twice"],
  [
    byAddress({ ipAddress, virtualNetwork: { id: network("virtualNetworks/none") } }),
    "InvalidResourceReference",
  ],
  [byAddress({ ipAddress }), "InvalidRequestFormat: .*neither a virtual network"],
  [
    byAddress({ ipAddress, virtualNetwork }, { ipAddress, virtualNetwork }),
    "InvalidRequestFormat: .*172.16.1.9 twice",
  ],
  ...[
    { "loadBalancingRules.0.probe": part("probes", "none") },
    {
      "loadBalancingRules.0.frontendIPConfiguration": part("frontendIPConfigurations", "none"),
    },
    { "loadBalancingRules.0.backendAddressPools": [part("backendAddressPools", "none")] },
    { "loadBalancingRules.0.backendAddressPool": part("backendAddressPools", "none") },
    { outboundRules: [{ ...outbound, backendAddressPool: part("backendAddressPools", "none") }] },
  ].map((change) => [change, "InvalidResourceReference"] as const),
]);
itLimits("balancer", [
  ["probes.0.intervalInSeconds", [5], [1, 4], "InvalidRequestFormat: Probe readyz .*interval"],
  ["probes.0.port", [1, 65535], [0, 65536], "InvalidRequestFormat: .*port"],
  [
    "loadBalancingRules.0.frontendPort",
    [1, 65534],
    [0, 65535, undefined],
    "InvalidRequestFormat: .*ports",
  ],
  [
    "loadBalancingRules.0.idleTimeoutInMinutes",
    [4, 100],
    [3, 101],
    "InvalidRequestFormat: .*idle timeout",
  ],
]);
itNeverChanges("balancer", [
  [{ "sku.name": "Gateway" }, "LoadBalancerSkuCannotBeChanged"],
  // Its member is an interface, which names its pools itself.
  [
    { backendAddressPools: [{ name: "cp", loadBalancerBackendAddresses: [] }] },
    "ModificationOfNICIpConfigBackendPoolNotSupported",
  ],
]);

const standard = { location: "westeurope", sku: { name: "Standard" } };
const internal = network("loadBalancers/internal");
const within = (zones: string[]) =>
  put(internal, { ...standard, ...frontend({ subnet: { id: valid.subnet[0] }, zones }) });
const changed = (change: Body) => put(id, withChange("balancer", change));
itAnswers("nic", [
  ["a pool of addresses", taken, changed(byAddress({ ipAddress, virtualNetwork }))],
  [
    "an outbound rule beside a rule without SNAT",
    taken,
    changed({ "loadBalancingRules.0.disableOutboundSnat": true, outboundRules: [outbound] }),
  ],
  ["a rule of another protocol", taken, changed(another({ frontendPort: 443, protocol: "Udp" }))],
  [
    "a rule with a floating address",
    taken,
    changed(another({ frontendPort: 443, enableFloatingIP: true })),
  ],
  [
    "a probe over TCP without a path",
    taken,
    changed({ "probes.0.protocol": "Tcp", "probes.0.requestPath": undefined }),
  ],
  [
    "itself as it is shown, with members that it does not name",
    taken,
    (arm) => arm.put(id, { ...body, ...arm.peek(id)! }),
  ],
  [
    "a second balancer on an address",
    "PublicIPAddressInUse",
    put(network("loadBalancers/b"), { ...standard, ...frontend(address) }),
  ],
  [
    "other zones of an internal frontend",
    "ResourceAvailabilityZonesCannotBeModified",
    within(["1", "2", "3"]),
    within(["1"]),
  ],
  [
    "an internal frontend of two zones again",
    "ResourceAvailabilityZonesCannotBeModified",
    within(["1", "2"]),
    within(["1", "2"]),
  ],
  [
    "the end of the subnet of an internal frontend",
    "InUse.*internal/frontendIPConfigurations/api",
    within(["1"]),
    remove(valid.subnet[0]),
  ],
]);
itShows("nic", [
  [
    "full ids of its parts, and the members of its pool",
    id,
    {
      frontendIPConfigurations: [
        {
          ...part("frontendIPConfigurations", "api"),
          loadBalancingRules: [part("loadBalancingRules", "api")],
        },
      ],
      backendAddressPools: [
        { backendIPConfigurations: [{ id: `${valid.nic[0]}/ipConfigurations/ip` }] },
      ],
      probes: [{ loadBalancingRules: [part("loadBalancingRules", "api")] }],
    },
  ],
  [
    "an interface in no pool, when the balancer is gone",
    valid.nic[0],
    { ipConfigurations: [{ loadBalancerBackendAddressPools: [] }] },
    remove(id),
  ],
  [
    "an interface in no pool that its balancer has no more",
    valid.nic[0],
    { ipConfigurations: [{ loadBalancerBackendAddressPools: [] }] },
    changed({ backendAddressPools: [{ name: "other" }], loadBalancingRules: [] }),
  ],
  [
    "an internal frontend's address of its subnet",
    internal,
    { frontendIPConfigurations: [{ privateIPAddress: "172.16.1.5" }] },
    within(["1", "2", "3"]),
  ],
]);
