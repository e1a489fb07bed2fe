import * as pulumi from "@pulumi/pulumi";

import * as capture from "../../../components/image/capture";
import { nothing, update } from "../../support/program";
import { valueOf } from "../../support/record";

// Both ask Azure, once there is a machine.
jest.spyOn(capture, "outputOf").mockImplementation(async () => "");
jest.spyOn(capture, "captureWhenOff").mockImplementation(async (machine) => machine);

it("has the tags of the settings on its machine, and every refusal of Azure's explained", async () => {
  const { requests } = await update({ tags: { team: "firm" } }, nothing, "image");

  const inAzure = requests.filter(({ type }) => type.startsWith("azure-native:"));
  const { inputs } = inAzure.find(({ type }) => type.endsWith(":VirtualMachine"))!;
  expect(await valueOf(pulumi.output(inputs["tags"]))).toEqual({ team: "firm" });
  for (const { name, opts } of inAzure)
    expect([name, opts.hooks?.onError]).toEqual([name, [expect.anything()]]);
});

it("keeps tags of others on its group, gallery and image, and none that the settings had before", async () => {
  const made = await update({ tags: { team: "firm", cost: "1" } }, nothing, "image");

  const before = { ...made, addedTags: { owner: "somebody" } };
  const { requests } = await update({ tags: { team: "firm" } }, before, "image");

  for (const type of [
    "resources:ResourceGroup",
    "compute:Gallery",
    "compute:GalleryImage",
    "compute:GalleryImageVersion",
  ]) {
    const { inputs } = requests.find((one) => one.type === `azure-native:${type}`)!;
    const others = Object.entries(inputs["tags"] as object).filter(
      ([name]) => !name.startsWith("zoned-"),
    );
    expect([type, Object.fromEntries(others)]).toEqual([type, { team: "firm", owner: "somebody" }]);
  }
});

it("tells its machine the images of add-ons, as machines of it look for them", async () => {
  const reboots = { days: ["tue"], from: "02:00", to: "05:00" };
  const images = async (program: "image" | "index") => {
    const { requests } = await update({ cni: "flannel", reboots }, nothing, program);
    const { inputs } = requests.find(({ type }) => type.endsWith(":VirtualMachine"))!;
    const { customData } = (await valueOf(pulumi.output(inputs["osProfile"]))) as {
      customData: string;
    };
    const [, ...lines] = Buffer.from(customData, "base64").toString().split("\n");
    const files = JSON.parse(lines.join("\n")).write_files as { path: string; content: string }[];
    return files.find(({ path }) => path === "/etc/zoned/add-on-images")!.content;
  };

  const own = await images("image");

  expect(own.match(/[^/]+(?=:)/g)).toEqual(["flannel", "azure-cloud-node-manager", "kured"]);
  expect(await images("index")).toBe(own);
});
