import { groupWord } from "../azure/resource-names";
import { AzureState, isOff } from "../azure/state";
import { getClusterHealth, ClusterHealth, isSpared } from "../cluster/cluster-health";
import { silenceOf } from "../cluster/kubernetes-api";
import { startCommand } from "./stopped-machines";
import { compactTime, isHealthCheckSkipped } from "../settings/times";
import { Initialization } from "./initialization";
import { isMemberOf, MachineChange, PreviousOutputs } from "./machine-changes";
import { Settings } from "../settings/settings";
import { isControlPlaneName, MachinePlan } from "../settings/topology";

export interface Gate {
  /** Why this update must not begin, one sentence each. */
  readonly problems: readonly string[];
  /**
   * The control plane that comes before all others, since it is not well and this update makes it so:
   * the steps of others end only when it is.
   */
  readonly repairFirst?: string;
}

export interface GateArgs {
  readonly settings: Pick<
    Settings,
    | "apiAccess"
    | "clusterName"
    | "reinitialize"
    | "resourceGroup"
    | "restoreFrom"
    | "skipHealthCheckUntil"
  >;
  readonly initialization: Pick<Initialization, "id" | "isRestoring">;
  /** But to control planes that have left etcd: nothing depends on these. */
  readonly changes: readonly MachineChange[];
  readonly controlPlanes: readonly MachinePlan[];
  readonly azure: Pick<AzureState, "machines">;
  /** Names of the machines that are off and that this update starts. */
  readonly started: ReadonlySet<string>;
  /** Of this initialization. */
  readonly previous: PreviousOutputs | undefined;
  /** From the stack's outputs; undefined before an update ended well. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

/** As the API's error names it. */
const accessSetting = "apiAccessCidrs";

const sentences = (reasons: readonly string[]) => reasons.join("; ");

/**
 * Decides whether existing machines may be touched: what Azure says of a step is how a member was,
 * not how it is. One member that is not well and one machine that is down for a change cost three
 * members their majority.
 *
 * The machine that is not well may itself be the one that is made anew; it then goes first, and its
 * bootstrap step ends only when all others are well. An update that touches no machine is not held
 * up, and needs no check.
 */
export async function checkGate(args: GateArgs): Promise<Gate> {
  if (args.changes.length === 0) return { problems: [], repairFirst: lostMember(args) };
  const { settings, initialization, kubeconfig, now } = args;
  if (initialization.isRestoring) return { problems: notNowProblems(args) };
  const isSkipped = isHealthCheckSkipped(settings, now);
  const bySettings = [
    ...(settings.reinitialize === initialization.id ? [dataLossProblem(settings)] : []),
    ...(settings.restoreFrom === "" ? [] : [unrestoredProblem(settings)]),
    ...(isSkipped ? uncheckedProblems(args) : []),
  ];
  if (bySettings.length > 0) return { problems: bySettings };
  const [only, ...others] = controlPlanesOf(args);
  // Nobody can be asked, and there is no majority to lose.
  if (only !== undefined && others.length === 0 && args.started.has(only.name)) {
    return { problems: [], repairFirst: only.name };
  }
  const unreached = isSkipped ? await unreachedProblems(args) : [];
  if (unreached.length > 0) return { problems: unreached };
  const health: ClusterHealth = isSkipped
    ? { problems: [], unhealthy: new Map() }
    : kubeconfig === undefined
      ? {
          problems: [
            "this stack has no output kubeconfig yet, so its cluster cannot be checked: take the change back, run pulumi up until it ends well, then make the change",
          ],
          unhealthy: new Map(),
        }
      : await getClusterHealth(
          kubeconfig,
          controlPlanesOf(args).map(({ name, address }) => ({
            ...{ name, address },
            isGone: !args.azure.machines.has(name),
          })),
        );
  return decideGate(args, health);
}

/** The first control plane that was a member, and whose machine has to join in its place. */
const lostMember = ({ controlPlanes, azure, previous }: GateArgs): string | undefined =>
  controlPlanes.find(({ name }) => {
    const machine = azure.machines.get(name);
    const isLost = previous?.machines[name] !== undefined && machine?.bootstrap === undefined;
    return isLost || machine?.removedFromEtcd;
  })?.name;

/** A machine that may be lost is not drained, and this change does not ask for that. */
const dataLossProblem = ({ reinitialize }: GateArgs["settings"]): string =>
  `reinitialize is ${reinitialize}, which is this stack's cluster, and its control plane is not lost: this change would let machines ` +
  "go without draining them. Take the setting back, then run pulumi up: pulumi config rm reinitialize";

/** As above: the setting lets control planes go without a word to etcd. */
const unrestoredProblem = ({ restoreFrom }: GateArgs["settings"]): string =>
  `restoreFrom is ${restoreFrom}, and the control plane is not lost: this change would let control planes go without draining them. ` +
  "Take the setting back, then run pulumi up: pulumi config rm restoreFrom";

/**
 * Workers that are upgraded or configured otherwise do that by themselves, after the control planes; and an
 * `up` that ended half-way has left some that no setting can keep as they are.
 */
function notNowProblems({ azure, changes, settings }: GateArgs): string[] {
  const drained = changes.filter(
    ({ action, machine }) =>
      action !== "upgrade" && action !== "reconfigure" && !azure.machines.get(machine)?.lacksNode,
  );
  if (drained.length === 0) return [];
  return [
    "this update restores the cluster from a snapshot, and no machine can be drained before that has ended; it would also " +
      `${drained.map(({ action, machine }) => `${action} ${machine}`).join(", ")}: take that change back, and make it by the next update. ` +
      "Where an update that ended half-way leaves nothing to take back, let such a machine be made anew after the control planes, without a drain: " +
      `az vm delete --resource-group ${groupWord(settings)} --name ${drained[0]!.machine} --yes`,
  ];
}

/** A member that cannot be removed would count in etcd for ever. */
function uncheckedProblems(args: GateArgs): string[] {
  const { settings } = args;
  const leaving = leavingControlPlanes(args);
  if (leaving.length === 0) return [];
  return [
    `this change would remove ${leaving.join(", ")}, whose etcd members can only be removed over the API, and skipHealthCheckUntil is ` +
      `${settings.skipHealthCheckUntil}, so its health is not checked: run pulumi up where the API can be reached, without the setting ` +
      "(pulumi config rm skipHealthCheckUntil)",
  ];
}

const leavingControlPlanes = ({ settings, changes }: GateArgs): string[] =>
  changes
    .filter(({ machine, action }) => action === "remove" && isControlPlaneName(settings, machine))
    .map(({ machine }) => machine);

const goingWorkers = ({ settings, changes }: GateArgs): MachineChange[] =>
  changes.filter(
    ({ machine, action }) =>
      (action === "replace" || action === "remove") && !isControlPlaneName(settings, machine),
  );

/**
 * A worker's join token is made over the API, and its other objects are deleted there. The Kubernetes provider fails to,
 * while the engine has the VM deleted, and nothing could join in its place.
 */
async function unreachedProblems(args: GateArgs): Promise<string[]> {
  const { settings, kubeconfig } = args;
  const workers = goingWorkers(args);
  if (workers.length === 0 || kubeconfig === undefined) return [];
  const silence = await silenceOf(kubeconfig);
  if (silence === undefined) return [];
  return [
    `this change would ${workers.map(({ action, machine }) => `${action} ${machine}`).join(", ")}, and ${silence}. ` +
      "Join tokens and other objects of workers are made and deleted over the API alone, so that VMs would go and none could join, though " +
      `skipHealthCheckUntil is ${settings.skipHealthCheckUntil}. Nothing was changed. Run pulumi up where the API can be reached, or by apiProxy; ` +
      "or take the change back for these workers",
  ];
}

/**
 * Control planes that exist or have existed; those that this update adds are no members yet, and neither
 * are those that an earlier one has made and did not come to.
 */
function controlPlanesOf({
  initialization,
  controlPlanes,
  azure,
  previous,
}: GateArgs): MachinePlan[] {
  const isOfThis = (name: string): boolean => {
    const machine = azure.machines.get(name);
    return machine?.bootstrap !== undefined && isMemberOf(initialization.id, machine);
  };
  return controlPlanes.filter(
    ({ name }) => isOfThis(name) || previous?.machines[name] !== undefined,
  );
}

/** The decision, from what is known of Azure and of the cluster. */
export function decideGate(args: GateArgs, health: ClusterHealth): Gate {
  const { azure } = args;
  const wanted = controlPlanesOf(args).map(({ name }) => name);
  // Those that this update removes, or whose VM somebody did, are members until they have left.
  const leaving = [...health.unhealthy.keys()].filter((name) => !wanted.includes(name));
  const sick = [...wanted, ...leaving].flatMap((name) => {
    const reasons = [...azureReasons(name, azure), ...(health.unhealthy.get(name) ?? [])];
    return reasons.length > 0 ? [{ name, reasons }] : [];
  });
  const hasLeft = (name: string) => azure.machines.get(name)?.removedFromEtcd === true;
  // Those that have left etcd count for no majority, and join again one after another.
  const [first, ...others] = sick.every(({ name }) => hasLeft(name)) ? sick.slice(0, 1) : sick;
  const isWanted = first !== undefined && wanted.includes(first.name);
  const goesOn =
    first === undefined ||
    (isWanted ? becomesHealthy(args, first.name) : leavesAtOnce(args, first.name));
  return health.problems.length === 0 && others.length === 0 && goesOn
    ? { problems: [], repairFirst: isWanted ? first.name : undefined }
    : { problems: [refusal(args, health, sick)] };
}

const becomesHealthy = ({ azure, changes, started }: GateArgs, name: string): boolean =>
  started.has(name) ||
  azure.machines.get(name)?.bootstrap?.state !== "Succeeded" ||
  azure.machines.get(name)?.removedFromEtcd === true ||
  changes.some(({ machine, action }) => machine === name && action === "replace");

/** Whether nothing happens before this control plane has left: the highest number goes first. */
function leavesAtOnce({ settings, changes }: GateArgs, name: string): boolean {
  const numberOf = (machine: string) => Number(machine.slice(`${settings.clusterName}-cp-`.length));
  return (
    changes.some(({ machine }) => machine === name) &&
    changes.every(
      ({ machine, action }) =>
        action === "remove" &&
        isControlPlaneName(settings, machine) &&
        numberOf(machine) <= numberOf(name),
    )
  );
}

function azureReasons(name: string, { machines }: Pick<AzureState, "machines">): string[] {
  const machine = machines.get(name);
  if (machine === undefined) return ["Azure has no such VM"];
  if (machine.removedFromEtcd) return ["it is no member of etcd any more"];
  if (isOff(machine)) return [`its VM is ${machine.power}`];
  const state = machine.bootstrap?.state;
  if (state === "Succeeded") return [];
  return [
    state === undefined ? "it has not joined yet" : `its bootstrap step is ${state}, not Succeeded`,
  ];
}

function refusal(
  args: GateArgs,
  { problems, areEtcds = false, isSilent = false, members = 0 }: ClusterHealth,
  sick: readonly { readonly name: string; readonly reasons: readonly string[] }[],
): string {
  const { changes, settings, azure, now } = args;
  // What these two refuse with the setting, it is no way for.
  const isSkippable =
    leavingControlPlanes(args).length === 0 && !(isSilent && goingWorkers(args).length > 0);
  const isMadeAnew = (name: string) => args.controlPlanes.some((one) => one.name === name);
  const off = sick.map(({ name }) => name).filter((name) => isOff(azure.machines.get(name) ?? {}));
  const stray = sick.find(({ name }) => !isMadeAnew(name) && !azure.machines.has(name));
  const would = (["replace", "resize", "upgrade", "reconfigure", "remove"] as const).flatMap(
    (does) => {
      const machines = changes.filter((change) => change.action === does).map((one) => one.machine);
      return machines.length > 0 ? [`${does} ${machines.join(", ")}`] : [];
    },
  );
  const lines = [
    ...problems,
    ...sick.map(({ name, reasons }) => `${name}: ${sentences(reasons)}`),
  ].map((line) => `\n      - ${line}`);
  const ways = [
    ...(off.length > 0 ? [`start what is off: ${startCommand(groupWord(settings), off)}`] : []),
    ...(sick.length > 0
      ? [
          isSpared(sick, members, problems)
            ? "bring what is named back to health; a machine that cannot be repaired is made anew, alone, when its VM is gone " +
              `(az vm delete --resource-group ${groupWord(settings)} --name ${sick[0]!.name} --yes), this change is taken back, ` +
              "unless it is an upgrade that some machines have made, and pulumi up is run"
            : "bring what is named back to health, and delete no VM meanwhile, which may cost etcd its majority; where a step has not ended well, " +
              "pulumi up without this change goes on with it",
        ]
      : []),
    ...(problems.some((text) => text.includes(accessSetting))
      ? [
          settings.apiAccess === "private"
            ? "if this network does not lead to the private API: run pulumi up where one does, or by apiProxy (docs/landing-zone.md, Where Pulumi runs)"
            : `if ${accessSetting} keeps this network out: correct it and run pulumi up without this change, which touches no machine; ` +
              "then make the change",
        ]
      : []),
    ...(stray === undefined
      ? []
      : [`a Node whose machine is gone for good is deleted: kubectl delete node ${stray.name}`]),
    ...(areEtcds
      ? [
          "fix etcd as it is said above or in docs/troubleshooting.md; skipHealthCheckUntil would not help, since no machine can leave or be " +
            "upgraded before that",
        ]
      : []),
    ...(problems.length > 0 && !areEtcds && isSkippable
      ? [
          "if you know by other means that every control plane is well: " +
            `pulumi config set skipHealthCheckUntil ${inOneHour(now)}, and pulumi up before then`,
        ]
      : []),
  ].map((line) => `\n      - ${line}`);
  return (
    `this change would ${would.join(", ")}, and the cluster is not known to be well, so that it may cost etcd its majority:` +
    `${lines.join("")}\n    Nothing was changed. To go on:${ways.join("")}`
  );
}

const inOneHour = (now: string): string => compactTime(Date.parse(now) + 3_600_000);
