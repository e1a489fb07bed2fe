import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { ignoredAlways } from "../../../components/azure/additions";
import { plainHardware } from "../../../components/azure/hardware";
import { digest } from "../../../components/digest";
import { versions } from "../../../components/versions";
import { generationOf } from "../../../components/machine/generation";
import type { MachineArgs } from "../../../components/machine/machine";
import { MachinePlan } from "../../../components/settings/topology";
import { awaitedBy, makeMachine, order, vmType } from "../../support/machines";
import { Recorder } from "../../support/record";
import { machine as plan, validSettings } from "../../support/sample";

const nicType = "azure-native:network:NetworkInterface";
const name = "zoned-test-cp-1";

const build = async (change: Partial<MachineArgs> = {}) => {
  const recorder = await Recorder.start();
  return { recorder, machine: makeMachine(recorder, change) };
};

const spot = { ...plan, spot: { evictionPolicy: "Delete" as const } };
const member = { size: plan.size, bootstrap: { state: "Succeeded" } };

const vmInputs = async (change?: Partial<MachineArgs>) =>
  (await (await build(change)).recorder.only(vmType)).inputs;

it("has an interface of its own, at a fixed address", async () => {
  const { recorder } = await build({ poolId: "the-pool" });

  const { inputs } = await recorder.only(nicType);

  expect(inputs).toMatchObject({ networkInterfaceName: `${name}-nic` });
  expect(inputs.ipConfigurations).toEqual([
    expect.objectContaining({
      subnet: expect.objectContaining({ id: "the-subnet" }),
      privateIPAllocationMethod: "Static",
      privateIPAddress: "172.16.2.4",
      loadBalancerBackendAddressPools: [{ id: "the-pool" }],
    }),
  ]);
  expect(inputs.ipConfigurations[0]).not.toHaveProperty("publicIPAddress");
});

it.each([
  ["canal", false],
  ["flannel", false],
  ["none", true],
] as const)("with cni %s forwards packets of other addresses: %s", async (cni, forwards) => {
  const { recorder } = await build({ settings: { ...validSettings, cni } });

  expect((await recorder.only(nicType)).inputs.enableIPForwarding).toBe(forwards);
});

it("accelerates its interface where the size can, and never changes that, which Azure refuses while it runs", async () => {
  for (const hasAcceleratedNetworking of [true, false]) {
    const hardware = { ...plainHardware, hasAcceleratedNetworking };
    const { inputs, opts } = await (await build({ hardware })).recorder.only(nicType);

    expect(inputs.enableAcceleratedNetworking).toBe(hasAcceleratedNetworking);
    expect(opts.ignoreChanges).toEqual(["enableAcceleratedNetworking"]);
  }
});

it.each([
  ["that is no spot machine", true, {}],
  ["that is being made", false, { plan: spot }],
  [
    "that Azure has not been able to make",
    false,
    { plan: spot, retained: true, current: { size: spot.size } },
  ],
  ["that is a member", true, { plan: spot, retained: true, current: member }],
  ["that is replaced", true, { plan: spot, current: member }],
])("is waited for where it is one %s: %s", async (_, isAwaited, change) => {
  expect((await build(change)).machine.isSpare).toBe(!isAwaited);
});

it("joins no pool of the API's unless it is given one", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(nicType);

  expect(inputs.ipConfigurations[0].loadBalancerBackendAddressPools).toEqual([]);
});

it("leaves its interface behind and takes its disk along when it is replaced", async () => {
  const inputs = await vmInputs();

  expect(inputs.networkProfile.networkInterfaces).toEqual([
    { id: `/ids/${name}-nic`, primary: true, deleteOption: "Detach" },
  ]);
  expect(inputs.storageProfile.osDisk).toMatchObject({
    createOption: "FromImage",
    caching: "ReadWrite",
    deleteOption: "Delete",
    diskSizeGB: plan.osDiskSizeGb,
    managedDisk: { storageAccountType: plan.osDiskSku },
  });
});

it("is told before Azure deletes it, one that exists too, and is replaced for nothing of it", async () => {
  const { inputs, opts } = await (await build({ retained: true })).recorder.only(vmType);

  expect(inputs.scheduledEventsProfile).toEqual({
    terminateNotificationProfile: { enable: true, notBeforeTimeout: "PT5M" },
  });
  expect((opts.ignoreChanges ?? []).join()).not.toContain("scheduledEventsProfile");
});

it("is not told so where it is a spot machine, of which Azure refuses that", async () => {
  expect(await vmInputs({ plan: spot })).not.toHaveProperty("scheduledEventsProfile");
});

it.each([
  [
    "is one VM in one zone, and its VM, its host and its node have the same name",
    {
      vmName: name,
      zones: ["2"],
      hardwareProfile: { vmSize: "Standard_D2s_v5" },
      osProfile: { computerName: name, customData: "ZGF0YQ==" },
    },
  ],
  [
    "boots a pinned image, trusted, and keeps its console's output",
    {
      storageProfile: {
        imageReference: {
          ...{ publisher: "Canonical", offer: "ubuntu-24_04-lts", sku: "server" },
          version: versions.ubuntuImage,
        },
      },
      securityProfile: {
        securityType: "TrustedLaunch",
        uefiSettings: { secureBootEnabled: true, vTpmEnabled: true },
      },
      diagnosticsProfile: { bootDiagnostics: { enabled: true } },
    },
  ],
  [
    "lets in whoever has the key",
    {
      osProfile: {
        linuxConfiguration: {
          disablePasswordAuthentication: true,
          ssh: {
            publicKeys: [
              { path: "/home/azureuser/.ssh/authorized_keys", keyData: validSettings.sshPublicKey },
            ],
          },
        },
      },
    },
  ],
])("%s", async (_, expected) => {
  expect(await vmInputs()).toMatchObject(expected);
});

it.each([
  [
    "list of data disks, which would detach what the disk driver attached",
    "storageProfile.dataDisks",
  ],
  ["password", "osProfile.adminPassword"],
  // Which Azure shows of no machine that was made without.
  ...["priority", "evictionPolicy", "billingProfile"].map((one) => ["priority", one]),
  // Of which Azure refuses a false one in most subscriptions.
  ["encryption by its host", "securityProfile.encryptionAtHost"],
  ["encryption by a set", "storageProfile.osDisk.managedDisk.diskEncryptionSet"],
] as [string, string][])("names no %s unless it has one: %s", async (_, path) => {
  expect(await vmInputs()).not.toHaveProperty(path);
});

it("is made of the gallery image that the settings name, and of that alone", async () => {
  const image = "/subscriptions/s/galleries/zoned/images/node/versions/1.0.0";
  const settings = { ...validSettings, image, imageVersion: "24.04.202501010" };

  expect((await vmInputs({ settings })).storageProfile.imageReference).toEqual({ id: image });
});

it("boots the image of its architecture, and by NVMe where there is nothing else", async () => {
  const hardware = { ...plainHardware, architecture: "arm64" as const, isNvmeOnly: true };

  const { storageProfile } = await vmInputs({ hardware });

  expect(storageProfile).toMatchObject({
    imageReference: { sku: "server-arm64", version: versions.ubuntuImage },
    diskControllerType: "NVMe",
  });
  expect((await vmInputs()).storageProfile).not.toHaveProperty("diskControllerType");
});

it("has its OS disk on its host where its pool wants that, of which Azure only reads a cache", async () => {
  const { osDisk } = (await vmInputs({ plan: { ...plan, ephemeralOsDisk: "NvmeDisk" } }))
    .storageProfile;

  expect(osDisk).toMatchObject({
    caching: "ReadOnly",
    diffDiskSettings: { option: "Local", placement: "NvmeDisk" },
  });
  expect((await vmInputs()).storageProfile.osDisk).not.toHaveProperty("diffDiskSettings");
});

it.each([
  [{ evictionPolicy: "Delete" as const }, -1],
  [{ evictionPolicy: "Deallocate" as const, maxPrice: 0.05 }, 0.05],
])("is of spare capacity where its pool is: %j", async (spot, maxPrice) => {
  expect(await vmInputs({ plan: { ...plan, spot } })).toMatchObject({
    priority: "Spot",
    evictionPolicy: spot.evictionPolicy,
    billingProfile: { maxPrice },
  });
});

const diskEncryptionSetId =
  "/subscriptions/1/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/Kubernetes";

it("has a host that encrypts and a disk by the set's key, where the settings want it", async () => {
  const settings = { ...validSettings, encryptionAtHost: true, diskEncryptionSetId };

  const { securityProfile, storageProfile } = await vmInputs({ settings });

  expect(securityProfile).toMatchObject({ securityType: "TrustedLaunch", encryptionAtHost: true });
  expect(storageProfile.osDisk.managedDisk).toEqual({
    storageAccountType: plan.osDiskSku,
    diskEncryptionSet: { id: diskEncryptionSetId },
  });
});

it("acts as the identities it is given, and as nobody otherwise", async () => {
  expect((await vmInputs({ identityIds: ["the-identity", "the-kubelets"] })).identity).toEqual({
    type: "UserAssigned",
    userAssignedIdentities: ["the-identity", "the-kubelets"],
  });
  // Left out, Azure would leave it the identity that it had.
  expect((await vmInputs()).identity).toEqual({ type: "None" });
});

it("is made anew, the old VM first, where Azure refuses a change", async () => {
  const { recorder } = await build();

  const { opts } = await recorder.only(vmType);

  expect(opts).toMatchObject({ deleteBeforeReplace: true });
  expect([...(opts as pulumi.CustomResourceOptions).replaceOnChanges!].sort()).toEqual([
    "osProfile.adminUsername",
    "osProfile.computerName",
    "osProfile.customData",
    "osProfile.linuxConfiguration.ssh.publicKeys",
    "securityProfile.encryptionAtHost",
    "securityProfile.securityType",
    "storageProfile.imageReference",
    "storageProfile.osDisk.diskSizeGB",
    "storageProfile.osDisk.managedDisk.diskEncryptionSet",
    "storageProfile.osDisk.managedDisk.storageAccountType",
    "zones",
  ]);
});

const triggerOf = async (change?: Partial<MachineArgs>) => {
  const { recorder } = await build(change);
  const { opts } = await recorder.only(vmType);
  return JSON.stringify((opts as pulumi.CustomResourceOptions).replacementTrigger);
};

const taints = [{ key: "gpu", effect: "NoSchedule" } as const];

it.each<[string, Partial<MachineArgs>]>([
  ["of another initialization of the cluster", { initialization: "2-now" }],
  ["that is ordered anew", { record: { ...order, createdAt: "now" } }],
  ["with other taints", { plan: { ...plan, taints } }],
  ["that takes another number of pods", { plan: { ...plan, maxPods: 30 } }],
  ["with a disk of its host's", { plan: { ...plan, ephemeralOsDisk: "CacheDisk" } }],
  ["of spare capacity", { plan: { ...plan, spot: { evictionPolicy: "Delete" } } }],
])("is made anew by what only Pulumi's state keeps: a machine %s", async (_, change) => {
  expect(await triggerOf(change)).not.toBe(await triggerOf());
});

it("stays the same machine whatever becomes of its step and its tags", async () => {
  expect(
    await triggerOf({ record: { ...order, bootstrapRequestedAt: "now", generation: "other" } }),
  ).toBe(await triggerOf());
});

it("has a key of its own for its kubelet, and keeps that whatever becomes of its step", async () => {
  const { recorder } = await build();

  const keys = await recorder.of("tls:index/privateKey:PrivateKey");
  const { opts } = keys.find(({ name: one }) => one === `${name}-kubelet-key`)!;
  expect((opts as pulumi.CustomResourceOptions).replacementTrigger).toBe(order.createdAt);
});

it("tells the next update what it was made for", async () => {
  expect((await vmInputs()).tags).toEqual({
    "zoned-generation": order.generation,
    "zoned-initialization": "1-then",
    "zoned-created-at": order.createdAt,
  });
});

it.each([
  ["control-plane", { identityId: "/Ids/one" }, [digest("/ids/one")]],
  [
    "control-plane",
    { identityId: "/one", kubeletIdentityId: "/two" },
    [digest("/one"), digest("/two")],
  ],
  ["worker", { identityId: "/one", kubeletIdentityId: "/two" }, [digest("/two")]],
  ["worker", { identityId: "/one" }, undefined],
] as const)(
  "tells the next update which identities of others it was given, which no outputs of a failed one do: a %s with %j",
  async (role, ids, expected) => {
    const { tags } = await vmInputs({
      plan: { ...plan, role },
      settings: { ...validSettings, ...ids },
    });

    expect(tags["zoned-identities"]).toBe(expected?.join(" "));
  },
);

const generation = (change: Partial<MachinePlan>, settings: Partial<typeof validSettings> = {}) =>
  generationOf({ ...plan, ...change }, { ...validSettings, ...settings });
const taint = { key: "gpu", value: "yes", effect: "NoSchedule" } as const;
const before = generation({ taints: [taint] });

it.each<[string, { plan?: Partial<MachinePlan>; settings?: Partial<typeof validSettings> }]>([
  ["name", { plan: { name: "other" } }],
  ["zone", { plan: { zone: "3" } }],
  ["number of taints", { plan: { taints: [taint, taint] } }],
  ["value of a taint", { plan: { taints: [{ ...taint, value: "no" }] } }],
  ["user", { settings: { adminUsername: "other" } }],
  ["key", { settings: { sshPublicKey: "other" } }],
  ["kind of disk", { plan: { osDiskSku: "StandardSSD_LRS" } }],
  ["size of disk", { plan: { osDiskSizeGb: 128 } }],
  ["price", { plan: { spot: { evictionPolicy: "Delete", maxPrice: 0.05 } } }],
  ["number of pods", { plan: { maxPods: 30 } }],
  ["encryption by hosts", { settings: { encryptionAtHost: true } }],
  ["disk encryption set", { settings: { diskEncryptionSetId } }],
  ["runtime", { settings: { containerRuntime: "containerd" } }],
])("counts another %s as another generation", (_, change) => {
  expect(generation({ taints: [taint], ...change.plan }, change.settings)).not.toBe(before);
});

it("counts another architecture as another generation, which its image is for", () => {
  const on = (architecture: "x64" | "arm64") => generationOf(plan, validSettings, { architecture });

  expect(on("arm64")).not.toBe(on("x64"));
  expect(on("x64")).toBe(generationOf(plan, validSettings));
});

it("counts another size as another generation where the OS disk would go with it, and only there", () => {
  const sized = (size: string, ephemeralOsDisk?: MachinePlan["ephemeralOsDisk"]) =>
    generation({ size, ephemeralOsDisk });

  expect(sized("Standard_D4ds_v5", "CacheDisk")).not.toBe(sized("Standard_D2ds_v5", "CacheDisk"));
  expect(sized("STANDARD_D2DS_V5", "CacheDisk")).toBe(sized("Standard_D2ds_v5", "CacheDisk"));
  expect(sized("Standard_D4ds_v5")).toBe(sized("Standard_D2ds_v5"));
});

it("counts as the same generation whatever changes on a living machine", () => {
  const labels = { tier: "web" };

  expect(
    generation({ taints: [taint], size: "Standard_D4s_v5", labels }, { proxyMode: "nftables" }),
  ).toBe(before);
  const encrypted = (id: string) => generation({}, { diskEncryptionSetId: id });
  expect(encrypted(diskEncryptionSetId.toUpperCase())).toBe(encrypted(diskEncryptionSetId));
  // Of other pools, and of machines that are made later.
  for (const change of [
    { osDiskSku: "StandardSSD_LRS" as const, osDiskSizeGb: 128 },
    { kubernetesVersion: "1.36.99" },
    { mirror: "https://mirror.example" },
    { imageVersion: "24.04.202601010" },
  ]) {
    expect(generation({ taints: [taint] }, change)).toBe(before);
  }
});

it("keeps what it was made with, and nothing of a machine that is replaced", async () => {
  const optsOf = async (retained: boolean) =>
    (await (await build({ retained })).recorder.only(vmType)).opts.ignoreChanges;

  expect(await optsOf(true)).toEqual([
    ...ignoredAlways,
    "osProfile.customData",
    "securityProfile.encryptionAtHost",
    "storageProfile.diskControllerType",
    "storageProfile.imageReference",
    "storageProfile.osDisk.diskSizeGB",
    "storageProfile.osDisk.managedDisk.diskEncryptionSet",
    "storageProfile.osDisk.managedDisk.storageAccountType",
  ]);
  expect(await optsOf(false)).toEqual(ignoredAlways);
});

it("waits for what it is given to wait for, as the VM and its drain do", async () => {
  await Recorder.start();
  const { recorder } = await build({ after: [new ResourceGroup("something-earlier")] });

  expect(await awaitedBy(await recorder.only(vmType))).toEqual([
    "something-earlier",
    "zoned-test-cp-1-drain",
  ]);
  expect(await awaitedBy(await recorder.only("pulumi-nodejs:dynamic/zoned:Drain"))).toEqual([
    "something-earlier",
  ]);
  expect(await awaitedBy(await recorder.only(nicType))).toEqual([]);
});

it("has the same generation in every release of this program", () => {
  expect(generationOf(plan, validSettings)).toBe("a8904b953b6d6f6e");
  expect(generation({ taints: [taint, { key: "gpu", effect: "NoSchedule" }] })).toBe(
    "1eb0becb1848359f",
  );
});
