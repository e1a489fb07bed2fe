import { setTimeout as sleep } from "node:timers/promises";

import { parsePayload } from "../../../components/machine/payload";
import type { Machines, ScriptResult, VirtualMachine } from "../../local-azure/machines/machines";

/** Seconds for the steps on a machine. Assumed, not measured on Azure. */
export const assumed = {
  /** Packages, modules and images, from the moment the VM is there. */
  firstBoot: 150,
  /** What is left of that on a machine of a gallery image that has them. */
  imageBoot: 15,
  kubeadmInit: 60,
  controlPlaneJoin: 60,
  workerJoin: 30,
} as const;

export const bootSeconds = (isOfGallery: boolean): number =>
  isOfGallery ? assumed.imageBoot : assumed.firstBoot;

/** Which of the assumed times a bootstrap script takes. */
function scriptSeconds(script: string, vmId: string): number {
  const { role, initialControlPlane } = parsePayload(script);
  if (role === "worker") return assumed.workerJoin;
  return initialControlPlane?.toLowerCase() === vmId.toLowerCase()
    ? assumed.kubeadmInit
    : assumed.controlPlaneJoin;
}

/**
 * Machines that take a share of the assumed times, or their real time where that is longer.
 */
export class PacedMachines implements Machines {
  private readonly booted = new Map<string, Promise<void>>();

  constructor(
    private readonly machines: Machines,
    private readonly factor: number,
  ) {}

  async create(vm: VirtualMachine): Promise<void> {
    await this.machines.create(vm);
    this.booted.set(vm.vmId, this.pause(bootSeconds(vm.image.startsWith("/"))));
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
  hasShutDown = (vm: VirtualMachine): boolean => this.machines.hasShutDown(vm);
  capture = (vm: VirtualMachine, image: string): Promise<void> => this.machines.capture(vm, image);
  remove = (vm: VirtualMachine): Promise<void> => this.machines.remove(vm);
  resume = (vms: readonly VirtualMachine[]): Promise<void> => this.machines.resume(vms);
  stop = (): Promise<void> => this.machines.stop();

  private pause = (seconds: number): Promise<void> => sleep(seconds * 1000 * this.factor);
}
