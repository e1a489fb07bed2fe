import { readFileSync } from "node:fs";

import { ResourceManager } from "../../../../arm/resource-manager";
import { Faults } from "../../../../arm/faults/faults";
import { Body } from "../../../../arm/resources/resource";
import {
  createResources,
  newArm,
  ManualClock,
  refusalOf,
  refusedBy,
} from "../../../support/arm/fixture";
import { withChange, compute, group, network, valid } from "../../../support/arm/valid-resources";

const [id, body] = valid.machine;
const key = body.osProfile.linuxConfiguration.ssh.publicKeys[0];
const signIn = (publicKeys: object[]) => ({ linuxConfiguration: { ssh: { publicKeys } } });
const nic = (name: string) => ({
  networkProfile: { networkInterfaces: [{ id: network(`networkInterfaces/${name}`) }] },
});
const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/none`;

it.each<[flaw: string, change: Body, code: string]>([
  ["two zones", { zones: ["1", "2"] }, "ResourceCannotHaveMultipleZonesSpecified"],
  [
    "a size that there is not",
    { hardwareProfile: { vmSize: "Standard_Z9" } },
    "InvalidParameter: The value Standard_Z9",
  ],
  [
    "a size barred in the zone",
    { hardwareProfile: { vmSize: "Standard_D2as_v5" }, zones: ["3"] },
    "SkuNotAvailable: .*zones '3'",
  ],
  [
    "an Arm size and an x64 image",
    { hardwareProfile: { vmSize: "Standard_D2ps_v5" } },
    "BadRequest: .*CPU Architecture of 'Arm64'",
  ],
  [
    "a Premium disk and a size that takes none",
    { hardwareProfile: { vmSize: "Standard_D2_v5" } },
    "InvalidParameter: .*storage account type Premium_LRS",
  ],
  [
    "an old size and a Gen2 image",
    { hardwareProfile: { vmSize: "Standard_D2_v3" } },
    "BadRequest: .*Hypervisor Generation",
  ],
  [
    "an image that there is not",
    { storageProfile: { imageReference: { offer: "UbuntuServer" } } },
    "PlatformImageNotFound",
  ],
  [
    "an interface that is not there",
    nic("none"),
    "NotFound: Resource .*/networkInterfaces/none not found",
  ],
  [
    "no interface",
    { networkProfile: { networkInterfaces: [] } },
    "InvalidParameter: .*networkInterfaces",
  ],
  [
    "an identity that is not there",
    { identity: { userAssignedIdentities: [identity] } },
    "FailedIdentityOperation",
  ],
  [
    "customData beyond 64 KiB",
    { osProfile: { customData: "A".repeat(87_384) } },
    "InvalidParameter: Custom data",
  ],
  [
    "customData that is no base64",
    { osProfile: { customData: "#cloud-config" } },
    "InvalidParameter: Custom data",
  ],
  [
    "the user root",
    { osProfile: { adminUsername: "root" } },
    "InvalidParameter: The Admin Username",
  ],
  ["no way to sign in", { osProfile: signIn([]) }, "InvalidParameter: Authentication"],
  [
    "a key elsewhere",
    { osProfile: signIn([{ ...key, path: "/root/key" }]) },
    "InvalidParameter: Destination path",
  ],
  [
    "a long host name",
    { osProfile: { computerName: "a".repeat(65) } },
    "InvalidParameter: Linux host name",
  ],
])("refuses a machine with %s", async (_, change, code) => {
  expect(await refusalOf("machine", change)).toMatch(new RegExp(`^${code}`));
});

it("gives an interface with accelerated networking to no machine whose size has none", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  await arm.put(valid.nic[0], withChange("nic", { enableAcceleratedNetworking: true }));

  const refusal = await refusedBy(
    arm.put(id, withChange("machine", { hardwareProfile: { vmSize: "Standard_B2s" } })),
  );

  expect(refusal).toMatch(/^VMSizeIsNotPermittedToEnableAcceleratedNetworking/);
  expect(await refusedBy(arm.put(id, body))).toBe("not refused");
});

it("leaves a machine its identity when a PUT names none, and takes it away when asked to", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const own = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/zoned`;
  await arm.put(own, { location: "westeurope" });
  const identity = { type: "UserAssigned", userAssignedIdentities: { [own]: {} } };
  await arm.put(id, withChange("machine", { identity }));

  await arm.put(id, valid.machine[1]);
  const kept = arm.peek(id)?.["identity"];
  await arm.put(id, withChange("machine", { identity: { type: "None" } }));

  expect(kept).toMatchObject({ type: "UserAssigned", userAssignedIdentities: { [own]: {} } });
  expect(arm.peek(id)).not.toHaveProperty("identity");
});

it("creates the machine, and restarts it when its size changed", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");

  await arm.put(id, withChange("machine", { tags: { a: "b" } }));
  await arm.put(id, withChange("machine", { hardwareProfile: { vmSize: "Standard_D4s_v5" } }));

  expect(machines.calls).toEqual(["create cp-1 172.16.1.4", "restart cp-1 Standard_D4s_v5"]);
});

it("returns neither customData nor password, and does not store the password", async () => {
  const { arm, args } = newArm();
  await createResources(arm, "nic");
  await arm.put(id, withChange("machine", { osProfile: { adminPassword: "pa55word" } }));

  const shown = JSON.stringify(arm.peek(id));
  const kept = readFileSync(args.stateFile, "utf8");

  expect(shown).not.toContain(body.osProfile.customData);
  expect(shown + kept).not.toContain("pa55word");
  expect(kept).toContain(body.osProfile.customData);
});

it("deletes disk and interface according to their deleteOption", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);

  await arm.delete(id);

  expect(machines.calls.at(-1)).toBe("remove cp-1");
  expect(arm.peek(compute("disks/cp-1-os"))).toBeUndefined();
  expect(arm.peek(valid.nic[0])).not.toHaveProperty("macAddress");
  await arm.put(
    id,
    withChange("machine", {
      storageProfile: { osDisk: { deleteOption: undefined } },
      networkProfile: { networkInterfaces: [{ id: valid.nic[0], deleteOption: "Delete" }] },
    }),
  );
  await arm.delete(id);
  expect(arm.peek(compute("disks/cp-1-os"))).toMatchObject({ diskState: "Unattached" });
  expect(arm.peek(valid.nic[0])).toBeUndefined();
});

it("reserves the interface of a machine whose creation failed for 180 seconds", async () => {
  const clock = new ManualClock();
  const faults = new Faults([
    { method: "PUT", id: "virtualMachines/cp-1$", code: "ZonalAllocationFailed", accepted: true },
  ]);
  const { arm } = newArm({ clock, faults });
  await createResources(arm, "nic");

  expect(await refusedBy(arm.put(...valid.machine))).toMatch(/^ZonalAllocationFailed/);
  expect(arm.peek(id)).toMatchObject({ provisioningState: "Failed" });
  await arm.delete(id);
  const other = arm.put(
    compute("virtualMachines/b"),
    withChange("machine", { storageProfile: { osDisk: { name: "b" } } }),
  );
  expect(await refusedBy(other)).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.delete(valid.nic[0]))).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.put(...valid.machine))).toBe("not refused");
  await arm.delete(id);
  clock.advance(181);
  expect(await refusedBy(arm.delete(valid.nic[0]))).toBe("not refused");
});

it("keeps data disks when a PUT has none, and detaches those that it leaves out", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const disk = compute("disks/pv");
  await arm.put(disk, {
    location: "westeurope",
    zones: ["1"],
    creationData: { createOption: "Empty" },
    diskSizeGB: 8,
  });
  const dataDisks = [{ lun: 0, createOption: "Attach", managedDisk: { id: disk } }];
  await arm.put(id, withChange("machine", { storageProfile: { dataDisks } }));

  await arm.put(...valid.machine);
  expect(arm.peek(id)).toMatchObject({ storageProfile: { dataDisks } });
  expect(await refusedBy(arm.delete(disk))).toMatch(/^OperationNotAllowed: Disk pv is attached/);

  await arm.put(id, withChange("machine", { storageProfile: { dataDisks: [] } }));
  expect(await refusedBy(arm.delete(disk))).toBe("not refused");
});

/** A disk of its own, and a data disk of the machine that is this one. */
async function dataDisk(arm: ResourceManager, lun: number, more: object) {
  const disk = compute(`disks/pv-${lun}`);
  const creationData = { createOption: "Empty" };
  await arm.put(disk, { location: "westeurope", creationData, diskSizeGB: 8, ...more });
  return { lun, createOption: "Attach", managedDisk: { id: disk } };
}

it.each([
  { what: "of its zone", disk: { zones: ["1"] }, answer: /^not refused/ },
  {
    what: "of another zone",
    disk: { zones: ["2"] },
    answer: /^BadRequest: .* not in the same zone as the VM. VM zone: '1'. Disk zone: '2'/,
  },
  { what: "of no zone", disk: {}, answer: /^BadRequest: .* not in zone '1'/ },
  { what: "of every zone", disk: { sku: { name: "Premium_ZRS" } }, answer: /^not refused/ },
])("attaches a disk $what as Azure does", async ({ disk, answer }) => {
  const { arm } = newArm();
  await createResources(arm);
  const dataDisks = [await dataDisk(arm, 0, disk)];

  const put = arm.put(id, withChange("machine", { storageProfile: { dataDisks } }));

  expect(await refusedBy(put)).toMatch(answer);
});

it("takes as many disks as its size does, and no smaller size with more", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const dataDisks: object[] = [];
  for (const lun of [0, 1, 2, 3, 4]) dataDisks.push(await dataDisk(arm, lun, { zones: ["1"] }));
  const put = (vmSize: string, storageProfile = {}) =>
    refusedBy(arm.put(id, withChange("machine", { hardwareProfile: { vmSize }, storageProfile })));
  const tooMany = /^OperationNotAllowed: The maximum number of data disks .* is 4/;

  expect(await put("Standard_D2s_v5", { dataDisks })).toMatch(tooMany);
  expect(await put("Standard_D4s_v5", { dataDisks })).toBe("not refused");
  expect(await put("Standard_D2s_v5")).toMatch(tooMany);
});
