import { createResources } from "../../support/arm/fixture";
import { all, withSdks } from "../../support/arm/official-sdks";

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
