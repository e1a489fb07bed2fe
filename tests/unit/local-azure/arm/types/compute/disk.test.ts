import { createResources, newCloud, refusedBy } from "../../../../../support/arm/fixture";
import { valid, withChange } from "../../../../../support/arm/valid-resources";

it("puts a disk that is in every zone into none of them", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "disk");
  const sku = { name: "StandardSSD_ZRS" };
  const put = (name: string, change: object) =>
    refusedBy(cloud.put(`${valid.disk[0]}-${name}`, withChange("disk", { sku, ...change })));

  expect(await put("one", {})).toMatch(
    /^OperationNotAllowed: A disk with sku 'StandardSSD_ZRS' cannot be created in an availability zone/,
  );
  expect(await put("every", { zones: undefined })).toBe("not refused");
});
