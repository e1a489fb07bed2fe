import { createResources, newArm, refusedBy } from "../../support/arm/fixture";
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
  const { arm } = newArm();
  await createResources(arm);

  expect(await refusedBy(arm.delete(valid[kind][0]))).toMatch(new RegExp(`^${code}:`));
});

it("deletes rules that a PUT of their group leaves out", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  await arm.put(...valid.securityGroup);

  expect(arm.peek(valid.rule[0])).toBeUndefined();
});

it("refuses a PUT of a network that leaves out a subnet in use", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");

  expect(await refusedBy(arm.put(...valid.vnet))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("keeps the rules and subnets that a PUT names", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const [group, vnet] = [arm.peek(valid.securityGroup[0])!, arm.peek(valid.vnet[0])!];

  await arm.put(valid.securityGroup[0], {
    ...valid.securityGroup[1],
    securityRules: group["securityRules"],
  });
  await arm.put(valid.vnet[0], { ...valid.vnet[1], subnets: vnet["subnets"] });

  expect(arm.peek(valid.rule[0])).toMatchObject(valid.rule[1]);
  expect(arm.peek(valid.subnet[0])).toMatchObject(valid.subnet[1]);
});
