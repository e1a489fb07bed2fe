import { groupWord } from "../azure/resource-names";
import { AzureState } from "../azure/state";
import {
  clusterIdOf,
  isMemberOf,
  isReplaced,
  PreviousOutputs,
  WantedMachine,
} from "./machine-changes";
import { Settings } from "../settings/settings";
import { compactTime } from "../settings/times";
import { isControlPlaneName } from "../settings/topology";

/** Whether `kubeadm init` has made a cluster of this stack, or is to make one. */
export interface Initialization {
  /**
   * Which initialization this stack's cluster is of: its number, and when an update decided on it,
   * such as `1-20261123T174128Z`. Machines and everything in the cluster belong to one, and are
   * made anew with the next. When the cluster was restored from a snapshot, the time of that
   * follows, and of the machines only control planes are made anew with it.
   */
  readonly id: string;
  /**
   * True once there is a cluster to lose. From then on machines are replaced one at a time, and
   * none but the initial control plane may run `kubeadm init`.
   */
  readonly exists: boolean;
  /** The snapshot of which this cluster is restored, or was: its name, or `latest`. */
  readonly restoredFrom?: string;
  /** True until the initial control plane has restored it. */
  readonly isRestoring?: boolean;
  /** True where it is restored though enough of its control planes are there. */
  readonly isByChoice?: true;
  /** vmId of the initial control plane; undefined until there is one. */
  readonly initialControlPlane?: string;
  /** Why this update must not go on, one sentence each. */
  readonly problems: readonly string[];
  /** A note on a setting that had no effect. */
  readonly warnings: readonly string[];
}

type Wanted = Pick<
  Settings,
  | "clusterName"
  | "controlPlaneCount"
  | "etcdBackups"
  | "reinitialize"
  | "resourceGroup"
  | "restoreFrom"
>;

/**
 * Decides from what Azure and the stack's outputs remember whether the cluster exists, and refuses
 * what would lose it.
 *
 * Both memories are needed: outputs are written only by an update whose steps ended well, and Azure
 * forgets a machine that was deleted.
 *
 * @param now when this program started, as ISO 8601
 */
export function decideInitialization(
  settings: Wanted,
  controlPlanes: readonly Omit<WantedMachine, "configuration">[],
  azure: Pick<AzureState, "machines" | "groupState">,
  previous: PreviousOutputs | undefined,
  now: string,
): Initialization {
  const group = groupWord(settings);
  const id = latest(previous, azure) ?? idOf(1, now);
  const quiet = { id, problems: [], warnings: [] };
  const current = previous?.initialization === id ? previous : undefined;
  if (azure.groupState?.toLowerCase() === "deleting") {
    return {
      ...quiet,
      exists: true,
      problems: [
        `resource group ${group} is still being deleted; wait for it (az group wait --deleted -n ${group}), ` +
          "finish `pulumi destroy`, then run `pulumi up` again",
      ],
    };
  }

  // Members until they have left, which they do at the end of this update.
  const leaving = [...azure.machines.keys()].filter(
    (name) =>
      isControlPlaneName(settings, name) && !controlPlanes.some(({ plan }) => plan.name === name),
  );
  const known = [
    ...controlPlanes.map((wanted) => ({ name: wanted.plan.name, wanted })),
    ...leaving.map((name) => ({ name, wanted: undefined })),
  ].map(({ name, wanted }) => {
    const machine = azure.machines.get(name);
    const remembered = current?.machines[name];
    const isOfThis = machine !== undefined && isMemberOf(id, machine);
    const hasJoined =
      remembered !== undefined &&
      (machine?.createdAt ?? remembered.createdAt) === remembered.createdAt;
    return {
      name,
      bootstrap: isOfThis ? machine.bootstrap : undefined,
      isMember: isOfThis && (machine.bootstrap !== undefined || hasJoined),
      isReplaced:
        machine !== undefined &&
        wanted !== undefined &&
        isReplaced(machine, remembered, id, wanted),
    };
  });
  const [first] = known;
  // Every step but the first is ordered only after the first one ended well, whatever became of
  // that since.
  const exists =
    current !== undefined ||
    known.some(({ bootstrap }) => bootstrap?.state === "Succeeded") ||
    [...azure.machines].some(
      ([name, machine]) =>
        machine.bootstrap !== undefined && isMemberOf(id, machine) && name !== first?.name,
    );
  const dataLossAccepted = settings.reinitialize === id;
  const restoring = {
    ...quiet,
    exists: true,
    isRestoring: true,
    restoredFrom: settings.restoreFrom,
    problems: leaving.length > 0 ? [leftoverProblem(group, leaving)] : [],
  };
  const begun = { ...restoring, id: `${clusterIdOf(id)}-${compactTime(now)}` };
  const emptied = { ...quiet, id: idOf(numberOf(id) + 1, now), exists: false };
  if (!exists && id !== clusterIdOf(id)) {
    // A machine that has restored another snapshot fetches none any more.
    const hasAnother = known.some(
      ({ bootstrap }) => (bootstrap?.restoredFrom ?? settings.restoreFrom) !== settings.restoreFrom,
    );
    if (settings.restoreFrom !== "") return hasAnother ? begun : restoring;
    return dataLossAccepted
      ? emptied
      : { ...restoring, problems: [unfinishedProblem(group, id, controlPlanes, azure)] };
  }
  if (!exists) return { ...quiet, exists, warnings: unusedWarnings(settings, id) };

  const members = known.filter(({ isMember }) => isMember);
  const losesOnly = members.length === 1 && members[0]!.isReplaced;
  const needed = Math.floor((current?.controlPlanes ?? 1) / 2) + 1;
  const isLost = members.length < needed;
  // A value that the last update had as well was set before this loss.
  const isSetSince = settings.restoreFrom !== current?.restoreFrom;
  if (settings.restoreFrom !== "" && (dataLossAccepted || (isLost && isSetSince))) {
    return isLost ? begun : { ...begun, isByChoice: true };
  }
  if ((losesOnly || isLost) && dataLossAccepted) return emptied;
  const initialControlPlane =
    members.find(({ bootstrap }) => bootstrap?.initialControlPlane)?.bootstrap
      ?.initialControlPlane ?? current?.initialControlPlane;
  return {
    id,
    exists,
    restoredFrom: known.find(({ bootstrap }) => bootstrap?.restoredFrom)?.bootstrap?.restoredFrom,
    initialControlPlane,
    problems: [
      ...(isLost ? [lostProblem(settings, id, members.length, current, azure)] : []),
      ...(losesOnly ? [onlyMemberProblem(settings, id, members[0]!.name)] : []),
    ],
    warnings: isLost || losesOnly ? [] : unusedWarnings(settings, id),
  };
}

const idOf = (number: number, now: string): string => `${number}-${compactTime(now)}`;

/** How often the cluster of this stack was initialized, this time included. */
export const numberOf = (id: string): number => Number(id.split("-")[0]);

/** An initialization that was interrupted has machines of the one before beside its own. */
function latest(
  previous: PreviousOutputs | undefined,
  { machines }: Pick<AzureState, "machines">,
): string | undefined {
  const ids = [previous, ...machines.values()].flatMap((one) => one?.initialization ?? []);
  return ids.sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1)).at(-1);
}

const anew = (id: string): string =>
  "if a new, empty cluster may take its place, with every machine and everything in it made anew: " +
  `pulumi config set reinitialize ${id}, then pulumi up`;

/** One by choice may have been stopped while most control planes of before still stood. */
function unfinishedProblem(
  group: string,
  id: string,
  controlPlanes: readonly Pick<WantedMachine, "plan">[],
  { machines }: Pick<AzureState, "machines">,
): string {
  const names = controlPlanes.map(({ plan }) => plan.name);
  const isOfThis = (name: string) => machines.has(name) && isMemberOf(id, machines.get(name)!);
  const standing = names.filter((name) => machines.get(name)?.bootstrap && !isOfThis(name));
  const made = names.filter(isOfThis);
  return (
    "the cluster is being restored from a snapshot, and no control plane has done that yet: name the snapshot again, " +
    `then run pulumi up (pulumi config set restoreFrom latest); or, ${anew(id)}` +
    (standing.length > names.length / 2
      ? `. Or keep the cluster of before, of which ${standing.join(", ")} still stand: delete what was made to restore it, then run pulumi up ` +
        `(${deletionOf(group, made)})`
      : "")
  );
}

const deletionOf = (group: string, names: readonly string[]): string =>
  names.map((name) => `az vm delete --resource-group ${group} --name ${name} --yes`).join("; ");

/** They would be deleted at the end of the update, and their etcd might answer until then. */
const leftoverProblem = (group: string, leaving: readonly string[]): string =>
  `this update restores the cluster, and ${leaving.join(", ")} would be deleted only after that, with the etcd of before: ` +
  `leave controlPlaneCount as it was, and change it by the next update; or delete them first (${deletionOf(group, leaving)})`;

/** What brings back a lost cluster, as far as it had snapshots, and what gives it up. */
function waysBack(
  { etcdBackups, restoreFrom }: Wanted,
  id: string,
  previous: PreviousOutputs | undefined,
): string {
  if (restoreFrom !== "") {
    return (
      `restoreFrom is ${restoreFrom}, as it was before this loss, so that it restores nothing by itself. If the machines are lost, ` +
      "restore that snapshot, with which all that was changed after it is lost, by naming the cluster as well: " +
      `pulumi config set reinitialize ${id}, then pulumi up. For other ways, take it back: pulumi config rm restoreFrom, then pulumi up`
    );
  }
  if (etcdBackups?.container !== undefined) {
    const naming =
      previous?.restoreFrom === "latest" ? `pulumi config set reinitialize ${id}, ` : "";
    return (
      "If the machines are lost, restore the newest snapshot, with which all that was changed after it is lost: " +
      `pulumi config set restoreFrom latest, ${naming}then pulumi up. Or, ${anew(id)}`
    );
  }
  return `If the machines are lost, all that etcd held is lost too; ${anew(id)}`;
}

function lostProblem(
  settings: Wanted,
  id: string,
  alive: number,
  previous: PreviousOutputs | undefined,
  { groupState }: Pick<AzureState, "groupState">,
): string {
  const had = previous?.controlPlanes ?? 1;
  const needed = Math.floor(had / 2) + 1;
  const subscription =
    previous?.subscriptionId === undefined
      ? "the login's subscription"
      : `subscription ${previous.subscriptionId}`;
  return (
    `cluster ${settings.clusterName} had ${had} control plane machine(s), and Azure has ${alive} of them left, ` +
    `fewer than the ${needed} that etcd needs, so that no machine can join it. ` +
    (groupState === undefined
      ? `There is no resource group ${groupWord(settings)} in ${subscription}. `
      : "") +
    "If a destroy was interrupted, finish it: pulumi destroy. " +
    waysBack(settings, id, previous)
  );
}

const onlyMemberProblem = ({ controlPlaneCount }: Wanted, id: string, name: string): string =>
  `${name} is the only control plane machine and this change would replace it, with all that the cluster knows. ` +
  (controlPlaneCount === 1
    ? "Take the change back, or go to three control planes first (pulumi config set controlPlaneCount 3, pulumi up) and make the change then; "
    : `Take the change back and run pulumi up until the other ${controlPlaneCount - 1} have joined, then make the change; `) +
  anew(id);

/** Both settings are spent by their use, so that one that is left behind does nothing. */
function unusedWarnings({ reinitialize, restoreFrom }: Wanted, id: string): string[] {
  const unrestored =
    `restoreFrom is ${restoreFrom}, and the control plane is not lost: nothing is restored. ` +
    "Take it back: pulumi config rm restoreFrom. If what the cluster holds now may be lost for what the snapshot holds: " +
    `pulumi config set reinitialize ${id}`;
  const unrestoredWarnings = restoreFrom === "" ? [] : [unrestored];
  if (reinitialize === "") return unrestoredWarnings;
  return [
    ...unrestoredWarnings,
    (reinitialize === id
      ? `reinitialize is ${id}, which is this stack's cluster, and its control plane is not lost: nothing is initialized anew. `
      : `reinitialize is ${reinitialize}, and this stack's cluster is ${id}: the setting does nothing any more. `) +
      "Take it back: pulumi config rm reinitialize",
  ];
}
