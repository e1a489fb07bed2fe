import { Body } from "../../../../arm/resources/resource";
import { refusalOf } from "../../../support/arm/fixture";
import { Kind, network, valid } from "../../../support/arm/valid-resources";

const ipConfiguration = (more: object) => ({
  ipConfigurations: [{ ...valid.nic[1].ipConfigurations[0], ...more }],
});
const pool = (name: string) => ({ id: network(`loadBalancers/api/backendAddressPools/${name}`) });

it.each<[flaw: string, kind: Kind, change: Body, code: string]>([
  ["a group nowhere", "group", { location: "atlantis" }, "LocationNotAvailableForResourceGroup"],
  ["a network nowhere", "vnet", { location: "x" }, "LocationNotAvailableForResourceType"],
  [
    "a range that is none",
    "vnet",
    { addressSpace: { addressPrefixes: ["172.16.0.0"] } },
    "InvalidAddressPrefixFormat",
  ],
  ["a range with host bits", "subnet", { addressPrefix: "172.16.1.5/24" }, "InvalidCIDRNotation"],
  [
    "a subnet outside its network",
    "subnet",
    { addressPrefix: "10.0.0.0/24" },
    "NetcfgSubnetRangeOutsideVnet",
  ],
  [
    "a security group that is not there",
    "subnet",
    { networkSecurityGroup: { id: network("networkSecurityGroups/none") } },
    "InvalidResourceReference",
  ],
  ["a rule before the first priority", "rule", { priority: 99 }, "SecurityRuleInvalidPriority"],
  ["ports upside down", "rule", { destinationPortRange: "30-20" }, "SecurityRuleInvalidPortRange"],
  [
    "a rule from nowhere",
    "rule",
    { sourceAddressPrefix: undefined },
    "SecurityRuleParameterNotSpecified",
  ],
  [
    "a rule from no address",
    "rule",
    { sourceAddressPrefix: "10.0.0.0/33" },
    "SecurityRuleInvalidAddressPrefix",
  ],
  [
    "a rule that neither allows nor denies",
    "rule",
    { access: "Maybe" },
    "InvalidRequestFormat: .*access",
  ],
  ["a rule without access", "rule", { access: undefined }, "InvalidParameter: .*'access'"],
  [
    "a route with host bits",
    "routeTable",
    { routes: [{ name: "r", addressPrefix: "10.0.0.1/8" }] },
    "InvalidCIDRNotation",
  ],
  ["a Basic address", "apiIp", { sku: undefined }, "IPv4BasicSkuPublicIpCountLimitReached"],
  [
    "a dynamic Standard address",
    "apiIp",
    { publicIPAllocationMethod: "Dynamic" },
    "StandardSkuPublicIPAddressesMustBeStatic",
  ],
  ["a fourth zone", "apiIp", { zones: ["4"] }, "InvalidAvailabilityZone"],
  [
    "zones in a region without",
    "apiIp",
    { location: "westus" },
    "LocationNotSupportAvailabilityZones",
  ],
  [
    "a label with capitals",
    "apiIp",
    { dnsSettings: { domainNameLabel: "Zoned" } },
    "InvalidDomainNameLabel",
  ],
  [
    "a NAT gateway in two zones",
    "nat",
    { zones: ["1", "2"] },
    "ResourceCannotHaveMultipleZonesSpecified",
  ],
  [
    "a NAT gateway with an address of another zone",
    "nat",
    { zones: ["2"] },
    "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch",
  ],
  [
    "an interface without a subnet",
    "nic",
    ipConfiguration({ subnet: undefined }),
    "SubnetIsRequired",
  ],
  [
    "an address that Azure keeps",
    "nic",
    ipConfiguration({ privateIPAddress: "172.16.1.3" }),
    "PrivateIPAddressInReservedRange",
  ],
  [
    "the last address",
    "nic",
    ipConfiguration({ privateIPAddress: "172.16.1.255" }),
    "PrivateIPAddressInReservedRange",
  ],
  [
    "an address of another subnet",
    "nic",
    ipConfiguration({ privateIPAddress: "172.16.2.4" }),
    "PrivateIPAddressNotInSubnet",
  ],
  [
    "a pool that is not there",
    "nic",
    ipConfiguration({ loadBalancerBackendAddressPools: [pool("none")] }),
    "InvalidResourceReference",
  ],
  [
    "an interface in another region than its pool",
    "nic",
    { location: "northeurope" },
    "InvalidResourceReference",
  ],
  ["an interface with zones", "nic", { zones: ["1"] }, "InvalidRequestFormat: .*zones"],
])("refuses %s", async (_, kind, change, code) => {
  expect(await refusalOf(kind, change)).toMatch(new RegExp(`^${code}`));
});
