import { AzureState, MachineFacts } from "./azure-state";
import { Settings } from "./settings";
import { Machine } from "./topology";

/** What an earlier `up` that ended well wrote into the stack's outputs, where nobody cleans up tags. */
export interface Memory {
  readonly initialization: string;
  /** vmId of the machine that ran `kubeadm init`. */
  readonly initialControlPlane?: string;
  readonly kubernetesVersion: string;
  readonly controlPlanes: number;
  readonly proxyMode?: Settings["proxyMode"];
  /** The mode before that one. */
  readonly proxyModeBefore?: Settings["proxyMode"];
  /** By name of the VM. */
  readonly machines: Readonly<Record<string, MachineMemory>>;
}

/** The memory, unless it is that of an earlier initialization. */
export const memoryOf = (id: string, memory: Memory | undefined): Memory | undefined =>
  memory?.initialization === id ? memory : undefined;

export interface MachineMemory {
  /** Hash of what a change of would replace the machine. */
  readonly generation: string;
  /** When an `up` ordered the machine. */
  readonly made: string;
  /** When an `up` ordered the run of its bootstrap step. */
  readonly run: string;
}

/** What an `up` would do to a machine that exists: no pod on it goes on undisturbed. */
export interface MachineChange {
  readonly machine: string;
  readonly does: "replace" | "resize" | "remove";
}

/** Whether a machine was made for this initialization; a missing tag says nothing. */
export const isMadeFor = (id: string, { initialization = id }: MachineFacts): boolean =>
  initialization === id;

/** Whether a machine would be replaced; what neither Azure nor the outputs know has not changed. */
export const isReplaced = (
  machine: MachineFacts,
  memory: MachineMemory | undefined,
  wanted: { readonly id: string; readonly generation: string },
): boolean =>
  !isMadeFor(wanted.id, machine) ||
  (machine.generation ?? memory?.generation ?? wanted.generation) !== wanted.generation;

/**
 * Everything that this `up` would do to the cluster's machines, in their order; those to be removed come last.
 * What an earlier initialization has left is no part of the cluster.
 */
export function machineChanges(
  id: string,
  wanted: readonly { readonly plan: Machine; readonly generation: string }[],
  azure: Pick<AzureState, "machines">,
  memory: Memory | undefined,
): MachineChange[] {
  const machines = new Map(
    [...azure.machines].filter(([, machine]) => isMadeFor(id, machine)),
  );
  const stays = new Set(wanted.map(({ plan }) => plan.name));
  return [
    ...wanted.flatMap(({ plan, generation }): MachineChange[] => {
      const machine = machines.get(plan.name);
      if (machine === undefined) return [];
      if (isReplaced(machine, memory?.machines[plan.name], { id, generation })) {
        return [{ machine: plan.name, does: "replace" }];
      }
      return machine.size.toLowerCase() === plan.size.toLowerCase()
        ? []
        : [{ machine: plan.name, does: "resize" }];
    }),
    ...[...machines.keys()]
      .filter((name) => !stays.has(name))
      .map((machine): MachineChange => ({ machine, does: "remove" })),
  ];
}
