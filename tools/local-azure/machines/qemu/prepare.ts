import { availableParallelism } from "node:os";

import { prepareMirror } from "../../../mirror/mirror";
import { requiredCommands } from "../../../mirror/commands";
import { runConcurrently } from "../../../shared/run-concurrently";
import { debianPackages, forMachines } from "../../../programs/debian";
import type { InstallOptions } from "../../../programs/installs";
import { UserError } from "../../../shared/user-error";
import { prepareBaseImage, prepareSystem } from "./image/base-image";
import type { HostSettings } from "./host";
import { kvmProblem } from "./hypervisor";
import { prepareQemu } from "./image/qemu-package";

/** Makes sure that real machines can be made here at all, before anything is built for them. */
export async function prepareHost({ progress, signal }: InstallOptions): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new UserError(
      "real machines need root: their networks are namespaces, and their image is made " +
        "with another system's own tools. Run it as root, or leave --machines out.",
    );
  }
  await debianPackages(progress, signal, { ...forMachines, ...requiredCommands });
}

interface MachinesOptions {
  readonly scale: number;
  /** The Kubernetes version that machines begin with, and those that they can be upgraded to. */
  readonly kubernetes: readonly [string, ...string[]];
  /** Whether they run Azure's cloud provider. */
  readonly cloudProvider: boolean;
}

/** Everything that real machines need, from nothing; what is cached is taken from there. */
export async function prepareMachines(
  options: InstallOptions & MachinesOptions,
): Promise<Omit<HostSettings, "oneVcpuEach">> {
  const { progress, scale, cloudProvider } = options;
  // What waits for a network goes beside what compiles.
  const [qemu, system, mirror] = await runConcurrently(options.signal, [
    (signal) => prepareQemu({ ...options, signal }),
    (signal) => prepareSystem({ ...options, signal }),
    (signal) => prepareMirror({ ...options, signal, system: "debian-13" }),
  ]);
  const image = await prepareBaseImage(system, mirror, options.kubernetes[0], options);
  const problem = await kvmProblem(qemu, image.kernel);
  const accelerator = problem === undefined ? "kvm" : "tcg";
  progress.line(
    problem === undefined
      ? `machines run on KVM, with QEMU ${qemu.version}`
      : `machines run without KVM (${problem}), so QEMU ${qemu.version} emulates their processors, which are 10 to 20 ` +
          `times slower than this host's ${availableParallelism()} cores; on two, one control plane with two workers took 6 to 15 min`,
  );
  progress.line(`each machine has ${scale * 100} % of the memory of its size on Azure (--scale)`);
  return { qemu, accelerator, image, mirror: mirror.folder, cloudProvider, scale };
}
