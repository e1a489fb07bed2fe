import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itRefuses } from "../../../support/arm/input-tables";
import { group, valid, withChange } from "../../../support/arm/valid-resources";

const [id] = valid.registry;

itRefuses("registry", [
  [{ location: "nowhere" }, "LocationNotAvailableForResourceType"],
  [{ sku: undefined }, "InvalidParameter: .*sku"],
  [{ "sku.name": undefined }, "InvalidParameter: .*sku.name"],
]);
itLimits("registry", [
  ["sku.name", ["Basic", "Standard"], ["Classic"], "InvalidParameter: .*sku.name"],
  [
    "roleAssignmentMode",
    ["AbacRepositoryPermissions", "LegacyRegistryPermissions"],
    ["rbac-abac"],
    "InvalidParameter: .*roleAssignmentMode",
  ],
]);

it("is reached by its name, and keeps how its roles count", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  await arm.put(id, withChange("registry", { roleAssignmentMode: "AbacRepositoryPermissions" }));

  await arm.put(id, withChange("registry", { adminUserEnabled: true }));

  expect(arm.peek(id)).toMatchObject({
    loginServer: "zonedimages.azurecr.io",
    roleAssignmentMode: "AbacRepositoryPermissions",
    adminUserEnabled: true,
  });
});

it("has a name that no other registry has", async () => {
  const { arm } = newArm();
  await createResources(arm, "registry");
  const other = `${group}/providers/Microsoft.ContainerRegistry/registries/`;

  await arm.put(group.replace(/zoned$/, "other"), { location: "westeurope" });
  const elsewhere = other.replace("/zoned/", "/other/");
  expect(await refusedBy(arm.put(`${elsewhere}ZonedImages`, withChange("registry", {})))).toMatch(
    /^AlreadyInUse: .*ZonedImages\.azurecr\.io/,
  );
});
