import { setTimeout as sleep } from "node:timers/promises";

import { payloadOf } from "../local-azure/machines/payload";
import type { Machines, ScriptResult, VirtualMachine } from "../local-azure/machines/machines";

/** What happens on a machine, in seconds. Assumed: nobody here has measured it on Azure. */
export const assumed = {
  /** Packages, modules and images, from the moment the VM is there. */
  firstBoot: 150,
  kubeadmInit: 60,
  controlPlaneJoin: 60,
  workerJoin: 30,
} as const;

/** Which of the assumed times a bootstrap script takes. */
export function scriptSeconds(script: string, vmId: string): number {
  const { role, founder } = payloadOf(script);
  if (role === "worker") return assumed.workerJoin;
  return founder?.toLowerCase() === vmId.toLowerCase()
    ? assumed.kubeadmInit
    : assumed.controlPlaneJoin;
}

/** Machines that take a share of the assumed times, or as long as they really need where that is more. */
export class PacedMachines implements Machines {
  private readonly booted = new Map<string, Promise<void>>();

  constructor(
    private readonly machines: Machines,
    private readonly factor: number,
  ) {}

  async create(vm: VirtualMachine): Promise<void> {
    await this.machines.create(vm);
    this.booted.set(vm.vmId, this.pause(assumed.firstBoot));
  }

  async runScript(vm: VirtualMachine, script: string): Promise<ScriptResult> {
    await this.booted.get(vm.vmId);
    const [result] = await Promise.all([
      this.machines.runScript(vm, script),
      this.pause(scriptSeconds(script, vm.vmId)),
    ]);
    return result;
  }

  restart = (vm: VirtualMachine): Promise<void> => this.machines.restart(vm);
  remove = (vm: VirtualMachine): Promise<void> => this.machines.remove(vm);
  resume = (vms: readonly VirtualMachine[]): Promise<void> => this.machines.resume(vms);
  stop = (): Promise<void> => this.machines.stop();

  private pause = (seconds: number): Promise<void> => sleep(seconds * 1000 * this.factor);
}
