import { createResources } from "../../support/arm/fixture";
import { all, soon, withSdks } from "../../support/arm/official-sdks";
import { network as networkId, valid } from "../../support/arm/valid-resources";

const [group, vnet] = ["zoned", "vnet"];

it("says how many addresses of a subnet are taken, of those that Azure does not keep", () =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm, "nic");

    const usages = await all(network.virtualNetworks.listUsage(group, vnet));

    expect(usages).toMatchObject([{ currentValue: 1, limit: 251, unit: "Count" }]);
    expect(usages[0]!.id).toMatch(/\/subnets\/nodes-1$/);
  }));

it.each([
  ["172.16.1.5", true, []],
  // Of an interface, and Azure's own.
  ["172.16.1.4", false, ["172.16.1.5", "172.16.1.6", "172.16.1.7", "172.16.1.8", "172.16.1.9"]],
  ["172.16.1.1", false, ["172.16.1.5", "172.16.1.6", "172.16.1.7", "172.16.1.8", "172.16.1.9"]],
])("says whether %s is free, and otherwise which are", (address, available, others) =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm, "nic");

    expect(
      await network.virtualNetworks.checkIPAddressAvailability(group, vnet, address),
    ).toMatchObject({ available, availableIPAddresses: others });
  }),
);

it("takes roles that are assigned at a network or a security group for no subnets and no rules", () =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm, "nic");
    const name =
      "providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000001";
    const owners = [networkId("virtualNetworks/vnet"), networkId("networkSecurityGroups/nsg")];
    for (const owner of owners) await arm.put(`${owner}/${name}`, valid.assignment[1]);

    const found = await network.virtualNetworks.get(group, vnet);
    await network.virtualNetworks.beginCreateOrUpdateAndWait(group, vnet, found, soon);
    const { securityRules } = await network.networkSecurityGroups.get(group, "nsg");

    expect(found.subnets).toHaveLength(1);
    expect(securityRules).toHaveLength(1);
    expect(await all(network.virtualNetworks.listUsage(group, vnet))).toHaveLength(1);
    for (const owner of owners) expect(arm.peek(`${owner}/${name}`)).toBeDefined();
  }));

it("refuses an address that is in no subnet", () =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm, "nic");

    await expect(
      network.virtualNetworks.checkIPAddressAvailability(group, vnet, "10.0.0.4"),
    ).rejects.toMatchObject({ code: "PrivateIPAddressNotInAnySubnet" });
  }));

it("has no answer for a network that is not there", () =>
  withSdks(async ({ network }, { arm }) => {
    await createResources(arm, "nic");

    await expect(all(network.virtualNetworks.listUsage(group, "other"))).rejects.toMatchObject({
      code: "ResourceNotFound",
    });
  }));
