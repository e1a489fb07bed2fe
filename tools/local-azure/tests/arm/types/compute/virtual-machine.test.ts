import { readFileSync } from "node:fs";

import { ResourceManager } from "../../../../arm/resource-manager";
import { Faults } from "../../../../arm/faults/faults";
import { createResources, ManualClock, newArm, refusedBy } from "../../../support/arm/fixture";
import { itLimits, itNeverChanges, itRefuses } from "../../../support/arm/input-tables";
import { withChange, compute, group, network, valid } from "../../../support/arm/valid-resources";

const [id, body] = valid.machine;
const keys = "osProfile.linuxConfiguration.ssh.publicKeys";
const image = "storageProfile.imageReference";
const osDisk = "storageProfile.osDisk";
const identities = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities`;
const endWith = (notBeforeTimeout: string) => ({
  terminateNotificationProfile: { enable: true, notBeforeTimeout },
});
const notAllowed = (path: string) => `PropertyChangeNotAllowed: Changing property '${path}'`;

const ephemeral = (more: object) => ({
  [`${osDisk}.caching`]: "ReadOnly",
  [`${osDisk}.diffDiskSettings`]: { option: "Local", placement: "ResourceDisk" },
  ...more,
});

itRefuses("machine", [
  [{ zones: ["1", "2"] }, "ResourceCannotHaveMultipleZonesSpecified"],
  [{ "hardwareProfile.vmSize": "Standard_Z9" }, "InvalidParameter: The value Standard_Z9"],
  // Barred in the zone.
  [{ "hardwareProfile.vmSize": "Standard_D2as_v5", zones: ["3"] }, "SkuNotAvailable: .*zones '3'"],
  // An Arm size and an x64 image.
  [{ "hardwareProfile.vmSize": "Standard_D2ps_v5" }, "BadRequest: .*CPU Architecture of 'Arm64'"],
  // Without a word on the controller that is SCSI.
  [
    { "hardwareProfile.vmSize": "Standard_D2s_v6" },
    "InvalidParameter: The VM size 'Standard_D2s_v6' cannot boot with DiskControllerType 'SCSI'",
  ],
  [
    { "storageProfile.diskControllerType": "NVMe" },
    "InvalidParameter: The VM size 'Standard_D2s_v5' cannot boot with DiskControllerType 'NVMe'",
  ],
  [
    {
      "hardwareProfile.vmSize": "Standard_D2s_v6",
      "storageProfile.diskControllerType": "NVMe",
      [image]: {
        publisher: "Canonical",
        offer: "0001-com-ubuntu-server-jammy",
        sku: "22_04-lts-gen2",
        version: "latest",
      },
    },
    "InvalidParameter: The VM size 'Standard_D2s_v6' cannot boot with OS image or disk",
  ],
  // A Premium disk and a size that takes none.
  [
    { "hardwareProfile.vmSize": "Standard_D2_v5" },
    "InvalidParameter: .*storage account type Premium_LRS",
  ],
  // An old size and a Gen2 image.
  [{ "hardwareProfile.vmSize": "Standard_D2_v3" }, "BadRequest: .*Hypervisor Generation"],
  [{ [`${image}.offer`]: "UbuntuServer" }, "PlatformImageNotFound"],
  [{ [`${image}.sku`]: "server-gen1" }, "BadRequest: Use of TrustedLaunch"],
  [
    { "networkProfile.networkInterfaces.0.id": network("networkInterfaces/none") },
    "NotFound: Resource .*/networkInterfaces/none not found",
  ],
  [
    { [`${osDisk}.diskSizeGB`]: 29 },
    "OperationNotAllowed: The specified disk size 29 GB is smaller than the size of the corresponding disk in the VM image: 30 GB",
  ],
  [{ "networkProfile.networkInterfaces": [] }, "InvalidParameter: .*networkInterfaces"],
  [{ identity: { userAssignedIdentities: [`${identities}/none`] } }, "FailedIdentityOperation"],
  [{ "osProfile.customData": "#cloud-config" }, "InvalidParameter: Custom data"],
  [{ [keys]: [] }, "InvalidParameter: Authentication"],
  [{ [`${keys}.0.path`]: "/root/key" }, "InvalidParameter: Destination path"],
  [{ evictionPolicy: "Delete" }, "BadRequest: Eviction policy can be set only"],
  [{ billingProfile: { maxPrice: 1 } }, "BadRequest: Max price is supported only"],
  [{ priority: "Spot", billingProfile: { maxPrice: 0 } }, "BadRequest: Invalid max price"],
  [
    { priority: "Spot", billingProfile: { maxPrice: 0.001 } },
    "OperationNotAllowed: .*'0.001 USD' is lower than the current spot price",
  ],
  [
    { priority: "Spot", "hardwareProfile.vmSize": "Standard_B2s" },
    "BadRequest: .*not supported for this VM size Standard_B2s",
  ],
  [
    { [`${osDisk}.diffDiskSettings`]: { option: "Local" }, [`${osDisk}.caching`]: "ReadWrite" },
    "InvalidParameter: Ephemeral OS disks are supported with caching 'ReadOnly' only",
  ],
  // 1 GiB of the 75 is Trusted Launch's.
  [
    ephemeral({ "hardwareProfile.vmSize": "Standard_D2ds_v5", [`${osDisk}.diskSizeGB`]: 75 }),
    "NotSupported: OS disk of Ephemeral VM with size greater than 74 GB is not allowed for VM size Standard_D2ds_v5 " +
      "when the DiffDiskPlacement is ResourceDisk",
  ],
  [ephemeral({}), "NotSupported: .*greater than 0 GB is not allowed for VM size Standard_D2s_v5"],
  [
    ephemeral({ "hardwareProfile.vmSize": "Standard_D2ds_v5", priority: "Spot" }),
    "InvalidParameter: Eviction policy 'Deallocate' is not supported",
  ],
  // Which nobody has registered.
  [{ "securityProfile.encryptionAtHost": true }, "InvalidParameter: .*EncryptionAtHost"],
  [{ "securityProfile.encryptionAtHost": false }, "InvalidParameter: .*EncryptionAtHost"],
]);
itLimits("machine", [
  [
    "osProfile.customData",
    ["A".repeat(87_380)],
    ["A".repeat(87_384)],
    "InvalidParameter: Custom data",
  ],
  [
    "osProfile.computerName",
    ["a".repeat(64), "cp-1.example"],
    ["a".repeat(65), "cp_1", "-cp"],
    "InvalidParameter: Linux host name",
  ],
  [
    "osProfile.adminUsername",
    ["azureuser"],
    ["root", "admin", "administrator", "Root", "user", "test", "guest"],
    "InvalidParameter: The Admin Username",
  ],
  [
    "scheduledEventsProfile",
    ["PT5M", "PT15M"].map(endWith),
    ["PT4M", "PT16M", "5m"].map(endWith),
    "InvalidParameter: .*notBeforeTimeout",
  ],
  [
    `${keys}.0.keyData`,
    ["ssh-rsa AAAAB3Nz", "ssh-ed25519 AAAAC3Nz"],
    ["ssh-dss AAAAB3Nz", "AAAAB3Nz"],
    "InvalidParameter: The value of parameter linuxConfiguration.ssh.publicKeys.keyData",
  ],
]);
itNeverChanges("machine", [
  [{ zones: ["2"] }, notAllowed("zones")],
  [{ "osProfile.customData": "Iw==" }, notAllowed("osProfile.customData")],
  [{ "osProfile.computerName": "other" }, notAllowed("osProfile.computerName")],
  [
    {
      "osProfile.adminUsername": "other",
      [`${keys}.0.path`]: "/home/other/.ssh/authorized_keys",
    },
    notAllowed("osProfile.adminUsername"),
  ],
  [{ [`${keys}.0.keyData`]: "ssh-rsa AAAA" }, notAllowed("linuxConfiguration.ssh.publicKeys")],
  [{ [`${image}.id`]: "/images/a" }, notAllowed("imageReference")],
  [{ [`${image}.sku`]: "minimal" }, notAllowed("imageReference")],
  [{ [`${image}.version`]: "24.04.202604160" }, notAllowed("imageReference")],
  [
    { [`${image}.offer`]: "0001-com-ubuntu-server-jammy", [`${image}.sku`]: "22_04-lts-gen2" },
    notAllowed("imageReference"),
  ],
  [{ [`${osDisk}.name`]: "other" }, notAllowed("osDisk.name")],
  [
    { [`${osDisk}.managedDisk.storageAccountType`]: "Standard_LRS" },
    notAllowed("osDisk.managedDisk.storageAccountType"),
  ],
  [{ [`${osDisk}.diskSizeGB`]: 128 }, "OperationNotAllowed: Disk resizing"],
  [{ "securityProfile.securityType": "Standard" }, notAllowed("securityProfile.securityType")],
  [{ availabilitySet: { id: "/sets/a" } }, notAllowed("availabilitySet")],
  [{ priority: "Spot" }, notAllowed("priority")],
]);

it("has a quota of their own for spot machines, and keeps their policy and price as they are", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const spot = (more: object) => arm.put(id, withChange("machine", { priority: "Spot", ...more }));

  arm.quotas.set({ lowPriorityCores: 1 });
  expect(await refusedBy(spot({}))).toMatch(/^OperationNotAllowed: .*approved LowPriorityCores/);
  arm.quotas.set({ cores: 0 });
  expect(await refusedBy(spot({}))).toBe("not refused");
  expect(arm.peek(id)).toMatchObject({
    evictionPolicy: "Deallocate",
    billingProfile: { maxPrice: -1 },
  });

  expect(await refusedBy(spot({ evictionPolicy: "Delete" }))).toMatch(notAllowed("evictionPolicy"));
  expect(await refusedBy(spot({ billingProfile: { maxPrice: 1 } }))).toMatch(
    /^OperationNotAllowed: Max price change is not allowed/,
  );
});

it("switches no machine off whose OS disk is its host's, and moves that to no other place", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const size = { "hardwareProfile.vmSize": "Standard_D2ds_v5" };
  const put = (more: object) => arm.put(id, withChange("machine", ephemeral({ ...size, ...more })));
  await put({});

  for (const action of ["powerOff", "deallocate"] as const) {
    const switched = arm.power(id, action, { perform: () => undefined });
    expect(await refusedBy(switched)).toMatch(/^OperationNotAllowed: .*ephemeral/);
  }
  const elsewhere = { option: "Local", placement: "CacheDisk" };
  expect(await refusedBy(put({ [`${osDisk}.diffDiskSettings`]: elsewhere }))).toMatch(
    notAllowed("osDisk.diffDiskSettings"),
  );
});

it("takes a user whose name only begins as one that Azure keeps", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const user = withChange("machine", {
    "osProfile.adminUsername": "administrators",
    [`${keys}.0.path`]: "/home/administrators/.ssh/authorized_keys",
  });

  expect(await refusedBy(arm.put(id, user))).toBe("not refused");
});

it("stays until it has approved its end, if it is told of that and asks", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);
  await arm.put(id, withChange("machine", { scheduledEventsProfile: endWith("PT5M") }));
  const ask = (method: string, text = "") =>
    arm.scheduledEvents.answer("cp-1", { method, version: "2020-07-01", text }).body as any;
  ask("GET");

  const deleted = arm.delete(id);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [{ EventId, EventType }] = ask("GET").Events;
  expect([EventType, machines.calls.at(-1)]).not.toContain("remove cp-1");
  ask("POST", JSON.stringify({ StartRequests: [{ EventId }] }));
  await deleted;

  expect([EventType, machines.calls.at(-1)]).toEqual(["Terminate", "remove cp-1"]);
});

/** An interface of its own. */
async function interfaceNamed(arm: ResourceManager, name: string): Promise<string> {
  const nic = network(`networkInterfaces/${name}`);
  const ipConfigurations = [{ name: "ip", subnet: { id: valid.subnet[0] } }];
  await arm.put(nic, { location: "westeurope", ipConfigurations });
  return nic;
}

it("gives a machine no interface that another has, and one of several that is the primary", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const [second, third] = [await interfaceNamed(arm, "b"), await interfaceNamed(arm, "c")];
  const put = (...networkInterfaces: object[]) => {
    const change = {
      "networkProfile.networkInterfaces": networkInterfaces,
      [`${osDisk}.name`]: "cp-2-os",
    };
    return refusedBy(arm.put(compute("virtualMachines/cp-2"), withChange("machine", change)));
  };

  expect(await put({ id: valid.nic[0] })).toMatch(/^NicInUse/);
  expect(await put({ id: second }, { id: third })).toMatch(
    /^VirtualMachineMustHaveOneNetworkInterfaceAsPrimary/,
  );
  expect(await put({ id: second, primary: true }, { id: third })).toBe("not refused");
});

it("neither attaches an interface to a machine nor detaches one", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const second = await interfaceNamed(arm, "second");

  for (const nics of [[{ id: valid.nic[0], primary: true }, { id: second }], [{ id: second }]]) {
    const put = arm.put(id, withChange("machine", { "networkProfile.networkInterfaces": nics }));
    expect(await refusedBy(put)).toMatch(/^AddingOrDeletingNetworkInterfaces/);
  }
});

it("gives a zone's machine no public address of another zone", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");
  const own = network("publicIPAddresses/own");
  await arm.put(own, withChange("natIp", { zones: ["2"] }));
  await arm.put(
    valid.nic[0],
    withChange("nic", { "ipConfigurations.0.publicIPAddress": { id: own } }),
  );

  expect(await refusedBy(arm.put(...valid.machine))).toMatch(
    /^ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint/,
  );
});

it("gives an interface with accelerated networking to no machine whose size has none", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  await arm.put(valid.nic[0], withChange("nic", { enableAcceleratedNetworking: true }));

  const refusal = await refusedBy(
    arm.put(id, withChange("machine", { "hardwareProfile.vmSize": "Standard_B2s" })),
  );

  expect(refusal).toMatch(/^VMSizeIsNotPermittedToEnableAcceleratedNetworking/);
  expect(await refusedBy(arm.put(id, body))).toBe("not refused");
});

it("leaves a machine its identity when a PUT names none, and takes it away when asked to", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const own = `${identities}/zoned`;
  await arm.put(own, { location: "westeurope" });
  const identity = { type: "UserAssigned", userAssignedIdentities: { [own]: {} } };
  await arm.put(id, withChange("machine", { identity }));

  await arm.put(id, valid.machine[1]);
  const kept = arm.peek(id)?.["identity"];
  await arm.put(id, withChange("machine", { identity: { type: "None" } }));

  expect(kept).toMatchObject({ type: "UserAssigned", userAssignedIdentities: { [own]: {} } });
  expect(arm.peek(id)).not.toHaveProperty("identity");
});

it("takes an identity of another region, as Azure does", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const elsewhere = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/far`;
  await arm.put(elsewhere, { location: "northeurope" });
  const identity = { type: "UserAssigned", userAssignedIdentities: { [elsewhere]: {} } };

  expect(await refusedBy(arm.put(id, withChange("machine", { identity })))).toBe("not refused");
});

it("creates the machine, and restarts it when its size changed", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");

  await arm.put(id, withChange("machine", { tags: { a: "b" } }));
  await arm.put(id, withChange("machine", { "hardwareProfile.vmSize": "Standard_D4s_v5" }));

  expect(machines.calls).toEqual(["create cp-1 172.16.1.4", "restart cp-1 Standard_D4s_v5"]);
});

it("returns neither customData nor password, and does not store the password", async () => {
  const { arm, args } = newArm();
  await createResources(arm, "nic");
  await arm.put(id, withChange("machine", { "osProfile.adminPassword": "pa55word" }));

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
      [`${osDisk}.deleteOption`]: undefined,
      "networkProfile.networkInterfaces.0.deleteOption": "Delete",
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
    withChange("machine", { [`${osDisk}.name`]: "b" }),
  );
  expect(await refusedBy(other)).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.delete(valid.nic[0]))).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.put(...valid.machine))).toBe("not refused");
  await arm.delete(id);
  clock.advance(181);
  expect(await refusedBy(arm.delete(valid.nic[0]))).toBe("not refused");
});

/** A disk of its own, and a data disk of the machine that is this one. */
async function dataDisk(arm: ResourceManager, lun: number, more: object) {
  const disk = compute(`disks/pv-${lun}`);
  const creationData = { createOption: "Empty" };
  await arm.put(disk, { location: "westeurope", creationData, diskSizeGB: 8, ...more });
  return { lun, createOption: "Attach", managedDisk: { id: disk } };
}

const withDisks = (...dataDisks: object[]) =>
  withChange("machine", { "storageProfile.dataDisks": dataDisks });

it("keeps data disks when a PUT has none, and detaches those that it leaves out", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const disk = await dataDisk(arm, 0, { zones: ["1"] });
  await arm.put(id, withDisks(disk));

  await arm.put(...valid.machine);
  expect(arm.peek(id)).toMatchObject({ storageProfile: { dataDisks: [disk] } });
  expect(await refusedBy(arm.delete(disk.managedDisk.id))).toMatch(
    /^OperationNotAllowed: Disk pv-0 is attached/,
  );

  await arm.put(id, withDisks());
  expect(await refusedBy(arm.delete(disk.managedDisk.id))).toBe("not refused");
});

it.each([
  { what: "of its zone", disk: { zones: ["1"] }, answer: /^not refused/ },
  {
    what: "of another zone",
    disk: { zones: ["2"] },
    answer: /^BadRequest: .* VM zone: '1'. Disk zone: '2'/,
  },
  { what: "of no zone", disk: {}, answer: /^BadRequest: .* not in zone '1'/ },
  { what: "of every zone", disk: { sku: { name: "Premium_ZRS" } }, answer: /^not refused/ },
])("attaches a disk $what as Azure does", async ({ disk, answer }) => {
  const { arm } = newArm();
  await createResources(arm);

  const put = arm.put(id, withDisks(await dataDisk(arm, 0, disk)));

  expect(await refusedBy(put)).toMatch(answer);
});

it("attaches no disk of another machine, or where there is one", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const zones = ["1"];
  const [one, other] = [await dataDisk(arm, 0, { zones }), await dataDisk(arm, 1, { zones })];

  expect(await refusedBy(arm.put(id, withDisks(one, { ...other, lun: 0 })))).toMatch(
    /^InvalidParameter: A disk at LUN 0/,
  );
  await arm.put(id, withDisks(one));
  const second = withChange("machine", {
    "networkProfile.networkInterfaces.0.id": await interfaceNamed(arm, "b"),
    [`${osDisk}.name`]: "b",
    "storageProfile.dataDisks": [one],
  });
  expect(await refusedBy(arm.put(compute("virtualMachines/cp-2"), second))).toMatch(
    /^ConflictingUserInput: .*cp-1/,
  );
});

it("takes as many disks as its size does, and no smaller size with more", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const dataDisks: object[] = [];
  for (const lun of [0, 1, 2, 3, 4]) dataDisks.push(await dataDisk(arm, lun, { zones: ["1"] }));
  const put = (vmSize: string, change = {}) =>
    refusedBy(arm.put(id, withChange("machine", { "hardwareProfile.vmSize": vmSize, ...change })));
  const tooMany = /^OperationNotAllowed: The maximum number of data disks .* is 4/;
  const withAll = { "storageProfile.dataDisks": dataDisks };

  expect(await put("Standard_D2s_v5", withAll)).toMatch(tooMany);
  expect(await put("Standard_D4s_v5", withAll)).toBe("not refused");
  expect(await put("Standard_D2s_v5")).toMatch(tooMany);
});

describe("a machine whose host encrypts, in a subscription that has the feature", () => {
  const encrypted = (wanted: boolean, more: object = {}) =>
    withChange("machine", { "securityProfile.encryptionAtHost": wanted, ...more });
  const registered = async () => {
    const { arm } = newArm();
    await createResources(arm, "nic");
    await arm.register("Microsoft.Compute/EncryptionAtHost");
    return arm;
  };

  it("is made", async () => {
    const arm = await registered();

    await arm.put(id, encrypted(true));

    expect(arm.peek(id)).toMatchObject({ securityProfile: { encryptionAtHost: true } });
  });

  it("is made of no size whose hosts cannot do it", async () => {
    const arm = await registered();
    const size = { "hardwareProfile.vmSize": "Standard_A2_v2" };

    expect(await refusedBy(arm.put(id, encrypted(true, size)))).toMatch(
      /^InvalidParameter: The Virtual Machine size Standard_A2_v2 does not support EncryptionAtHost/,
    );
  });

  it("becomes one, and stops being one, only while it is deallocated", async () => {
    const arm = await registered();
    await arm.put(id, body);

    const refused = /^OperationNotAllowed: 'securityProfile.encryptionAtHost' can be updated only/;
    expect(await refusedBy(arm.put(id, encrypted(true)))).toMatch(refused);
    await arm.power(id, "deallocate", { perform: () => undefined });
    expect(await refusedBy(arm.put(id, encrypted(true)))).toBe("not refused");
    await arm.power(id, "start", { perform: () => undefined });
    expect(await refusedBy(arm.put(id, encrypted(false)))).toMatch(refused);
    expect(await refusedBy(arm.put(id, encrypted(true)))).toBe("not refused");
  });
});
