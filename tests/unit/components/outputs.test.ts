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
  return { remembered: new Promise((resolve) => outputs.cluster.apply(resolve)) };
}

it("remembers the cluster once every step has ended, and not before", async () => {
  const first = await memory(["first"]);
  const second = await memory(["second"]);
  const both = await memory(["first", "second"]);

  expect(await both.remembered).toEqual({
    initialization: "1-then",
    initialControlPlane: "the-initial-vm",
    controlPlanes: 1,
    settings: expect.objectContaining({ location: "westeurope", podCidr: "10.244.0.0/16" }),
    machines: { [machine.name]: { generation: "now", made: "then", run: "then" } },
  });
  const early = [first.remembered, second.remembered, setTimeout(50)];
  expect(await Promise.race(early)).toBeUndefined();
});
