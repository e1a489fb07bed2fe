import { nodeImages } from "../../../components/add-ons/node-images";
import { knownImage } from "../../../components/image/known-image";
import { customData } from "../../../components/machine/custom-data";
import type { Settings } from "../../../components/settings/settings";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

const bootData = (settings: Settings) =>
  customData(settings, "", nodeImages({ ...settings, cni: "none", diskDriver: false }, new Map()));

/** The image for these settings, after an update for others has left one. */
async function known(change: Partial<Settings> = {}) {
  const now = new Date("2026-11-29T08:07:06Z");
  let outputs = {};
  await Recorder.start({ calls: { "pulumi:pulumi:readStackOutputs": () => ({ outputs }) } });
  const { version, madeOf } = await knownImage(validSettings, bootData(validSettings), now);
  outputs = { version, madeOf, contents: "package kubelet 1.36.3" };
  const settings = { ...validSettings, ...change };
  return knownImage(settings, bootData(settings), new Date("2026-12-01T00:00:09Z"));
}

it("is the one of before where that has what the settings want", async () => {
  const before = { version: "2026.1129.80706", contents: "package kubelet 1.36.3" };

  expect(await known()).toMatchObject(before);
  expect(await known({ controlPlaneCount: 1, osDiskSku: "StandardSSD_LRS" })).toMatchObject(before);
});

it.each<Partial<Settings>>([
  { kubernetesVersion: "1.36.9" },
  { imageVersion: "24.04.202601010" },
  { containerRuntime: "cri-dockerd" },
  { mirror: "https://mirror.example" },
  { reboots: { days: ["tue"], from: "02:00", to: "05:00" } },
])("is another one, of a later number, for %j", async (change) => {
  const { version, contents } = await known(change);

  expect([version, contents]).toEqual(["2026.1201.9", undefined]);
});
