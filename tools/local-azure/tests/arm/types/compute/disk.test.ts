import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { valid, withChange } from "../../../support/arm/valid-resources";

it("puts a disk that is in every zone into none of them", async () => {
  const { arm } = newArm();
  await createResources(arm, "disk");
  const sku = { name: "StandardSSD_ZRS" };
  const put = (name: string, change: object) =>
    refusedBy(arm.put(`${valid.disk[0]}-${name}`, withChange("disk", { sku, ...change })));

  expect(await put("one", {})).toMatch(
    /^OperationNotAllowed: A disk with sku 'StandardSSD_ZRS' cannot be created in an availability zone/,
  );
  expect(await put("every", { zones: undefined })).toBe("not refused");
});

it("makes no disk that is in every zone in a region that has none", async () => {
  const { arm } = newArm();
  await createResources(arm, "disk");
  const put = (name: string) => {
    const change = { location: "centralus", sku: { name }, zones: undefined };
    return refusedBy(arm.put(`${valid.disk[0]}-${name}`, withChange("disk", change)));
  };

  expect(await put("Premium_ZRS")).toMatch(/^InvalidParameter: SKU Premium_ZRS is not available/);
  expect(await put("Premium_LRS")).toBe("not refused");
});
