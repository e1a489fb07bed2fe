import { setTimeout as pause } from "node:timers/promises";

import { isReady, KubernetesApi, KubernetesObject, withApi } from "./kubernetes-api";
import { getClusterHealth, getClusterHealthOnce } from "./cluster-health";
import { controlPlaneMark } from "../settings/topology";
import { drain, isTransient, nodePath, retryTransient } from "./drain";
import { removeMember } from "./etcd-member";
import { endTurn, endTurnIfGone, takeTurn } from "./turns";
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

/** A machine, and how to reach the cluster that it is a member of. */
export interface Member {
  /** Name of the machine and its Node. */
  readonly machine: string;
  readonly role: "control-plane" | "worker";
  readonly kubeconfig: string;
}

export interface Limits {
  readonly drainMinutes: number;
  /** The cluster may be lost, by the setting `reinitialize`. */
  readonly dataLossAccepted: boolean;
  /**
   * Machines go though nobody can ask the cluster, by the setting `skipHealthCheckUntil`; control planes
   * also while the cluster is restored, by `restoreFrom`.
   */
  readonly skipIfUnreachable: boolean;
  /** etcd is saved before a control plane leaves, by the setting `etcdBackups`. */
  readonly savesEtcd: boolean;
}

/**
 * Takes a machine out of its cluster, so that its VM may go: etcd is saved, its pods are evicted, its
 * etcd member and its Node removed.
 *
 * @throws Error that says what holds the machine; it is a member as before then
 */
export async function leave(
  member: Member & { readonly vmId: string },
  limits: Limits,
): Promise<void> {
  const { machine, role, vmId } = member;
  await inCluster(member, limits, async (api) => {
    const node = await retryTransient(() => api.find(nodePath(machine)));
    // A machine that was made anew, unknown to Pulumi's state, has joined in its predecessor's place.
    if (node !== undefined && !isOf(node, vmId)) return;
    const others = await otherControlPlanes(api, machine);
    if (role === "control-plane" && others.length === 0) throw new Error(lastText(member));
    await inTurn(api, machine, limits, async () => {
      if (role === "control-plane") await checkOthers(member, api, "leave etcd");
      if (role === "control-plane" && limits.savesEtcd) {
        await saveBeforeLeaving(member, api, helper(others));
      }
      await drain({ api, node: machine, minutes: limits.drainMinutes });
      if (role === "control-plane") await removeMember(api, machine, helper(others));
      await retryTransient(() => api.delete(nodePath(machine)));
      await endTurnIfGone({ api, machine, minutes: limits.drainMinutes });
    });
  });
}

/**
 * Takes a machine down while no other one is. It stays noted until the machine is back, by its bootstrap step, or has
 * left for good.
 */
async function inTurn(
  api: KubernetesApi,
  machine: string,
  { drainMinutes: minutes }: Limits,
  action: () => Promise<void>,
): Promise<void> {
  const turn = { api, machine, minutes };
  await takeTurn(turn);
  try {
    await action();
  } catch (error) {
    await endTurn(turn);
    throw error;
  }
}

/** No plan of this program comes so far: `plan/initialization.ts` refuses it. */
const lastText = ({ machine }: Member): string =>
  `${machine} is the last control plane that is a Node, and all that etcd holds would go with it. Nothing was deleted. ` +
  "Run pulumi up without --target, --exclude and --replace. If the cluster may go: pulumi destroy, of the whole stack";

/** Azure shows the id of a VM to its firmware, in generation 1 with three groups of bytes swapped. */
function isOf({ status }: KubernetesObject, vmId: string): boolean {
  const uuid = (status?.nodeInfo?.systemUUID ?? "").toLowerCase();
  const [first = "", second = "", third = "", ...rest] = vmId.toLowerCase().split("-");
  const swapped = (text: string): string => (text.match(/../g) ?? []).reverse().join("");
  return [
    [first, second, third, ...rest].join("-"),
    [swapped(first), swapped(second), swapped(third), ...rest].join("-"),
  ].includes(uuid);
}

/** Empties a machine that is about to be restarted. */
export const drainForResize = (member: Member, limits: Limits): Promise<void> =>
  inCluster(member, limits, async (api) => {
    const { machine, role } = member;
    const others = role === "worker" ? [] : await otherControlPlanes(api, machine);
    await inTurn(api, machine, limits, async () => {
      // An only control plane takes the API with it for a while, and no majority.
      if (others.length > 0) await checkOthers(member, api, "be restarted");
      await drain({ api, node: machine, minutes: limits.drainMinutes });
    });
  });

/** What a bootstrap step makes of a member. */
export interface MemberUpgrade {
  readonly kubernetesVersion: string;
  /** The step has begun before and did not end well. */
  readonly isHalfDone?: boolean;
}

/**
 * Empties a machine whose kubelet becomes another version. Not from within its bootstrap step: Azure changes nothing of
 * a VM whose extension runs, and a volume that is detached is such a change.
 *
 * The step itself asks how the other control planes are, sends away what is there nevertheless, and lets pods on the
 * machine again when it ends, or when it fails before it has touched anything.
 */
export async function drainForUpgrade(
  member: Member,
  { kubernetesVersion, isHalfDone = false }: MemberUpgrade,
  limits: Limits,
): Promise<void> {
  const { machine, role } = member;
  // An API that is down may be what the step repairs.
  const isRepair = isHalfDone && role === "control-plane";
  const { drainMinutes: minutes, skipIfUnreachable } = limits;
  try {
    await inCluster(
      member,
      { ...limits, skipIfUnreachable: skipIfUnreachable || isRepair },
      async (api) => {
        const node = await retryTransient(() => api.find(nodePath(machine)));
        const version = node?.status?.nodeInfo?.kubeletVersion;
        if (version === undefined || version === `v${kubernetesVersion}`) return;
        await inTurn(api, machine, limits, () =>
          drain({ api, node: machine, minutes, isForUpgrade: true }),
        );
      },
    );
  } catch (error) {
    if (!(isRepair && isTransient(error))) throw error;
  }
}

/** Does something over the API, unless the cluster is given up or nobody is to wait for it. */
async function inCluster(
  { machine, kubeconfig }: Member,
  { dataLossAccepted, skipIfUnreachable }: Limits,
  action: (api: KubernetesApi) => Promise<void>,
): Promise<void> {
  if (dataLossAccepted) return;
  await withApi(kubeconfig, async (api) => {
    const readiness = () =>
      api.get("/readyz").then(
        () => [],
        (error: Error) => [error.message],
      );
    const [unready] = skipIfUnreachable ? await readiness() : await problemsOf(readiness);
    if (unready === undefined) return action(api);
    if (skipIfUnreachable) return;
    throw new Error(
      `${machine} was not drained, and nothing was changed: ${unready}.\n` +
        "Run pulumi up where the API can be reached. If nobody can reach it, and what runs on the machine may end without notice: " +
        "pulumi config set skipHealthCheckUntil with a time of the next hours, such as 20261123T180000Z",
    );
  });
}

const helper = (others: readonly KubernetesObject[]): string =>
  others.find(isReady)?.metadata.name ?? others[0]!.metadata.name;

async function otherControlPlanes(
  api: KubernetesApi,
  machine: string,
): Promise<KubernetesObject[]> {
  const all = await retryTransient(() =>
    api.list(`/api/v1/nodes?labelSelector=${controlPlaneMark}`),
  );
  return all.filter(({ metadata }) => metadata.name !== machine);
}

/**
 * What is amiss, asked for a minute: a control plane that has left just before takes connections to the API
 * with it, and may have led etcd.
 */
async function problemsOf(look: () => Promise<readonly string[]>): Promise<readonly string[]> {
  for (let tries = 6; ; tries -= 1) {
    const wrong = await look();
    if (wrong.length === 0 || tries === 1) return wrong;
    await pause(10_000);
  }
}

const stemOf = (machine: string): string => machine.replace(/\d+$/, "");

/**
 * Without this machine, etcd needs all that are left. Control planes that were lost beside it are
 * removed from etcd: each would wait for the other one else.
 */
async function checkOthers(
  { machine, kubeconfig }: Member,
  api: KubernetesApi,
  does: string,
): Promise<void> {
  const wrong = await problemsOf(async () => {
    const others = await otherControlPlanes(api, machine);
    const expected = [...others.map(({ metadata }) => metadata), { name: machine, isGone: true }];
    const { problems, unhealthy, dead = [] } = await getClusterHealthOnce(kubeconfig, expected);
    for (const name of dead.filter((one) => stemOf(one) === stemOf(machine))) {
      await removeMember(api, name, helper(others));
    }
    return [
      ...problems,
      ...[...unhealthy].map(([name, reasons]) => `${name}: ${reasons.join("; ")}`),
    ];
  });
  if (wrong.length === 0) return;
  throw new Error(
    `${machine} cannot ${does}, since without it all others have to be well, and are not known to be:` +
      `${wrong.map((line) => `\n  - ${line}`).join("")}\n` +
      "Nothing was deleted. Bring what is named back to health, or, if its machine is gone for good, delete its Node (kubectl delete node NAME), " +
      "then run pulumi up again",
  );
}
