import { setTimeout } from "node:timers/promises";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { outputsOf } from "../../../components/outputs";
import { Plan } from "../../../components/plan/plan";
import { Recorder, valueOf } from "../../support/record";
import { machine, validSettings } from "../../support/sample";

const worker = { ...machine, name: "zoned-test-workers-1", role: "worker" as const, zone: "3" };

async function outputs(ended: readonly string[]) {
  await Recorder.start();
  const plan = {
    settings: validSettings,
    controlPlanes: [machine],
    workers: [worker],
    secretsKeys: { keys: [1, 2], rewritten: false, past: [] },
    apiServer: { name: "api.example", port: 6443 },
    initialization: { id: "1-then", exists: true },
    orders: new Map([[machine.name, { generation: "now", made: "then", run: "then" }]]),
  } as unknown as Plan;
  const steps = ["first", "second"].map((name) => ({
    id: pulumi.output(ended.includes(name) ? `/ids/${name}` : new Promise<string>(() => {})),
  }));
  return outputsOf(
    plan,
    new ResourceGroup("cluster", { resourceGroupName: "zoned-test" }),
    pulumi.output("{}"),
    pulumi.output("the-initial-vm"),
    steps as unknown as pulumi.CustomResource[],
  );
}

/** The outputs' memory of the cluster once these steps have ended, if it is there. */
async function memory(ended: readonly string[]) {
  const { cluster: output } = await outputs(ended);
  return { remembered: new Promise((resolve) => output.apply(resolve)) };
}

it("remembers the cluster once every step has ended, and not before", async () => {
  const first = await memory(["first"]);
  const second = await memory(["second"]);
  const both = await memory(["first", "second"]);

  expect(await both.remembered).toEqual({
    initialization: "1-then",
    initialControlPlane: "the-initial-vm",
    kubeletCertificates: true,
    controlPlanes: 1,
    kubeProxy: expect.stringMatching(/^[0-9a-f]{16}$/),
    secretsKeys: { keys: [1, 2], rewritten: false, past: [] },
    settings: expect.objectContaining({ location: "westeurope", podCidr: "10.244.0.0/16" }),
    machines: { [machine.name]: { generation: "now", made: "then", run: "then" } },
  });
  const early = [first.remembered, second.remembered, setTimeout(50)];
  expect(await Promise.race(early)).toBeUndefined();
});

it("says where the API and every machine is", async () => {
  const { apiAddress, machines, resourceGroup } = await outputs([]);

  expect(apiAddress).toBe("https://api.example:6443");
  expect(machines).toEqual([
    { name: machine.name, role: "control-plane", zone: "westeurope-2", address: machine.address },
    { name: worker.name, role: "worker", zone: "westeurope-3", address: worker.address },
  ]);
  expect(await valueOf(resourceGroup)).toBe("zoned-test");
});
