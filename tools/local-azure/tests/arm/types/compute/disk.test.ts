import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itNeverChanges } from "../../../support/arm/input-tables";
import { valid, withChange } from "../../../support/arm/valid-resources";

itNeverChanges("disk", [
  [{ zones: ["2"] }, "PropertyChangeNotAllowed: Changing property 'zones'"],
  [
    { "creationData.createOption": "Copy" },
    "PropertyChangeNotAllowed: Changing property 'creationData.createOption'",
  ],
  [{ diskSizeGB: 4 }, "OperationNotAllowed: Disk size can only be increased"],
]);

it("puts a disk that is in every zone into none of them", async () => {
  const { arm } = newArm();
  await createResources(arm, "disk");
  const sku = { name: "StandardSSD_ZRS" };
  const put = (name: string, change: object) =>
    refusedBy(arm.put(`${valid.disk[0]}-${name}`, withChange("disk", { sku, ...change })));

  expect(await put("one", {})).toMatch(
    /^OperationNotAllowed: .*StandardSSD_ZRS.* availability zone/,
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
