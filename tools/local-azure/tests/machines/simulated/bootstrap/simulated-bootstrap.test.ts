import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { VirtualMachine } from "../../../../machines/machines";
import type { Binaries } from "../../../../machines/simulated/control-plane/control-plane";
import { SimulatedMachines } from "../../../../machines/simulated/simulated";
import { newFixture, scriptOf, vmOf } from "../../../support/simulated/fixture";

it.each([
  {
    flaw: "address",
    change: { privateAddress: "172.16.3.4" },
    says: "the payload gives demo-workers-1 the address 172.16.3.4, and its interface has 172.16.2.4",
  },
  {
    flaw: "name",
    change: { name: "demo-workers-2" },
    says: "the payload is for demo-workers-2, and this machine's host name is demo-workers-1",
  },
])("refuses a payload with another machine's $flaw", async ({ change, says }) => {
  const stateDir = mkdtempSync(join(tmpdir(), "zoned-bootstrap-"));
  const limits = { api: 100, ready: 100, peers: 100 };
  const options = { stateDir, limits, binaries: {} as Binaries, log: () => undefined };
  const machines = new SimulatedMachines(options);
  const vm = vmOf("demo-workers-1", "2", "172.16.2.4");
  const planned: VirtualMachine = { ...vm, ...change };
  const script = scriptOf(await newFixture("demo.example.org"), planned, { token: "a.b" });
  try {
    await machines.create(vm);

    const { stderr } = await machines.runScript(vm, script);

    expect(stderr.trim().split("\n").slice(-2)).toEqual([
      says,
      'step "packages" failed with exit code 1',
    ]);
  } finally {
    await machines.stop();
    rmSync(stateDir, { recursive: true });
  }
});
