import { availableParallelism } from "node:os";
import { join } from "node:path";

import { prepareMirror } from "../../../mirror/mirror";
import { runConcurrently } from "../../../shared/concurrency";
import { debianPackages, forMachines, forMirror } from "../../../programs/debian";
import type { InstallOptions } from "../../../programs/installs";
import { cacheFolder } from "../../../programs/tools";
import { makeFolder } from "../../../shared/files";
import { holderOf, tryLock } from "../../../shared/lock";
import { UserError } from "../../../shared/user-error";
import { prepareBaseImage, prepareSystem } from "./image/base-image";
import type { HostSettings } from "./host";
import { kvmProblem, prepareQemu } from "./hypervisor";

/** Makes sure that real machines can be made here at all, before anything is built for them. */
export async function prepareHost({ progress, signal }: InstallOptions): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new UserError(
      "real machines need root: their networks are namespaces, and their image is made " +
        "with another system's own tools. Run it as root, or leave --machines out.",
    );
  }
  await debianPackages(progress, signal, { ...forMachines, ...forMirror });
}

interface MachinesOptions {
  readonly scale: number;
  /** The Kubernetes version that machines begin with, and those that they can be upgraded to. */
  readonly kubernetes: readonly [string, ...string[]];
  /** Whether they run Azure's cloud provider. */
  readonly cloudProvider: boolean;
  /** Whether they pull the images of add-ons. */
  readonly pullsAddOns?: boolean;
}

/** What is made in the cache has the same drafts in each process. */
async function aloneIn<T>(cache: string, work: () => Promise<T>): Promise<T> {
  makeFolder(cache, 0o755);
  const lock = join(cache, "machines.lock");
  const release = tryLock(lock);
  if (!release) {
    throw new UserError(
      `process ${holderOf(lock)?.pid ?? "?"} prepares real machines in ${cache}: wait for it, or end it`,
    );
  }
  return work().finally(release);
}

/** Everything that real machines need, from nothing; what is cached is taken from there. */
export async function prepareMachines(
  options: InstallOptions & MachinesOptions,
): Promise<Omit<HostSettings, "oneVcpuEach">> {
  const { cache = cacheFolder(), progress, scale, cloudProvider } = options;
  const { qemu, mirror, image } = await aloneIn(cache, async () => {
    // What waits for a network goes beside what compiles.
    const [qemu, system, mirror] = await runConcurrently(options.signal, [
      (signal) => prepareQemu({ ...options, signal }),
      (signal) => prepareSystem({ ...options, signal }),
      (signal) => prepareMirror({ ...options, signal, system: "debian-13" }),
    ]);
    const image = await prepareBaseImage(system, mirror, options.kubernetes[0], options);
    return { qemu, mirror, image };
  });
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
