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
