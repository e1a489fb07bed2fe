import type { ResourceManager } from "../../../../arm/resource-manager";
import { createResources, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itRefuses } from "../../../support/arm/input-tables";
import { compute, group, valid, withChange } from "../../../support/arm/valid-resources";

const [setId] = valid.set;
const [diskId] = valid.disk;
const [machineId] = valid.machine;
const other = compute("diskEncryptionSets/other");
const inMachine = "storageProfile.osDisk.managedDisk.diskEncryptionSet";

itRefuses("set", [
  [{ location: "nowhere" }, "LocationNotAvailableForResourceType"],
  [{ activeKey: undefined }, "InvalidParameter: .*activeKey"],
  [{ "activeKey.keyUrl": undefined }, "InvalidParameter: .*activeKey.keyUrl"],
  [{ identity: undefined }, "InvalidParameter: .*identity"],
]);
itLimits("set", [
  [
    "encryptionType",
    [
      "EncryptionAtRestWithCustomerKey",
      "EncryptionAtRestWithPlatformAndCustomerKeys",
      "ConfidentialVmEncryptedWithCustomerKey",
    ],
    ["EncryptionAtRestWithPlatformKey", "mine"],
    "InvalidParameter: .*encryptionType",
  ],
]);

it("has an identity, which stays, and the customer's key unless it is said otherwise", async () => {
  const { arm } = newArm();
  await createResources(arm, "set");
  const { identity, encryptionType } = arm.peek(setId)!;

  await arm.put(setId, withChange("set", { rotationToLatestKeyVersionEnabled: true }));

  expect(identity).toMatchObject({ type: "SystemAssigned", principalId: expect.any(String) });
  expect(encryptionType).toBe("EncryptionAtRestWithCustomerKey");
  expect(arm.peek(setId)).toMatchObject({ identity, rotationToLatestKeyVersionEnabled: true });
});

/** All that a machine needs, and a second set. */
async function withSets(change: object = {}): Promise<ResourceManager> {
  const { arm } = newArm();
  await createResources(arm, "nic");
  await arm.put(other, withChange("set", { ...change }));
  return arm;
}

const encryptedBy = (set: string, more: object = {}) =>
  withChange("disk", { encryption: { diskEncryptionSetId: set, ...more } });
const machineBy = (set: string) => withChange("machine", { [inMachine]: { id: set } });

it("encrypts a disk, its snapshot and a machine's disk in the way of the set, and is kept by them", async () => {
  const encryptionType = "EncryptionAtRestWithPlatformAndCustomerKeys";
  const arm = await withSets({ encryptionType });
  const snapshot = compute("snapshots/of-data");
  const creationData = { createOption: "Copy", sourceResourceId: diskId };

  await arm.put(diskId, encryptedBy(other));
  await arm.put(snapshot, { location: "westeurope", creationData });
  await arm.put(machineId, machineBy(other));

  const encryption = { diskEncryptionSetId: other, type: encryptionType };
  for (const id of [diskId, snapshot, compute("disks/cp-1-os")]) {
    expect([id, arm.peek(id)!["encryption"]]).toEqual([id, encryption]);
  }
  for (const user of [diskId, snapshot, machineId]) {
    expect(await refusedBy(arm.delete(other))).toMatch(/^OperationNotAllowed: .*other is used by /);
    await arm.delete(user);
  }
  expect(await refusedBy(arm.delete(other))).toBe("not refused");
});

it("leaves a disk that names none to Azure's keys", async () => {
  const { arm } = newArm();
  await createResources(arm, "disk");

  expect(arm.peek(diskId)!["encryption"]).toEqual({ type: "EncryptionAtRestWithPlatformKey" });
});

it.each([
  ["that is not there", undefined, /^NotFound: Resource .*other not found/],
  ["of another region", { location: "northeurope" }, /^NotFound: Resource .*other not found/],
  [
    "of confidential machines",
    { encryptionType: "ConfidentialVmEncryptedWithCustomerKey" },
    /^BadRequest: .*other is for confidential/,
  ],
] as const)("encrypts no disk and no machine's by a set %s", async (_, change, says) => {
  const arm = await withSets(change);
  if (change === undefined) await arm.delete(other);

  expect(await refusedBy(arm.put(diskId, encryptedBy(other)))).toMatch(says);
  expect(await refusedBy(arm.put(machineId, machineBy(other)))).toMatch(says);
  expect(arm.peek(machineId)).toBeUndefined();
});

it("encrypts no disk in another way than the set's", async () => {
  const arm = await withSets();
  const type = "EncryptionAtRestWithPlatformAndCustomerKeys";

  expect(await refusedBy(arm.put(diskId, encryptedBy(other, { type })))).toMatch(
    /^InvalidParameter: The encryption type .*PlatformAndCustomerKeys is not that of .*other/,
  );
});

it("changes the set of a machine's disk only while that is deallocated, and never by the machine", async () => {
  const arm = await withSets();
  await arm.put(machineId, machineBy(setId));
  const osDisk = compute("disks/cp-1-os");
  const { location, zones, creationData } = arm.peek(osDisk)!;
  const wanted = { location, zones, creationData, encryption: { diskEncryptionSetId: other } };

  expect(await refusedBy(arm.put(machineId, machineBy(other)))).toMatch(
    /^PropertyChangeNotAllowed: .*osDisk\.managedDisk\.diskEncryptionSet/,
  );
  expect(await refusedBy(arm.put(osDisk, wanted))).toMatch(/^OperationNotAllowed: .*deallocated/);
  await arm.power(machineId, "deallocate", { perform: () => undefined });
  expect(await refusedBy(arm.put(osDisk, wanted))).toBe("not refused");
});

it("is in another group than what uses it, if anybody likes", async () => {
  const { arm } = newArm();
  await createResources(arm, "disk");
  const keys = `${group}-keys`;
  const there = setId.replace(group, keys);
  await arm.put(keys, { location: "westeurope" });
  await arm.put(there, valid.set[1]);

  expect(await refusedBy(arm.put(`${diskId}-2`, encryptedBy(there)))).toBe("not refused");
});
