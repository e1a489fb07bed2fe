import { ResourceGroup } from "@pulumi/azure-native/resources";

import { Builder } from "../../../components/image/builder";
import * as capture from "../../../components/image/capture";
import type { Settings } from "../../../components/settings/settings";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

// Both ask Azure, once there is a machine.
jest.spyOn(capture, "outputOf").mockImplementation(async () => "");
jest.spyOn(capture, "captureWhenOff").mockImplementation(async (machine) => machine);

async function machineWith(change: Partial<Settings>) {
  const recorder = await Recorder.start();
  const own = new ResourceGroup("images", { resourceGroupName: "zoned-test-gallery" });
  const group = { name: own.name, id: own.id, own };
  const settings = { ...validSettings, ...change };
  new Builder(
    "builder",
    { group, settings, version: "2026.1127.93005" },
    { transformations: [recorder.watch] },
  );
  const [machine] = await recorder.of("azure-native:compute:VirtualMachine");
  return machine!.inputs;
}

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
