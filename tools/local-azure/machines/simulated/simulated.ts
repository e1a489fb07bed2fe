import type {
  PowerAction,
  ScriptResult,
  ServicePorts,
  SimulatedBackend,
  VirtualMachine,
} from "../machines";
import type { OwnPrograms } from "../own-programs";
import type { ClusterStatus } from "./cluster/simulated-cluster";
import type { Binaries } from "./control-plane/control-plane";
import { MachineRegistry } from "./machine-registry";
import { memberComponents } from "./cluster/members";
import { SimulatedBootstrap, type Limits } from "./bootstrap/simulated-bootstrap";
import { Steps } from "./bootstrap/steps";
import { generalize, isGeneralize } from "./bootstrap/payload";

const minute = 60_000;
const defaultLimits: Limits = { api: 5 * minute, ready: 5 * minute, peers: 2 * minute };

/**
 * Simulated machines: a real control plane as processes of this host, and a Node for each
 * machine.
 *
 * Real are kubeadm's certificates, manifests and objects, the components with the program's own
 * arguments, and every question of trust and rights when a machine joins. Simulated are the machines
 * themselves: kubelets (a certificate and a Node, kept alive by KWOK), the work of the cloud
 * provider's pods where no program runs in their place, and etcd's members after the first.
 */
export class SimulatedMachines implements SimulatedBackend {
  readonly backend = "simulated";
  private readonly registry: MachineRegistry;
  private readonly bootstrap: SimulatedBootstrap;
  private readonly log: (message: string) => void;

  /** @param options.limits how long a script waits; a test that waits in vain wants less */
  constructor(options: {
    readonly stateDir: string;
    readonly binaries: Binaries;
    readonly log: (message: string) => void;
    readonly limits?: Limits;
    /** Run in place of pods. @default all pods are simulated */
    readonly programs?: OwnPrograms;
    /** File of the authority that the local Azure identifies itself by. */
    readonly authority?: string;
  }) {
    const { stateDir, binaries, log, limits = defaultLimits, programs = {}, authority } = options;
    this.log = log;
    this.registry = new MachineRegistry(stateDir, binaries, log, programs, authority);
    this.bootstrap = new SimulatedBootstrap(this.registry, binaries, limits);
  }

  /** Where the API of this name listens on this host; the name itself resolves to nothing here. */
  apiAddress(apiName: string): { readonly host: string; readonly port: number } | undefined {
    return this.registry.clusters.get(apiName)?.status().api;
  }

  /**
   * Makes a component of a control plane unhealthy. It stays so until failures are cleared, or
   * its machine is gone.
   */
  async injectFailure(machine: string, component: string): Promise<void> {
    const known = memberComponents.find((one) => one === component);
    if (known === undefined) {
      throw new Error(`component is ${component}, expected one of ${memberComponents.join(", ")}`);
    }
    await this.registry.clusterOfMember(machine).injectFailure(machine, known);
  }

  async clearFailures(machine: string): Promise<void> {
    await this.registry.clusterOfMember(machine).clearFailures(machine);
  }

  /** Saves a snapshot from a control plane, as its timer would. */
  async snapshot(name: string): Promise<void> {
    const cluster = this.registry.clusterOfMember(name);
    const snapshots = this.registry.snapshotsOn(this.registry.named(name)!);
    if (snapshots === undefined) throw new Error(`${name} takes no snapshots (zoned:etcdBackups)`);
    await snapshots.save(cluster);
  }

  status(): readonly ClusterStatus[] {
    return [...this.registry.clusters.values()].map((cluster) => cluster.status());
  }

  async openServices(ports: ServicePorts): Promise<void> {
    this.registry.ports = ports;
  }

  async create(vm: VirtualMachine): Promise<void> {
    this.registry.add(vm);
  }

  async runScript(vm: VirtualMachine, script: string): Promise<ScriptResult> {
    const steps = new Steps(vm.name);
    try {
      const machine = this.registry.find(vm);
      if (machine === undefined) {
        throw new Error(`there is no machine ${vm.name} to run a script on`);
      }
      machine.update(vm);
      if (isGeneralize(script)) {
        return { ...steps.succeeded(), stdout: await generalize(machine, steps) };
      }
      await this.bootstrap.run(machine, script, steps);
      return steps.succeeded();
    } catch (error) {
      const failure = error as Error;
      this.log(`${vm.name}: ${failure.message}`);
      return steps.failed(failure);
    }
  }

  async restart(vm: VirtualMachine): Promise<void> {
    const machine = this.registry.find(vm);
    if (machine !== undefined) {
      machine.update(vm);
      if (machine.joined) machine.requirePeerCheck();
      await this.registry.clusterOf(machine)?.rebooted(vm);
    }
  }

  hasShutDown = (vm: VirtualMachine): boolean => this.registry.find(vm)?.hasShutDown === true;

  /** What is on a simulated machine's disk is the cluster's alone. */
  async capture(): Promise<void> {}

  async power(vm: VirtualMachine, action: PowerAction): Promise<void> {
    const machine = this.registry.find(vm);
    if (machine === undefined) return;
    if (action === "redeploy") {
      await this.power(vm, "deallocate");
      return this.power(vm, "start");
    }
    const isOff = action === "powerOff" || action === "deallocate";
    if (machine.vm.isOff === isOff) return action === "restart" ? this.restart(vm) : undefined;
    machine.update({ ...vm, isOff });
    if (machine.joined) machine.requirePeerCheck();
    await this.registry.clusterOf(machine)?.powerChanged(machine.vm);
  }

  async remove(vm: VirtualMachine): Promise<void> {
    const machine = this.registry.find(vm);
    if (machine !== undefined) {
      await this.registry.remove(machine);
    }
  }

  resume(vms: readonly VirtualMachine[]): Promise<void> {
    return this.registry.resume(vms);
  }

  async stop(): Promise<void> {
    await this.bootstrap.stop();
    await this.registry.stop();
  }
}
