import { ArmClient } from "../../../components/azure/resource-manager";
import { Builder } from "../../../components/image/builder";
import { builderMachine } from "../../../components/image/builder-machine";
import * as capture from "../../../components/image/capture";
import { imageGroup, ImageGallery } from "../../../components/image/image-gallery";
import type { Settings } from "../../../components/settings/settings";
import { account } from "../../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

// Both ask Azure, once there is a machine.
jest.spyOn(capture, "outputOf").mockImplementation(async () => "");
jest.spyOn(capture, "captureWhenOff").mockImplementation(async (machine) => machine);

/** The machine's choice, by what the local Azure offers. */
async function chosen(settings: Settings) {
  const rest = await serveRest(newArm().arm, 0);
  const arm = new ArmClient(`http://127.0.0.1:${rest.port}`, "local");
  return builderMachine(settings, { ...account, arm }).finally(() => rest.close());
}

async function resourcesWith(change: Partial<Settings>) {
  const settings = { ...validSettings, ...change };
  const machine = await chosen(settings);
  const recorder = await Recorder.start();
  const group = imageGroup(settings, account.subscriptionId);
  const watched = { transformations: [recorder.watch] };
  const shared = { group, settings, version: "2026.1127.93005" };
  const builder = new Builder(
    "builder",
    { ...shared, machine, bootData: "", existingNetwork: undefined },
    watched,
  );
  new ImageGallery("images", { ...shared, madeOf: "", builder }, watched);
  return recorder;
}

async function machineWith(change: Partial<Settings>) {
  const recorder = await resourcesWith(change);
  const [machine] = await recorder.of("azure-native:compute:VirtualMachine");
  return machine!.inputs;
}

const pool = validSettings.workerPools[0]!;
const arm = "Standard_D2ps_v6";

it("has the size of the control planes, or where they are Arm that of the first pool that is not", async () => {
  const { hardwareProfile } = await machineWith({});
  const workerPools = [
    { ...pool, name: "arm", size: arm },
    { ...pool, size: "Standard_D4s_v5", zones: ["2"], osDiskSku: "StandardSSD_LRS" as const },
  ];
  const other = await machineWith({ controlPlaneSize: arm, workerPools });

  expect(hardwareProfile).toEqual({ vmSize: validSettings.controlPlaneSize });
  expect(other).toMatchObject({
    hardwareProfile: { vmSize: "Standard_D4s_v5" },
    zones: ["2"],
    storageProfile: { osDisk: { managedDisk: { storageAccountType: "StandardSSD_LRS" } } },
  });
});

it("asks for NVMe where its size has nothing else, since Azure takes SCSI otherwise", async () => {
  const { storageProfile } = await machineWith({ controlPlaneSize: "Standard_D2s_v6" });

  expect(storageProfile).toMatchObject({ diskControllerType: "NVMe" });
  expect((await machineWith({})).storageProfile).not.toHaveProperty("diskControllerType");
});

it("is not made where no machine of the cluster could be made of its image", async () => {
  const settings = {
    ...validSettings,
    controlPlaneSize: arm,
    workerPools: [{ ...pool, size: "Standard_D4ps_v6" }],
  };

  await expect(chosen(settings)).rejects.toThrow(
    /all machines of this cluster have Arm processors \(Standard_D2ps_v6, Standard_D4ps_v6\)/,
  );
});

it("has no name of the cluster's, nor of a second stack's, in a group that others use too", async () => {
  const namesOf = async (clusterName: string) =>
    (await (await resourcesWith({ clusterName, resourceGroup: "platform" })).all())
      .filter(({ type }) =>
        /:(VirtualNetwork|NetworkSec.*|Route.*|Nat.*|PublicIP.*|Gallery)$/.test(type),
      )
      .flatMap(({ inputs }) =>
        Object.entries(inputs)
          .filter(([key]) => key !== "resourceGroupName" && /Name$/.test(key))
          .map(([, name]) => name),
      );

  const own = ["vnet", "nsg", "rt", "egress"].map((what) => `zoned-prod-builder-${what}`);
  expect(new Set(await namesOf("zoned-prod"))).toEqual(new Set([...own, "zoned_prod"]));
});

it.each([
  [
    "of its own, as whose stack's it is marked, and stays with it",
    "",
    "organization/zoned/test",
    true,
  ],
  ["of others, where nothing else would take it away", "platform", undefined, false],
])("is taken in a group %s", async (_, resourceGroup, stack, stays) => {
  const recorder = await resourcesWith({ resourceGroup });

  const groups = await recorder.of("azure-native:resources:ResourceGroup");
  const { opts } = await recorder.only("azure-native:compute:GalleryImageVersion");
  expect([groups[0]?.inputs["tags"]["zoned-stack"], opts.retainOnDelete]).toEqual([stack, stays]);
});

it("has as long as Azure's agent gives a script, and as many regions take for copies", async () => {
  const recorder = await resourcesWith({});

  const { opts: step } = await recorder.only("azure-native:compute:VirtualMachineExtension");
  const { opts: version } = await recorder.only("azure-native:compute:GalleryImageVersion");
  expect([step, version]).toMatchObject([
    { customTimeouts: { create: "95m" } },
    { customTimeouts: { create: "90m" } },
  ]);
});

it("changes nothing that Azure shows otherwise, or refuses of a machine that is off", async () => {
  const recorder = await resourcesWith({});

  const machine = await recorder.only("azure-native:compute:VirtualMachine");
  const { opts: step } = await recorder.only("azure-native:compute:VirtualMachineExtension");
  const { opts: version } = await recorder.only("azure-native:compute:GalleryImageVersion");
  expect(step.deletedWith === machine.resource).toBe(true);
  expect(version.ignoreChanges).toEqual(["publishingProfile.targetRegions"]);
});

it("runs on a host that encrypts, where the cluster's machines do", async () => {
  const { securityProfile } = await machineWith({ encryptionAtHost: true });

  expect(securityProfile).toMatchObject({ securityType: "TrustedLaunch", encryptionAtHost: true });
  expect((await machineWith({})).securityProfile).not.toHaveProperty("encryptionAtHost");
});

it("has a disk that Azure takes an image of, also where the cluster's have a key of their owner's", async () => {
  const diskEncryptionSetId = "/keys/providers/Microsoft.Compute/diskEncryptionSets/ours";

  const { storageProfile } = await machineWith({ diskEncryptionSetId });

  expect(storageProfile.osDisk.managedDisk).toEqual({
    storageAccountType: validSettings.osDiskSku,
  });
});
