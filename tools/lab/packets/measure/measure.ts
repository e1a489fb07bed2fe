import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { debianPackages, forLab } from "../../../programs/debian";
import type { InstallOptions } from "../../../programs/installs";
import { writeWhole } from "../../../shared/files";
import { UserError } from "../../../shared/user-error";
import { inLab, labProblem } from "../enter";
import { labBinaries, machine, modesHere } from "../machine";
import type { Measurement, MeasuringTask } from "./lab-task";
import {
  csvOf,
  type Measured,
  measuredIn,
  pageOf,
  type Places,
  plotOf,
  ratiosOf,
  tableOf,
} from "./page";
import { measureInVirtualMachine } from "./virtual-machine";

/** Each Service has six pods. */
const endpoints = 6;

/** How many Services, in rising order. */
const services: Readonly<Record<keyof Places, readonly number[]>> = {
  host: [10, 100, 1000, 5000],
  virtualMachine: [10, 100, 1000],
};

/**
 * Measures the real kube-proxy in every mode that the kernel of this place has, and writes it down
 * into `folder`: a CSV and a page, which keep what was measured in the other place.
 */
export async function measure(
  place: keyof Places,
  folder: string,
  options: InstallOptions,
): Promise<void> {
  const { progress } = options;
  const [csv, page] = [join(folder, "proxy-modes.csv"), join(folder, "proxy-modes.md")];
  const before = existsSync(csv) ? measuredIn(csv, readFileSync(csv, "utf8")) : {};
  const now = await (place === "host" ? measureHere(options) : measureElsewhere(options));
  progress.line((place === "host" ? tableOf : ratiosOf)(now.all));
  mkdirSync(folder, { recursive: true });
  const places: Places = { ...before, [place]: now };
  writeWhole(csv, csvOf(places));
  if (places.host) writeWhole(join(folder, "proxy-modes.svg"), plotOf(places.host.all));
  writeWhole(page, pageOf(places));
  progress.line(`written to ${page}, and proxy-modes.csv beside it`);
}

async function measureHere(options: InstallOptions): Promise<Measured> {
  const { progress, signal } = options;
  await debianPackages(progress, signal, forLab);
  const problem = labProblem();
  if (problem !== undefined) throw new UserError(`kube-proxy cannot be measured here: ${problem}`);
  const { modes, leftOut } = modesHere();
  for (const line of leftOut) progress.line(line);
  const binaries = await labBinaries(options);
  const task: MeasuringTask = { binaries, modes, services: services.host, endpoints };
  const all = await progress.during(
    `measuring ${modes.join(" and ")} with up to ${task.services.at(-1)} Services`,
    (step) =>
      inLab<Measurement[]>(join(__dirname, "lab-task.ts"), task, {
        onProgress: step.update,
        signal,
      }),
    "4 to 8 min on two cores",
  );
  return { machine: [...(await machine()), ...leftOut], all };
}

async function measureElsewhere(options: InstallOptions): Promise<Measured> {
  const binaries = await labBinaries(options);
  const modes = ["iptables", "nftables", "ipvs"] as const;
  const task = { binaries, modes, services: services.virtualMachine, endpoints };
  return await measureInVirtualMachine(task, options);
}
