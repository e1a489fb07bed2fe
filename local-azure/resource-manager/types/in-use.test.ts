import { build, newCloud, refusedBy } from "../fixture";
import { Kind, sound } from "../sample";

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
  await build(cloud);

  expect(await refusedBy(cloud.delete(sound[kind][0]))).toMatch(new RegExp(`^${code}:`));
});

it("drops rules that a PUT of their group leaves out", async () => {
  const { cloud } = newCloud();
  await build(cloud, "rule");

  await cloud.put(...sound.securityGroup);

  expect(cloud.peek(sound.rule[0])).toBeUndefined();
});

it("refuses a PUT of a network that leaves out a subnet in use", async () => {
  const { cloud } = newCloud();
  await build(cloud, "nic");

  expect(await refusedBy(cloud.put(...sound.vnet))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("keeps the rules and subnets that a PUT names", async () => {
  const { cloud } = newCloud();
  await build(cloud);
  const [group, vnet] = [cloud.peek(sound.securityGroup[0])!, cloud.peek(sound.vnet[0])!];

  await cloud.put(sound.securityGroup[0], {
    ...sound.securityGroup[1],
    securityRules: group["securityRules"],
  });
  await cloud.put(sound.vnet[0], { ...sound.vnet[1], subnets: vnet["subnets"] });

  expect(cloud.peek(sound.rule[0])).toMatchObject(sound.rule[1]);
  expect(cloud.peek(sound.subnet[0])).toMatchObject(sound.subnet[1]);
});
