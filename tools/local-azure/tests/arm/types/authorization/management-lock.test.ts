import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { group } from "../../../support/arm/valid-resources";

const lockOn = (scope: string) => `${scope}/providers/Microsoft.Authorization/locks/keep`;
const guard = `${group}/providers/Microsoft.Network/networkSecurityGroups/guard`;
const other = `${group}/providers/Microsoft.Network/networkSecurityGroups/other`;
const location = "westeurope";

async function withLock(scope: string, level: string) {
  const { arm } = newArm();
  await createResources(arm, "group");
  await arm.put(guard, { location });
  await arm.put(lockOn(scope), { level });
  return arm;
}

it.each([
  ["CanNotDelete", group],
  ["ReadOnly", group],
  ["CanNotDelete", guard],
])("refuses a deletion under a lock %s at %s, of the group too", async (level, scope) => {
  const arm = await withLock(scope, level);

  for (const id of [guard, group]) {
    expect(await refusedBy(arm.delete(id))).toMatch(
      `The scope '${id}' cannot perform delete operation because following scope(s) are locked: '${scope}'`,
    );
  }
});

it("refuses a change, of tags too, and a new resource under ReadOnly alone", async () => {
  const strict = await withLock(group, "ReadOnly");
  const mild = await withLock(group, "CanNotDelete");
  const changes = [
    (arm: typeof strict) => arm.put(guard, { location, tags: { a: "b" } }),
    (arm: typeof strict) => arm.patch(guard, { tags: { a: "c" } }),
    (arm: typeof strict) => arm.put(other, { location }),
  ];

  for (const change of changes) {
    expect(await refusedBy(change(strict))).toMatch(/ScopeLocked.*cannot perform write operation/);
    await expect(change(mild)).resolves.toBeDefined();
  }
});

it("holds where it is, and not beside it", async () => {
  const arm = await withLock(guard, "ReadOnly");

  await expect(arm.put(other, { location })).resolves.toBeDefined();
});

it("is taken away itself, and then nothing is refused", async () => {
  const arm = await withLock(group, "ReadOnly");

  await arm.delete(lockOn(group));

  await expect(arm.delete(guard)).resolves.toMatchObject({ status: 200 });
});

it("has one of two levels", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");

  expect(await refusedBy(arm.put(lockOn(group), { level: "Some" }))).toMatch(/InvalidLockLevel/);
});
