import { getClusterHealth } from "./cluster-health";
import { KubernetesApi } from "./kubernetes-api";
import { nodePath, retryTransient } from "./drain";
import { PodFailed, runPod } from "./one-shot-pod";

const mountPath = "/host";
const script = "/opt/zoned/etcd-snapshot.sh";

/** Folder of libraries and loader of a machine, by the architecture that its Node names. */
const loaders: Readonly<Record<string, readonly [string, string]>> = {
  amd64: ["x86_64-linux-gnu", "ld-linux-x86-64.so.2"],
  arm64: ["aarch64-linux-gnu", "ld-linux-aarch64.so.1"],
};

/** etcd's image has no shell, no loader and no library: all three are the machine's. */
function onMachine(architecture: string, ...command: readonly string[]): readonly string[] {
  const [folder, loader] = loaders[architecture] ?? loaders["amd64"]!;
  const libraries = `${mountPath}/usr/lib/${folder}`;
  return [
    `${libraries}/${loader}`,
    "--library-path",
    libraries,
    `${mountPath}/usr/sbin/chroot`,
    mountPath,
    ...command,
  ];
}

/**
 * Whether the machine has no such script. `chroot` ends with 127 then, as do a loader that misses a
 * library, a script that misses a command, and Docker where it finds no loader.
 */
const hasNoScript = ({ exitCode, message }: PodFailed): boolean =>
  exitCode === 127 && message.includes("failed to run command") && message.includes(script);

/**
 * Saves etcd by a control plane that stays, before another one leaves, as its timer does: with the
 * same script, to the same storage.
 *
 * When that fails, a control plane that is well stays, since nothing urges. One that is not well
 * leaves all the same: etcd has one member less as long as it is there, and all others were seen well.
 *
 * @param by a control plane that stays
 * @throws Error that says why there is no snapshot
 */
export async function saveBeforeLeaving(
  { machine, kubeconfig }: { readonly machine: string; readonly kubeconfig: string },
  api: KubernetesApi,
  by: string,
): Promise<void> {
  try {
    const node = await retryTransient(() => api.find(nodePath(by)));
    const { architecture = "amd64" } = node?.status?.nodeInfo ?? {};
    await runPod(api, by, {
      name: "zoned-etcd-snapshot",
      commands: [onMachine(architecture, script, "save", "any")],
      folder: { hostPath: "/", mountPath, readOnly: false },
      isPrivileged: true,
      seconds: 1200,
    });
  } catch (error) {
    // The setting is of this very `up`, which has not come to that machine yet.
    if (error instanceof PodFailed && hasNoScript(error)) return;
    const { message } = error as Error;
    const why = `etcd was not saved before ${machine} leaves: ${message.trim().split("\n").at(-1)}`;
    const { unhealthy } = await getClusterHealth(kubeconfig, [{ name: machine }]);
    if (!unhealthy.has(machine)) {
      throw new Error(
        `${why}\nNothing was deleted, and ${machine} is well. Fix what the message says, then run pulumi up again; ` +
          "to go on without snapshots: pulumi config rm etcdBackups",
        { cause: error },
      );
    }
    console.error(`${why}; it leaves all the same, since it is not well and all others are`);
  }
}
