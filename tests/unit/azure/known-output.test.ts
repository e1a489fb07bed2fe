import * as pulumi from "@pulumi/pulumi";

import { knownOutput } from "../../../components/azure/shown";
import { Recorder, valueOf } from "../../support/record";

class Made extends pulumi.CustomResource {
  declare readonly vmId: pulumi.Output<string>;
  constructor() {
    super("azure-native:compute:VirtualMachine", "vm", { vmId: undefined });
  }
}

const filledIn = { "azure-native:compute:VirtualMachine": { vmId: "new" } };

/** Whether it is known, and the value. */
const knownAs = async (preview: boolean, now: string | undefined) => {
  await Recorder.start({ preview, filledIn: preview ? {} : filledIn });
  const made = new Made();
  const output = knownOutput(made.vmId, made, now) as pulumi.Output<string> & {
    isKnown: Promise<boolean>;
    resources: () => Set<pulumi.Resource>;
  };
  expect(output.resources()).toContain(made);
  return (await output.isKnown) ? valueOf(output) : undefined;
};

it.each([
  ["a preview knows what Azure has", true, "old", "old"],
  ["a preview knows nothing of what is yet to be made", true, undefined, undefined],
  ["an update takes what Azure has filled in", false, "old", "new"],
])("%s", async (_claim, preview, now, expected) => {
  expect(await knownAs(preview, now)).toBe(expected);
});
