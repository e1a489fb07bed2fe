import { setTimeout } from "node:timers/promises";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { outputsOf } from "../../../components/outputs";
import { Plan } from "../../../components/plan/plan";
import { Recorder } from "../../support/record";
import { machine, validSettings } from "../../support/sample";

/** The outputs' memory of the cluster once these steps have ended, if it is there. */
async function memory(ended: readonly string[]) {
  await Recorder.start();
  const plan = {
    settings: validSettings,
    controlPlanes: [machine],
    workers: [],
    apiServer: { name: "api.example", port: 6443 },
    initialization: { id: "1-then", exists: true },
    orders: new Map([[machine.name, { generation: "now", made: "then", run: "then" }]]),
  } as unknown as Plan;
  const steps = ["first", "second"].map((name) => ({
    id: pulumi.output(ended.includes(name) ? `/ids/${name}` : new Promise<string>(() => {})),
  }));
  const outputs = outputsOf(
    plan,
    new ResourceGroup("cluster"),
    pulumi.output("{}"),
    pulumi.output("the-initial-vm"),
    steps as unknown as pulumi.CustomResource[],
  );
  let remembered: unknown;
  outputs.cluster.apply((cluster) => (remembered = cluster));
  await setTimeout(50);
  return remembered;
}

it("remembers the cluster once every step has ended, and not before", async () => {
  expect(await memory(["first"])).toBeUndefined();
  expect(await memory(["second"])).toBeUndefined();
  expect(await memory(["first", "second"])).toEqual({
    initialization: "1-then",
    initialControlPlane: "the-initial-vm",
    controlPlanes: 1,
    settings: expect.objectContaining({ location: "westeurope", podCidr: "10.244.0.0/16" }),
    machines: { [machine.name]: { generation: "now", made: "then", run: "then" } },
  });
});
