import { build, newCloud, refusedBy } from "../fixture";
import { subscriptionPath } from "../ids";
import { Body } from "../resource-type";
import { network, sound } from "../sample";

it.each<[flaw: string, id: string, body: Body, code: string]>([
  [
    "a subnet over another",
    network("virtualNetworks/vnet/subnets/b"),
    { addressPrefix: "172.16.1.128/25" },
    "NetcfgSubnetRangesOverlap",
  ],
  [
    "a rule at a priority that is taken",
    network("networkSecurityGroups/nsg/securityRules/b"),
    sound.rule[1],
    "SecurityRuleConflict",
  ],
  ["a DNS label that is taken", network("publicIPAddresses/b"), sound.apiIp[1], "DnsRecordInUse"],
  [
    "a private address that is taken",
    network("networkInterfaces/b"),
    sound.nic[1],
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
    sound.vnet[0].replace("/zoned/", "/none/"),
    sound.vnet[1],
    "ResourceGroupNotFound",
  ],
  [
    "a network of somebody else",
    sound.vnet[0].replace(subscriptionPath, "/subscriptions/other"),
    sound.vnet[1],
    "SubscriptionNotFound",
  ],
])("refuses %s", async (_, id, body, code) => {
  const { cloud } = newCloud();
  await build(cloud);

  expect(await refusedBy(cloud.put(id, body))).toMatch(new RegExp(`^${code}:`));
});

it("lets a rule of the other direction have the same priority", async () => {
  const { cloud } = newCloud();
  await build(cloud, "rule");

  const outward = cloud.put(`${sound.rule[0]}-out`, { ...sound.rule[1], direction: "Outbound" });

  expect(await refusedBy(outward)).toBe("not refused");
});

it("gives out the lowest address from .4 up that nobody has", async () => {
  const { cloud } = newCloud();
  await build(cloud, "nic");
  const dynamic = {
    location: "westeurope",
    ipConfigurations: [{ name: "ip", subnet: { id: sound.subnet[0] } }],
  };

  const [first, second] = [network("networkInterfaces/b"), network("networkInterfaces/c")];
  await cloud.put(first, dynamic);
  await cloud.put(second, dynamic);
  await cloud.put(first, dynamic);

  const addresses = [first, second].map((id) => cloud.peek(id)?.["ipConfigurations"]);
  expect(addresses).toMatchObject([
    [{ privateIPAddress: "172.16.1.5" }],
    [{ privateIPAddress: "172.16.1.6" }],
  ]);
});
