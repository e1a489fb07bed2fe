import { KubernetesApi } from "./kubernetes-api";
import { getClusterHealth } from "./cluster-health";
import { PodFailed, runPod } from "./one-shot-pod";

const mountPath = "/host";
const libraries = `${mountPath}/usr/lib/x86_64-linux-gnu`;

/** etcd's image has no shell, no loader and no library: all three are the machine's. */
const onMachine = (...command: readonly string[]): readonly string[] => [
  `${libraries}/ld-linux-x86-64.so.2`,
  "--library-path",
  libraries,
  `${mountPath}/usr/sbin/chroot`,
  mountPath,
  ...command,
];

/** What `chroot` ends with where there is no such command. */
const notFound = 127;

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
    await runPod(api, by, {
      name: "zoned-etcd-snapshot",
      commands: [onMachine("/opt/zoned/etcd-snapshot.sh", "save", "any")],
      folder: { hostPath: "/", mountPath, readOnly: false },
      isPrivileged: true,
      seconds: 1200,
    });
  } catch (error) {
    // The setting is of this very `up`, which has not come to that machine yet.
    if (error instanceof PodFailed && error.exitCode === notFound) return;
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
