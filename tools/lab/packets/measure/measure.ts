import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { debianPackages, forLab } from "../../../programs/debian";
import { writeWhole } from "../../../shared/files";
import type { Progress } from "../../../shared/progress";
import { UserError } from "../../../shared/user-error";
import { inLab, labProblem } from "../enter";
import { labBinaries, modesHere } from "../machine";
import type { Measurement, MeasuringTask } from "./lab-task";
import { pageOf } from "./page";
import { plotOf } from "./plot";
import { csvOf, tableOf } from "./table";

interface MeasureOptions {
  /** How many Services, in rising order. */
  readonly services: readonly number[];
  /** Where `proxy-modes.md`, `.csv` and `.svg` are written. */
  readonly folder: string;
}

/** Each Service has six pods. */
const endpoints = 6;

export const usualServices = [10, 100, 1000, 5000] as const;

/** Measures the real kube-proxy in every mode that is possible here, and writes it down. */
export async function measure(
  { services, folder }: MeasureOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  await debianPackages(progress, signal, forLab);
  const problem = labProblem();
  if (problem !== undefined) throw new UserError(`kube-proxy cannot be measured here: ${problem}`);
  const { modes, leftOut } = modesHere();
  for (const line of leftOut) progress.line(line);
  const binaries = await labBinaries({ progress, signal });
  const task: MeasuringTask = { binaries, modes, services, endpoints };
  const all = await progress.during(
    `measuring ${modes.join(" and ")} with up to ${services.at(-1)} Services`,
    (step) =>
      inLab<Measurement[]>(join(__dirname, "lab-task.ts"), task, {
        onProgress: step.update,
        signal,
      }),
    "4 to 8 min on two cores",
  );
  progress.line(tableOf(all));
  mkdirSync(folder, { recursive: true });
  const write = (ending: string, text: string): void =>
    writeWhole(join(folder, `proxy-modes.${ending}`), text);
  write("csv", csvOf(all));
  write("svg", plotOf(all));
  write("md", await pageOf(all, leftOut));
  progress.line(`written to ${join(folder, "proxy-modes.md")}, .csv and .svg`);
}
