import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { run } from "../../../shared/run";
import {
  type Accelerator,
  kvmProblem,
  prepareQemu,
  type Qemu,
} from "../../../local-azure/machines/qemu/hypervisor";
import { copyBootFiles, prepareSystem } from "../../../local-azure/machines/qemu/image/base-image";
import { prepareHost } from "../../../local-azure/machines/qemu/prepare";
import type { InstallOptions } from "../../../programs/installs";
import { cacheFolder } from "../../../programs/tools";
import { checkout } from "../../../shared/checkout";
import { Interrupted, UserError } from "../../../shared/user-error";
import type { LabBinaries } from "../machine";
import type { Said } from "./guest";
import type { MeasuringTask } from "./lab-task";
import type { Measured } from "./page";

/** Where the lab lies in the virtual machine. */
const inside = "/lab";

const memoryMib = 6144;

/** What the lab runs of this checkout, besides the packages. */
const parts = ["components", "tools", "typescript.cjs", "package.json"];

const packages = ["typescript", "ip-address"];

/** All that the kernel starts: no services, no network. */
const init = `#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
modprobe --all ip_vs ip_vs_rr dummy
cd ${inside}
./node --require ./typescript.cjs tools/lab/packets/measure/guest.ts
echo o >/proc/sysrq-trigger
sleep 60
`;

/**
 * Runs the measurement in a virtual machine, for the modes that this host's kernel lacks: Debian's
 * kernel and tools, with this checkout's lab and programs. Without KVM its processors are emulated.
 */
export async function measureInVirtualMachine(
  task: MeasuringTask,
  options: InstallOptions,
): Promise<Measured> {
  const { progress, signal } = options;
  await prepareHost(options);
  const qemu = await prepareQemu(options);
  const system = await prepareSystem(options);
  const folder = mkdtempSync(join(options.cache ?? cacheFolder(), ".lab-"));
  try {
    const disk = await progress.during(
      "making a virtual machine's disk",
      () => makeDisk(folder, system, task, signal),
      "30 s",
    );
    const problem = await kvmProblem(qemu, disk.kernel);
    const accelerator = problem === undefined ? "kvm" : "tcg";
    return await progress.during(
      `measuring ${task.modes.join(", ")} in a virtual machine${problem === undefined ? "" : ", emulated"}`,
      (step) => follow(qemu, argumentsFor(accelerator, disk), step.update, signal),
      problem === undefined ? "5 min" : "30 min on two cores",
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Disk {
  readonly file: string;
  readonly kernel: string;
  readonly initrd: string;
}

async function makeDisk(
  folder: string,
  system: string,
  task: MeasuringTask,
  signal: AbortSignal,
): Promise<Disk> {
  const root = join(folder, "root");
  const lab = join(root, inside);
  mkdirSync(root);
  await run(["tar", "--extract", "--numeric-owner", "--file", system, "--directory", root], {
    signal,
  });
  const isOurs = (path: string): boolean => !/\/(node_modules|tests|golden)$/.test(path);
  for (const part of parts) {
    cpSync(join(checkout, part), join(lab, part), { recursive: true, filter: isOurs });
  }
  for (const name of packages) {
    const place = join("node_modules", name);
    cpSync(join(checkout, place), join(lab, place), { recursive: true });
  }
  copyFileSync(process.execPath, join(lab, "node"));
  const binaries = Object.entries(task.binaries).map(([name, path]) => {
    copyFileSync(path, join(lab, name));
    return [name, join(inside, name)] as const;
  });
  const there = { ...task, binaries: Object.fromEntries(binaries) as unknown as LabBinaries };
  writeFileSync(join(lab, "task.json"), JSON.stringify(there));
  writeFileSync(join(lab, "init"), init);
  chmodSync(join(lab, "init"), 0o755);
  copyBootFiles(root, folder);
  const disk = {
    file: join(folder, "disk"),
    kernel: join(folder, "vmlinuz"),
    initrd: join(folder, "initrd"),
  };
  await run(["mke2fs", "-q", "-t", "ext4", "-m", "0", "-d", root, disk.file, "6G"], { signal });
  return disk;
}

const argumentsFor = (accelerator: Accelerator, disk: Disk): readonly string[] => [
  ...["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35"],
  ...(accelerator === "kvm"
    ? ["-accel", "kvm", "-cpu", "host"]
    : ["-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "max"]),
  ...["-smp", "2", "-m", `${memoryMib}`, "-kernel", disk.kernel, "-initrd", disk.initrd],
  "-append",
  `root=/dev/vda rw console=ttyS0 quiet mitigations=off init=${inside}/init`,
  ...["-drive", `file=${disk.file},if=virtio,format=raw,cache=unsafe`, "-serial", "stdio"],
];

/** The last lines of its console that are shown when it ends without a result. */
const consoleLines = 20;

/** What it says on its console, until it has the result. */
async function follow(
  { command: [file = "", ...loader], environment }: Qemu,
  args: readonly string[],
  onProgress: (detail: string) => void,
  signal: AbortSignal,
): Promise<Measured> {
  if (signal.aborted) throw new Interrupted();
  const machine = spawn(file, [...loader, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...environment },
    detached: true,
  });
  const end = (): unknown => machine.kill("SIGKILL");
  signal.addEventListener("abort", end, { once: true });
  process.once("exit", end);
  const last: string[] = [];
  let result: Measured | undefined;
  try {
    for await (const line of createInterface({ input: machine.stdout })) {
      const said = saidIn(line);
      if (said === undefined) last.push(line);
      else if ("progress" in said) onProgress(said.progress);
      else result = said;
    }
  } finally {
    signal.removeEventListener("abort", end);
    process.removeListener("exit", end);
    end();
  }
  if (signal.aborted) throw new Interrupted();
  if (result === undefined) {
    throw new UserError(
      `the virtual machine ended without a measurement; its console said:\n  ${last.slice(-consoleLines).join("\n  ")}`,
    );
  }
  return result;
}

/** A line of guest.ts; the kernel writes others, also in front of it. */
export function saidIn(line: string): Said | undefined {
  const text = /\{"(progress|machine)":.*\}/.exec(line)?.[0];
  return text === undefined ? undefined : (JSON.parse(text) as Said);
}
