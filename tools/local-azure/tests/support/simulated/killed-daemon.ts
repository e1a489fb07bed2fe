import { readFileSync } from "node:fs";

import { SimulatedMachines } from "../../../machines/simulated/simulated";

/** Initializes a cluster as a daemon does, then waits to be killed; for the test of what comes after. */
async function main(): Promise<void> {
  const { vm, script, ...options } = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
  const machines = new SimulatedMachines({ ...options, log: (message) => console.error(message) });
  await machines.create(vm);
  console.log(JSON.stringify(await machines.runScript(vm, script)));
  setInterval(() => undefined, 60_000);
}

void main();
