import { readFileSync } from "node:fs";

import { Faults } from "../faults";
import { build, newCloud, PlayedClock, refusalOf, refusedBy } from "../fixture";
import { Body } from "../resource-type";
import { changed, compute, group, network, sound } from "../sample";

const [id, body] = sound.machine;
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

it("tells the machines what was created, and restarts one whose size changed", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud, "machine");

  await cloud.put(id, changed("machine", { tags: { a: "b" } }));
  await cloud.put(id, changed("machine", { hardwareProfile: { vmSize: "Standard_D4s_v5" } }));

  expect(machines.told).toEqual(["create cp-1 172.16.1.4", "restart cp-1 Standard_D4s_v5"]);
});

it("shows neither customData nor password, and keeps no password", async () => {
  const { cloud, args } = newCloud();
  await build(cloud, "nic");
  await cloud.put(id, changed("machine", { osProfile: { adminPassword: "pa55word" } }));

  const shown = JSON.stringify(cloud.peek(id));
  const kept = readFileSync(args.stateFile, "utf8");

  expect(shown).not.toContain(body.osProfile.customData);
  expect(shown + kept).not.toContain("pa55word");
  expect(kept).toContain(body.osProfile.customData);
});

it("takes disk and interface along as their deleteOption says", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud);

  await cloud.delete(id);

  expect(machines.told.at(-1)).toBe("remove cp-1");
  expect(cloud.peek(compute("disks/cp-1-os"))).toBeUndefined();
  expect(cloud.peek(sound.nic[0])).not.toHaveProperty("macAddress");
  await cloud.put(
    id,
    changed("machine", {
      storageProfile: { osDisk: { deleteOption: undefined } },
      networkProfile: { networkInterfaces: [{ id: sound.nic[0], deleteOption: "Delete" }] },
    }),
  );
  await cloud.delete(id);
  expect(cloud.peek(compute("disks/cp-1-os"))).toMatchObject({ diskState: "Unattached" });
  expect(cloud.peek(sound.nic[0])).toBeUndefined();
});

it("keeps the interface of a machine that could not be created, for 180 seconds", async () => {
  const clock = new PlayedClock();
  const faults = new Faults([
    { method: "PUT", id: "virtualMachines/cp-1$", code: "ZonalAllocationFailed", accepted: true },
  ]);
  const { cloud } = newCloud({ clock, faults });
  await build(cloud, "nic");

  expect(await refusedBy(cloud.put(...sound.machine))).toMatch(/^ZonalAllocationFailed/);
  expect(cloud.peek(id)).toMatchObject({ provisioningState: "Failed" });
  await cloud.delete(id);
  const other = cloud.put(
    compute("virtualMachines/b"),
    changed("machine", { storageProfile: { osDisk: { name: "b" } } }),
  );
  expect(await refusedBy(other)).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(cloud.delete(sound.nic[0]))).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(cloud.put(...sound.machine))).toBe("not refused");
  await cloud.delete(id);
  clock.pass(181);
  expect(await refusedBy(cloud.delete(sound.nic[0]))).toBe("not refused");
});
