import { readFileSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../../shared/checkout";
import { messageOf } from "../../../shared/user-error";
import { inLab } from "../enter";
import { machine } from "../machine";
import type { Measurement, MeasuringTask } from "./lab-task";
import type { Measured } from "./page";

/** What the virtual machine says on its console, one line each. */
export type Said = { readonly progress: string } | Measured;

const say = (said: Said): boolean => process.stdout.write(`${JSON.stringify(said)}\n`);

/** Runs in the virtual machine. */
async function main(): Promise<void> {
  const task = JSON.parse(readFileSync(join(checkout, "task.json"), "utf8")) as MeasuringTask;
  const all = await inLab<Measurement[]>(join(__dirname, "lab-task.ts"), task, {
    onProgress: (progress) => say({ progress }),
    signal: new AbortController().signal,
  });
  say({ machine: await machine(), all });
}

main().catch((error: unknown) => {
  process.stdout.write(`${messageOf(error)}\n`);
});
