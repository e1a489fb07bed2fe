import { plainHardware } from "./azure/hardware";
import type { Certificates } from "./certificates";
import { adminKubeconfig } from "./kubeconfig";
import type { MachineArgs } from "./machine/machine";
import type { Plan } from "./plan/plan";
import type { MachinePlan } from "./settings/topology";

/** What the plan says of one machine, whichever its role. */
export const plannedMachine = (
  machine: MachinePlan,
  plan: Plan,
  certificates: Certificates,
): Omit<
  MachineArgs,
  "resourceGroup" | "subnetId" | "identityIds" | "initialization" | "endsWith" | "after"
> => ({
  settings: plan.settings,
  plan: machine,
  customData: plan.customData,
  retained: plan.retained.has(machine.name),
  current: plan.azure.machines.get(machine.name),
  exists: plan.initialization.exists,
  deallocates: plan.deallocated.has(machine.name),
  starts: plan.started.has(machine.name),
  stepRefusal: plan.stepRefusals.get(machine.name),
  hardware: plan.hardware.get(machine.name) ?? plainHardware,
  record: plan.machineRecords.get(machine.name)!,
  certificates,
  kubeconfig: adminKubeconfig(plan, certificates),
});
