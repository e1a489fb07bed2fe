import { groupWord } from "../azure/resource-names";
import { type AzureState, isOff } from "../azure/state";
import { isSameSize } from "../azure/size-offers";
import type { Initialization } from "./initialization";
import { isMemberOf, type MachineChange } from "./machine-changes";
import type { Settings } from "../settings/settings";
import { isControlPlaneName, type MachinePlan } from "../settings/topology";

/**
 * Names of the machines that are off and that this update starts: those that get another size, and those
 * that an earlier update has deallocated for it and did not come to start.
 *
 * @param retained machines that exist and stay
 */
export const startedMachines = (
  retained: readonly MachinePlan[],
  { machines }: Pick<AzureState, "machines">,
): string[] =>
  retained
    .filter(({ name, size }) => {
      const now = machines.get(name)!;
      const { drained, bootstrap, stoppedForResize } = now;
      const isUnfinished =
        stoppedForResize || (drained !== undefined && drained !== bootstrap?.drained);
      return isOff(now) && (!isSameSize(now.size, size) || isUnfinished);
    })
    .map(({ name }) => name);

export interface StoppedArgs {
  readonly settings: Pick<Settings, "clusterName" | "resourceGroup">;
  readonly initialization: Pick<Initialization, "id" | "exists" | "isRestoring">;
  readonly azure: Pick<AzureState, "machines">;
  /** Machines that exist and stay. */
  readonly retained: readonly MachinePlan[];
  readonly changes: readonly MachineChange[];
  /** Names of those that this update starts. */
  readonly started: ReadonlySet<string>;
}

interface Stopped {
  /** Names of the machines that are off, and that this update does not start. */
  readonly off: readonly string[];
  /** Why this update must not begin: all that has to be started, in one sentence; or nothing. */
  readonly problems: readonly string[];
  /**
   * By name of a machine that is off: the same, if its step would run for another reason, as for what
   * another release of this program runs there, or for a kubelet's certificate of another year.
   */
  readonly stepRefusals: ReadonlyMap<string, string>;
}

/**
 * What this update needs of machines that are off: an API, and each whose bootstrap step it would run.
 */
export function stoppedMachines(args: StoppedArgs): Stopped {
  const { settings, initialization, azure, retained, changes, started } = args;
  const { id, exists, isRestoring } = initialization;
  const members = [...azure.machines]
    .filter(([name, machine]) => isControlPlaneName(settings, name) && isMemberOf(id, machine))
    .map(([name]) => name);
  const isSilent = (name: string) => isOff(azure.machines.get(name)!);
  const off = [...new Set([...members, ...retained.map(({ name }) => name)])].filter(
    (name) => isSilent(name) && !started.has(name),
  );

  const hasMajority = members.filter((name) => !isSilent(name)).length * 2 > members.length;
  // An only control plane that this update starts brings the API back by itself.
  const isStarted = members.length === 1 && started.has(members[0]!);
  const lacksApi = exists && !isRestoring && members.length > 0 && !hasMajority && !isStarted;
  const reasonOf = (name: string): string | undefined => {
    if (lacksApi && members.includes(name)) return "no API answers without it";
    if (!retained.some((one) => one.name === name)) return undefined;
    const does = changes.find(({ machine }) => machine === name)?.action;
    if (does !== undefined) return `this update would ${does} it`;
    const ran = azure.machines.get(name)!.bootstrap?.state === "Succeeded";
    return ran ? undefined : "its bootstrap step has to run again";
  };
  const reasons = new Map(off.map((name) => [name, reasonOf(name)]));
  const isNeeded = [...reasons.values()].some((reason) => reason !== undefined);
  const stepRefusals = off
    .filter((name) => retained.some((one) => one.name === name))
    .map((name): [string, string] => {
      const all = off.map((one): [string, string | undefined] => [
        one,
        one === name ? "its bootstrap step would run" : undefined,
      ]);
      return [name, stoppedText(settings, azure, new Map(all))];
    });
  return {
    off,
    problems: isNeeded ? [stoppedText(settings, azure, reasons)] : [],
    stepRefusals: new Map(stepRefusals),
  };
}

/** What is off, why it is needed, and what starts it. */
function stoppedText(
  settings: StoppedArgs["settings"],
  { machines }: Pick<AzureState, "machines">,
  reasons: ReadonlyMap<string, string | undefined>,
): string {
  const names = [...reasons.keys()];
  const states = names.map((name) => {
    const reason = reasons.get(name);
    return `${name} is ${machines.get(name)!.power}${reason === undefined ? "" : ` (${reason})`}`;
  });
  return `${states.join(", ")}: ${startCommand(groupWord(settings), names)}, then run pulumi up again`;
}

/** What starts these machines. */
export const startCommand = (group: string, names: readonly string[]): string =>
  names.length === 1
    ? `az vm start --resource-group ${group} --name ${names[0]}`
    : `for name in ${names.join(" ")}; do az vm start --resource-group ${group} --name $name; done`;
