import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { onPath } from "../../../programs/engine";
import type { InstallOptions } from "../../../programs/installs";
import { cacheFolder } from "../../../programs/tools";
import { Interrupted, messageOf, UserError } from "../../../shared/user-error";
import { run } from "../../../shared/run";
import { debianArchive, release } from "./image/debian";

/**
 * A QEMU that can be started: the command before its own arguments, and what it finds its parts by.
 */
export interface Qemu {
  readonly version: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** The same for qemu-img. */
  readonly img: readonly string[];
}

export type Accelerator = "kvm" | "tcg";

/** A healthy KVM needs two seconds for it. */
const kvmWithin = 30_000;

/** The first words of a kernel that has unpacked itself. */
const proof = "Linux version";

/**
 * Why KVM is out of the question here, or undefined when this kernel was seen to run on it. A
 * device that opens may hang as soon as a processor is to run, or know only some of its
 * instructions.
 */
export async function kvmProblem(
  qemu: Qemu,
  kernel: string,
  device = "/dev/kvm",
): Promise<string | undefined> {
  try {
    accessSync(device, constants.R_OK | constants.W_OK);
  } catch {
    return `${device} is not there or not ours to open`;
  }
  return await tryKvm(qemu, kernel);
}

function tryKvm({ command, environment }: Qemu, kernel: string): Promise<string | undefined> {
  const [file = "", ...args] = command;
  const child = spawn(
    file,
    [
      ...args,
      ...["-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256", "-display", "none"],
      ...["-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio"],
      ...["-kernel", kernel, "-append", "console=ttyS0 panic=-1"],
    ],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...environment } },
  );
  return new Promise((resolve) => {
    let words = "";
    // QEMU also warns there of what it then does well.
    let said = "";
    const finish = (problem?: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      // A process that hangs in the kernel cannot be waited for.
      child.unref();
      resolve(problem);
    };
    const late = setTimeout(
      () => finish(`a kernel on it said nothing within ${kvmWithin / 1000} s`),
      kvmWithin,
    );
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      words += text;
      if (words.includes(proof)) finish();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (said += text));
    child.on("error", ({ message }) => finish(message));
    child.on("close", (code) => {
      const last = said.trim().split("\n").at(-1)!;
      finish(last.replace(/^.*qemu-system-x86_64: /, "") || `QEMU ended with ${code}`);
    });
  });
}

/** From this version on, machines without KVM start processes three times as fast as on 7.2. */
const newEnough = 9;

const versionOf = async (command: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> => {
  const text = await run([...command, "--version"], { env });
  return /version (\d+\.\d+(\.\d+)?)/.exec(text)?.[1] ?? "0";
};

/** The host's own QEMU when it is new enough, else Debian's from a folder of the cache. */
export async function prepareQemu(options: InstallOptions): Promise<Qemu> {
  const own = onPath("qemu-system-x86_64");
  const img = onPath("qemu-img");
  if (own !== undefined && img !== undefined) {
    const version = await versionOf([own]);
    if (Number.parseInt(version, 10) >= newEnough) {
      return { version, command: [own], environment: {}, img: [img] };
    }
  }
  const folder = join(options.cache ?? cacheFolder(), `qemu-${release}`);
  if (!existsSync(folder)) await unpack(folder, options);
  return packaged(folder);
}

async function unpack(folder: string, { progress, signal }: InstallOptions): Promise<void> {
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  const archive = await debianArchive();
  try {
    await progress.during(
      `fetching QEMU from Debian ${release}`,
      (step) =>
        run(
          [
            ...["mmdebstrap", "--variant=extract", "--include=qemu-system-x86,qemu-utils"],
            ...["--format=directory", release, draft, archive],
          ],
          { signal, onLine: step.update },
        ),
      "30 s",
    );
    renameSync(draft, folder);
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    throw new UserError(
      `there is no QEMU ${newEnough} or later here, and Debian's could not be fetched: ${messageOf(error)}\n` +
        "  Install it (`apt-get install qemu-system-x86 qemu-utils`, Debian 13 or Ubuntu 24.10 and later), or mmdebstrap and a way to Debian's packages.",
    );
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Programs of another release run through their own loader, over their own libraries. */
async function packaged(folder: string): Promise<Qemu> {
  const libraries = join(folder, "usr/lib/x86_64-linux-gnu");
  const loader = [
    join(libraries, "ld-linux-x86-64.so.2"),
    ...["--library-path", [libraries, ...subfolders(libraries)].join(":")],
  ];
  const command = [
    ...[...loader, join(folder, "usr/bin/qemu-system-x86_64")],
    ...["-L", join(folder, "usr/share/qemu"), "-L", join(folder, "usr/share/seabios")],
    ...["-L", join(folder, "usr/lib/ipxe/qemu")],
  ];
  const environment = { QEMU_MODULE_DIR: join(libraries, "qemu") };
  return {
    version: await versionOf(command, environment),
    command,
    environment,
    img: [...loader, join(folder, "usr/bin/qemu-img")],
  };
}

/** Some libraries lie one folder deeper. */
const subfolders = (libraries: string): string[] =>
  readdirSync(libraries, { withFileTypes: true })
    .filter(
      (entry) => entry.isDirectory() && /^(pulseaudio|samba|ceph|libfakeroot)$/.test(entry.name),
    )
    .map(({ name }) => join(libraries, name));
