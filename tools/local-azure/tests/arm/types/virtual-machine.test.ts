import { readFileSync } from "node:fs";

import { Faults } from "../../../arm/faults";
import type { Body } from "../../../arm/resources/resource";
import {
  type Answer,
  createResources,
  itAnswers,
  itLimits,
  itNeverChanges,
  itRefuses,
  itShows,
  ManualClock,
  newArm,
  power,
  put,
  refusedBy,
  remove,
  taken,
} from "../../support/arm/fixture";
import { compute, group, network, valid, withChange } from "../../support/arm/valid-resources";

const [id, body] = valid.machine;
const [nic] = valid.nic;
const [other, disk] = [compute("virtualMachines/cp-2"), compute("disks/cp-1-os")];
const location = "westeurope";
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
    "InvalidParameter: .*Standard_D2s_v6.*DiskControllerType 'SCSI'",
  ],
  [
    { "storageProfile.diskControllerType": "NVMe" },
    "InvalidParameter: .*Standard_D2s_v5.*DiskControllerType 'NVMe'",
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
    "InvalidParameter: .*Standard_D2s_v6.*OS image or disk",
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
    { "hardwareProfile.vmSize": "Standard_DC2as_v5" },
    "BadRequest: .*Standard_DC2as_v5' is not supported .* with 'TrustedLaunch'",
  ],
  [
    { "networkProfile.networkInterfaces.0.id": network("networkInterfaces/none") },
    "NotFound: Resource .*/networkInterfaces/none not found",
  ],
  [{ "availabilitySet.id": compute("availabilitySets/none") }, "NotFound: .*availabilitySets/none"],
  [{ [`${osDisk}.diskSizeGB`]: 29 }, "OperationNotAllowed: .* 29 GB is smaller .* 30 GB"],
  [{ "networkProfile.networkInterfaces": [] }, "InvalidParameter: .*networkInterfaces"],
  [{ identity: { userAssignedIdentities: [`${identities}/none`] } }, "FailedIdentityOperation"],
  [{ "osProfile.customData": "#cloud-config" }, "InvalidParameter: Custom data"],
  [{ [keys]: [] }, "InvalidParameter: Authentication"],
  [
    {
      "osProfile.allowExtensionOperations": true,
      "osProfile.linuxConfiguration.provisionVMAgent": false,
    },
    "InvalidParameter: .*allowExtensionOperations",
  ],
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
    "InvalidParameter: .*caching 'ReadOnly' only",
  ],
  // 1 GiB of the 75 is Trusted Launch's.
  [
    ephemeral({ "hardwareProfile.vmSize": "Standard_D2ds_v5", [`${osDisk}.diskSizeGB`]: 75 }),
    "NotSupported: .*greater than 74 GB is not allowed for VM size Standard_D2ds_v5 .*ResourceDisk",
  ],
  [ephemeral({}), "NotSupported: .*greater than 0 GB .* Standard_D2s_v5"],
  [
    ephemeral({ "hardwareProfile.vmSize": "Standard_D2ds_v5", priority: "Spot" }),
    "InvalidParameter: Eviction policy 'Deallocate' is not supported",
  ],
  [
    ephemeral({
      "hardwareProfile.vmSize": "Standard_D2ds_v5",
      [`${osDisk}.managedDisk.diskEncryptionSet`]: { id: compute("diskEncryptionSets/keys") },
    }),
    "InvalidParameter: .*with encryption at host only",
  ],
  [
    { priority: "Spot", scheduledEventsProfile: endWith("PT5M") },
    "BadRequest: Terminate notifications cannot be enabled on Spot instances",
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
    "InvalidParameter: .*ssh.publicKeys.keyData",
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
  [{ [`${osDisk}.createOption`]: "Attach" }, notAllowed("osDisk.createOption")],
  ...["disablePasswordAuthentication", "provisionVMAgent"].map(
    (property) =>
      [
        { [`osProfile.linuxConfiguration.${property}`]: false },
        notAllowed(`linuxConfiguration.${property}`),
      ] as const,
  ),
  [
    { [`${osDisk}.managedDisk.storageAccountType`]: "Standard_LRS" },
    notAllowed("osDisk.managedDisk.storageAccountType"),
  ],
  [{ [`${osDisk}.diskSizeGB`]: 128 }, "OperationNotAllowed: Disk resizing"],
  [{ "securityProfile.securityType": "Standard" }, notAllowed("securityProfile.securityType")],
  [{ availabilitySet: { id: "/sets/a" } }, notAllowed("availabilitySet")],
  [{ priority: "Spot" }, notAllowed("priority")],
]);

const changed = (change: Body) => put(id, withChange("machine", change));
const interfaceNamed = (name: string) =>
  put(network(`networkInterfaces/${name}`), {
    location,
    ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
  });
/** Another machine with these interfaces. */
const second = (nics: readonly object[], change: Body = {}) =>
  put(
    other,
    withChange("machine", {
      "networkProfile.networkInterfaces": nics,
      [`${osDisk}.name`]: "cp-2-os",
      ...change,
    }),
  );
const interfaces = (...names: string[]) =>
  names.map((name, index) => ({
    id: network(`networkInterfaces/${name}`),
    ...(index === 0 && { primary: true }),
  }));
const [b, c] = ["b", "c"];
const bAndC = [interfaceNamed(b), interfaceNamed(c)] as const;

/** A disk of its own, as a data disk of a machine. */
const dataDisk = (lun: number, of = lun) => ({
  ...{ lun, createOption: "Attach", managedDisk: { id: compute(`disks/pv-${of}`) } },
});
const diskMade = (number: number, more: object = { zones: ["1"] }) =>
  put(compute(`disks/pv-${number}`), {
    ...{ location, creationData: { createOption: "Empty" }, diskSizeGB: 8, ...more },
  });
const withDisks = (...dataDisks: object[]) => changed({ "storageProfile.dataDisks": dataDisks });
const five = [0, 1, 2, 3, 4];
const sized = (vmSize: string, change: Body = {}) =>
  changed({ "hardwareProfile.vmSize": vmSize, ...change });
const tooMany = "OperationNotAllowed: The maximum number of data disks .* is 4";
const withFive = { "storageProfile.dataDisks": five.map((lun) => dataDisk(lun)) };
const attached = (more: object, answer: string): Answer => [
  `a disk with ${JSON.stringify(more)}`,
  answer,
  diskMade(0, more),
  withDisks(dataDisk(0)),
];

const identityNamed = (name: string, where = location) =>
  put(`${identities}/${name}`, { location: where });
const identity = {
  type: "UserAssigned",
  userAssignedIdentities: { [`${identities}/zoned`]: {} },
};

const [extension, extensionBody] = valid.extension;
const otherHardware = sized("Standard_B2as_v2");
const notRunning = "OperationNotAllowed: Cannot modify extensions .* not running";
const runs = "OperationNotAllowed: The operation requires the VM to be running";
itAnswers("extension", [
  ...(
    [
      ["restart", "powerOff", runs],
      ["restart", "deallocate", runs],
      ["redeploy", "deallocate", runs],
      ["powerOff", "deallocate", "OperationNotAllowed: .*'powerOff'.*deallocated"],
      ["powerOff", "powerOff", taken],
      ["deallocate", "powerOff", taken],
      ["start", "deallocate", taken],
    ] as const
  ).map(([action, before, answer]): Answer => [
    `a ${action} after a ${before}`,
    answer,
    power(id, before),
    power(id, action),
  ]),
  ["a restart of one that runs", taken, power(id, "restart")],
  [
    "a size of other hardware while it runs",
    "OperationNotAllowed: .*hardware cluster",
    otherHardware,
  ],
  [
    "one while it is off",
    "OperationNotAllowed: .*hardware cluster",
    power(id, "powerOff"),
    otherHardware,
  ],
  ["one while it is deallocated", taken, power(id, "deallocate"), otherHardware],
  [
    "one with a temporary disk while it is deallocated",
    taken,
    power(id, "deallocate"),
    sized("Standard_D2ds_v5"),
  ],
  [
    "an extension's change while it is off",
    notRunning,
    power(id, "deallocate"),
    put(extension, { ...extensionBody, forceUpdateTag: "2" }),
  ],
  ["an extension's end while it is off", notRunning, power(id, "deallocate"), remove(extension)],
  [
    "an extension's change once it runs again",
    taken,
    power(id, "deallocate"),
    power(id, "start"),
    put(extension, { ...extensionBody, forceUpdateTag: "2" }),
  ],
  ["an interface that another machine has", "NicInUse", second([{ id: nic }])],
  [
    "two interfaces of which none is the primary",
    "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
    ...bAndC,
    second(interfaces(b, c).map(({ id: nicId }) => ({ id: nicId }))),
  ],
  ["two interfaces of which one is", taken, ...bAndC, second(interfaces(b, c))],
  ...[interfaces("cp-1-nic", b), interfaces(b)].map((nics): Answer => [
    `${nics.length} interfaces, one of them new`,
    "AddingOrDeletingNetworkInterfaces",
    interfaceNamed(b),
    changed({ "networkProfile.networkInterfaces": nics }),
  ]),
  [
    "an identity of another region",
    taken,
    identityNamed("zoned", "northeurope"),
    changed({ identity }),
  ],
  [
    "the end of a disk that no PUT has detached",
    "OperationNotAllowed: Disk pv-0 is attached",
    diskMade(0),
    withDisks(dataDisk(0)),
    put(id, body),
    remove(compute("disks/pv-0")),
  ],
  [
    "the end of a disk that a PUT has left out",
    taken,
    diskMade(0),
    withDisks(dataDisk(0)),
    withDisks(),
    remove(compute("disks/pv-0")),
  ],
  attached({ zones: ["1"] }, taken),
  attached({ zones: ["2"] }, "BadRequest: .* VM zone: '1'. Disk zone: '2'"),
  attached({}, "BadRequest: .* not in zone '1'"),
  attached({ sku: { name: "Premium_ZRS" } }, taken),
  [
    "two disks at one LUN",
    "InvalidParameter: A disk at LUN 0",
    diskMade(0),
    diskMade(1),
    withDisks(dataDisk(0), dataDisk(0, 1)),
  ],
  [
    "one disk at two LUNs",
    "InvalidParameter: .*pv-0",
    diskMade(0),
    withDisks(dataDisk(0), dataDisk(1, 0)),
  ],
  ["a disk at the last LUN", taken, diskMade(0), withDisks(dataDisk(63, 0))],
  ...[64, -1].map((lun): Answer => [
    `a disk at LUN ${lun}`,
    `InvalidParameter: .*'${lun}' .*dataDisk.lun' is out of range`,
    diskMade(0),
    withDisks(dataDisk(lun, 0)),
  ]),
  [
    "a disk at no LUN",
    "InvalidParameter: .*'dataDisk.lun'",
    diskMade(0),
    withDisks({ ...dataDisk(0), lun: undefined }),
  ],
  [
    "another machine's disk",
    "ConflictingUserInput: .*cp-1",
    diskMade(0),
    withDisks(dataDisk(0)),
    interfaceNamed(b),
    second(interfaces(b), { "storageProfile.dataDisks": [dataDisk(0)] }),
  ],
  [
    "more disks than its size has",
    tooMany,
    ...five.map((n) => diskMade(n)),
    sized("Standard_D2s_v5", withFive),
  ],
  [
    "as many as another size has",
    taken,
    ...five.map((n) => diskMade(n)),
    sized("Standard_D4s_v5", withFive),
  ],
  [
    "a size with fewer",
    tooMany,
    ...five.map((n) => diskMade(n)),
    sized("Standard_D4s_v5", withFive),
    sized("Standard_D2s_v5"),
  ],
]);

const spot = (more: object) => changed({ priority: "Spot", ...more });
const onHost = (more: object = {}) =>
  changed(ephemeral({ "hardwareProfile.vmSize": "Standard_D2ds_v5", ...more }));
const quota = (limits: Record<string, number>) => (arm: Arm) => arm.quotas.set(limits);
type Arm = ReturnType<typeof newArm>["arm"];
const own = network("publicIPAddresses/own");
const registered = (arm: Arm) => arm.register("Microsoft.Compute/EncryptionAtHost");
const encrypted = (wanted: boolean, more: object = {}) =>
  changed({ "securityProfile.encryptionAtHost": wanted, ...more });
const whileRunning = "OperationNotAllowed: 'securityProfile.encryptionAtHost' can be updated only";
itAnswers("nic", [
  [
    "a user whose name only begins as one that Azure keeps",
    taken,
    changed({
      "osProfile.adminUsername": "administrators",
      [`${keys}.0.path`]: "/home/administrators/.ssh/authorized_keys",
    }),
  ],
  [
    "a spot machine above the quota of spot machines",
    "OperationNotAllowed: .*approved LowPriorityCores",
    quota({ lowPriorityCores: 1 }),
    spot({}),
  ],
  ["a spot machine above the quota of others", taken, quota({ cores: 0 }), spot({})],
  [
    "a spot machine's policy",
    notAllowed("evictionPolicy"),
    spot({}),
    spot({ evictionPolicy: "Delete" }),
  ],
  [
    "a spot machine's price",
    "OperationNotAllowed: Max price change is not allowed",
    spot({}),
    spot({ billingProfile: { maxPrice: 1 } }),
  ],
  [
    "powerOff with a disk of its host",
    "OperationNotAllowed: .*ephemeral",
    onHost(),
    power(id, "powerOff"),
  ],
  ["deallocate with one", "OperationNotAllowed: .*ephemeral", onHost(), power(id, "deallocate")],
  [
    "another place of such a disk",
    notAllowed("osDisk.diffDiskSettings"),
    onHost(),
    onHost({ [`${osDisk}.diffDiskSettings`]: { option: "Local", placement: "CacheDisk" } }),
  ],
  [
    "a public address of another zone",
    "ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint",
    put(own, withChange("natIp", { zones: ["2"] })),
    put(nic, withChange("nic", { "ipConfigurations.0.publicIPAddress": { id: own } })),
    put(id, body),
  ],
  [
    "accelerated networking with a size that has none",
    "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
    put(nic, withChange("nic", { enableAcceleratedNetworking: true })),
    sized("Standard_B2s"),
  ],
  [
    "accelerated networking with a size that has it",
    taken,
    put(nic, withChange("nic", { enableAcceleratedNetworking: true })),
    put(id, body),
  ],
  [
    "encryption at host with a size that has none",
    "InvalidParameter: .*Standard_A2_v2 does not support EncryptionAtHost",
    registered,
    encrypted(true, { "hardwareProfile.vmSize": "Standard_A2_v2" }),
  ],
  ["encryption at host while it runs", whileRunning, registered, put(id, body), encrypted(true)],
  [
    "encryption at host while it is deallocated",
    taken,
    registered,
    put(id, body),
    power(id, "deallocate"),
    encrypted(true),
  ],
  [
    "no encryption any more while it runs",
    whileRunning,
    registered,
    encrypted(true),
    encrypted(false),
  ],
]);

itShows("extension", [
  [
    "no size and type of its OS disk while it is deallocated",
    id,
    {
      storageProfile: expect.objectContaining({
        osDisk: expect.not.objectContaining({ diskSizeGB: expect.anything() }),
      }),
    },
    power(id, "deallocate"),
  ],
  [
    "an identity that no later PUT names",
    id,
    { identity },
    identityNamed("zoned"),
    changed({ identity }),
    put(id, body),
  ],
  [
    "no identity once it is None",
    id,
    expect.not.objectContaining({ identity: expect.anything() }),
    identityNamed("zoned"),
    changed({ identity }),
    changed({ identity: { type: "None" } }),
  ],
  ["no disk of a machine that is gone", disk, undefined, remove(id)],
  [
    "a disk that outlives its machine",
    disk,
    { diskState: "Unattached" },
    remove(id),
    changed({ [`${osDisk}.deleteOption`]: undefined }),
    remove(id),
  ],
  [
    "no interface that goes with its machine",
    nic,
    undefined,
    remove(id),
    changed({ "networkProfile.networkInterfaces.0.deleteOption": "Delete" }),
    remove(id),
  ],
  [
    "a data disk after a PUT that has none",
    id,
    { storageProfile: { dataDisks: [dataDisk(0)] } },
    diskMade(0),
    withDisks(dataDisk(0)),
    put(id, body),
  ],
]);
itShows("nic", [
  [
    "a spot machine's defaults",
    id,
    { evictionPolicy: "Deallocate", billingProfile: { maxPrice: -1 } },
    spot({}),
  ],
]);

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

it("creates the machine, and restarts it when its size changed, unless it is off", async () => {
  const { arm, machines } = newArm();
  await createResources(arm, "machine");

  await arm.put(id, withChange("machine", { tags: { a: "b" } }));
  await arm.put(id, withChange("machine", { "hardwareProfile.vmSize": "Standard_D4s_v5" }));
  await power(id, "deallocate")(arm);
  expect(arm.sizesOf(id)).toContainEqual(expect.objectContaining({ name: "Standard_B2as_v2" }));
  await arm.put(id, withChange("machine", { "hardwareProfile.vmSize": "Standard_D8s_v5" }));

  expect(machines.calls).toEqual(["create cp-1 172.16.1.4", "restart cp-1 Standard_D4s_v5"]);
});

it("gives its tags to its OS disk when both are made, and never again", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const tagsOfDisk = () => (arm.peek(compute("disks/cp-1-os")) as Body)["tags"];

  await arm.put(id, withChange("machine", { tags: { costCenter: "4711" } }));
  expect(tagsOfDisk()).toEqual({ costCenter: "4711" });
  await arm.put(id, withChange("machine", { tags: { costCenter: "4712" } }));
  expect(tagsOfDisk()).toEqual({ costCenter: "4711" });
  await arm.patch(compute("disks/cp-1-os"), { tags: { costCenter: "4712" } });

  expect(tagsOfDisk()).toEqual({ costCenter: "4712" });
  expect(arm.peek(compute("disks/cp-1-os"))).toMatchObject({ managedBy: id });
});

it("returns neither customData nor password, and does not store the password", async () => {
  const { arm, args } = newArm();
  await createResources(arm, "nic");
  await arm.put(id, withChange("machine", { "osProfile.adminPassword": "pa55word" }));

  const shown = JSON.stringify(arm.peek(id));
  const kept = readFileSync(args.stateFile, "utf8");

  expect(shown).not.toContain(body.osProfile.customData);
  expect(shown + kept).not.toContain("pa55word");
});

it("reserves the interface of a machine whose creation failed for 180 seconds", async () => {
  const clock = new ManualClock();
  const faults = new Faults([
    { method: "PUT", id: "virtualMachines/cp-1$", code: "ZonalAllocationFailed", accepted: true },
  ]);
  const { arm } = newArm({ clock, faults });
  await createResources(arm, "nic");

  expect(await refusedBy(arm.put(id, body))).toMatch(/^ZonalAllocationFailed/);
  expect(arm.peek(id)).toMatchObject({ provisioningState: "Failed" });
  await arm.delete(id);
  const others = arm.put(other, withChange("machine", { [`${osDisk}.name`]: "b" }));
  expect(await refusedBy(others)).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.delete(nic))).toMatch(/^NicReservedForAnotherVm/);
  expect(await refusedBy(arm.put(id, body))).toBe(taken);
  await arm.delete(id);
  clock.advance(181);
  expect(await refusedBy(arm.delete(nic))).toBe(taken);
});
