import { subscriptionPath } from "../../../arm/resources/ids";
import { Body } from "../../../arm/resources/resource";
import { createResources, newArm, refusedBy } from "../../support/arm/fixture";
import { network, valid } from "../../support/arm/valid-resources";

it.each<[flaw: string, id: string, body: Body, code: string]>([
  [
    "a subnet over another",
    network("virtualNetworks/vnet/subnets/b"),
    { addressPrefix: "172.16.1.128/25" },
    "NetcfgSubnetRangesOverlap",
  ],
  [
    "a network with a subnet over another",
    network("virtualNetworks/other"),
    {
      ...valid.vnet[1],
      subnets: [
        { name: "a", addressPrefix: "172.16.1.0/24" },
        { name: "b", addressPrefixes: ["172.16.2.0/24", "172.16.0.0/23"] },
      ],
    },
    "NetcfgSubnetRangesOverlap",
  ],
  [
    "a rule at a priority that is taken",
    network("networkSecurityGroups/nsg/securityRules/b"),
    valid.rule[1],
    "SecurityRuleConflict",
  ],
  ["a DNS label that is taken", network("publicIPAddresses/b"), valid.apiIp[1], "DnsRecordInUse"],
  [
    "a private address that is taken",
    network("networkInterfaces/b"),
    valid.nic[1],
    "PrivateIPAddressIsAllocated",
  ],
  [
    "a subnet of no network",
    network("virtualNetworks/none/subnets/b"),
    { addressPrefix: "172.16.7.0/24" },
    "ResourceNotFound",
  ],
  [
    "a network in no group",
    valid.vnet[0].replace("/zoned/", "/none/"),
    valid.vnet[1],
    "ResourceGroupNotFound",
  ],
  [
    "a network in another subscription",
    valid.vnet[0].replace(subscriptionPath, "/subscriptions/other"),
    valid.vnet[1],
    "SubscriptionNotFound",
  ],
])("refuses %s", async (_, id, body, code) => {
  const { arm } = newArm();
  await createResources(arm);

  expect(await refusedBy(arm.put(id, body))).toMatch(new RegExp(`^${code}:`));
});

it("lets a rule of the other direction have the same priority", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  const outbound = arm.put(`${valid.rule[0]}-out`, { ...valid.rule[1], direction: "Outbound" });

  expect(await refusedBy(outbound)).toBe("not refused");
});

it("allocates the lowest free address from .4 up", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const dynamic = {
    location: "westeurope",
    ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
  };

  const [first, second] = [network("networkInterfaces/b"), network("networkInterfaces/c")];
  await arm.put(first, dynamic);
  await arm.put(second, dynamic);
  await arm.put(first, dynamic);

  const addresses = [first, second].map((id) => arm.peek(id)?.["ipConfigurations"]);
  expect(addresses).toMatchObject([
    [{ privateIPAddress: "172.16.1.5" }],
    [{ privateIPAddress: "172.16.1.6" }],
  ]);
});
