import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";

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
