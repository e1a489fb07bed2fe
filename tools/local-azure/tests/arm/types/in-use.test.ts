import { createResources, newCloud, refusedBy } from "../../support/arm/fixture";
import { Kind, valid } from "../../support/arm/valid-resources";

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
  const { cloud } = newCloud();
  await createResources(cloud);

  expect(await refusedBy(cloud.delete(valid[kind][0]))).toMatch(new RegExp(`^${code}:`));
});

it("deletes rules that a PUT of their group leaves out", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "rule");

  await cloud.put(...valid.securityGroup);

  expect(cloud.peek(valid.rule[0])).toBeUndefined();
});

it("refuses a PUT of a network that leaves out a subnet in use", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "nic");

  expect(await refusedBy(cloud.put(...valid.vnet))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("keeps the rules and subnets that a PUT names", async () => {
  const { cloud } = newCloud();
  await createResources(cloud);
  const [group, vnet] = [cloud.peek(valid.securityGroup[0])!, cloud.peek(valid.vnet[0])!];

  await cloud.put(valid.securityGroup[0], {
    ...valid.securityGroup[1],
    securityRules: group["securityRules"],
  });
  await cloud.put(valid.vnet[0], { ...valid.vnet[1], subnets: vnet["subnets"] });

  expect(cloud.peek(valid.rule[0])).toMatchObject(valid.rule[1]);
  expect(cloud.peek(valid.subnet[0])).toMatchObject(valid.subnet[1]);
});
