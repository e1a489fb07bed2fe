import * as fs from "node:fs";
import * as path from "node:path";

import type { ServicePorts, VirtualMachine } from "../machines";
import { Api } from "./api";
import { Snapshots } from "./bootstrap/snapshots";
import { SimulatedCluster, type SimulatedClusterOptions } from "./cluster/simulated-cluster";
import type { Binaries } from "./control-plane/control-plane";
import { SimulatedMachine } from "./machine";

const foldersIn = (folder: string): string[] =>
  fs.existsSync(folder) ? fs.readdirSync(folder).map((name) => path.join(folder, name)) : [];

/** All simulated machines and the clusters that they have become, with what is on disk of both. */
export class MachineRegistry {
  readonly clusters = new Map<string, SimulatedCluster>();
  readonly clusterOptions: SimulatedClusterOptions;
  /** Where the local Azure answers, once it does. */
  ports?: ServicePorts;
  private readonly machines = new Map<string, SimulatedMachine>();

  constructor(
    private readonly stateDir: string,
    binaries: Binaries,
    private readonly log: (message: string) => void,
    programs: SimulatedClusterOptions["programs"],
    authority?: string,
  ) {
    this.clusterOptions = {
      programs,
      authority,
      binaries,
      log,
      vmOf: (name) => this.named(name)?.vm,
      kubeletOf: (name) => this.kubeletOf(this.named(name)),
      ports: () => this.ports,
      kubeletCertificates: (address) => {
        const machine = [...this.machines.values()].find(({ vm }) => vm.privateAddress === address);
        return {
          serving: machine?.kubeletCertificate(),
          client: machine?.joined?.kubelet.cert,
        };
      },
      snapshotBy: (name, cluster) => {
        const machine = this.named(name);
        const snapshots = machine && this.snapshotsOn(machine);
        return snapshots && (() => snapshots.save(cluster));
      },
    };
  }

  add(vm: VirtualMachine): void {
    this.machines.set(vm.id, SimulatedMachine.create(this.machinesFolder, vm));
  }

  find = (vm: VirtualMachine): SimulatedMachine | undefined => this.machines.get(vm.id);

  /** As the machine's last payload has them; undefined where it brought none. */
  snapshotsOn = (machine: SimulatedMachine): Snapshots | undefined =>
    Snapshots.on(machine, () => ({
      proxy: this.ports!.proxy,
      authority: this.clusterOptions.authority!,
    }));

  /** The cluster that a machine has joined, while it lives. */
  clusterOf = (machine: SimulatedMachine): SimulatedCluster | undefined =>
    this.clusters.get(machine.joined?.apiName ?? "");

  /** The cluster of a control plane of this name, for injecting failures. */
  clusterOfMember(name: string): SimulatedCluster {
    const machine = this.named(name);
    const cluster = machine && this.clusterOf(machine);
    if (machine && cluster?.isMember(machine.vm)) return cluster;
    throw new Error(`${name} is no control plane that is a member of a cluster`);
  }

  /** The machine of this name that Azure has now. */
  named = (name: string): SimulatedMachine | undefined =>
    [...this.machines.values()].find((machine) => machine.vm.name === name);

  /** Ends what is left of a cluster, to make room for another of this name. */
  async discard(apiName: string): Promise<void> {
    const cluster = this.clusters.get(apiName);
    this.clusters.delete(apiName);
    await cluster?.wipe();
  }

  clusterFolder = (apiName: string): string => path.join(this.clustersFolder, apiName);

  /** The API as this machine's kubelet reaches it. */
  kubeletOf(machine: SimulatedMachine | undefined): Api | undefined {
    const joined = machine?.joined;
    const cluster = machine && this.clusterOf(machine);
    return joined && cluster && new Api(cluster.server(joined.caCert), joined.kubelet);
  }

  async remove(machine: SimulatedMachine): Promise<void> {
    const { vm } = machine;
    const cluster = this.clusterOf(machine);
    this.machines.delete(vm.id);
    machine.remove();
    if (cluster?.isMember(vm)) {
      if ((await cluster.machineDeleted(vm)) === "gone") {
        this.log(`${cluster.apiName}: the last control plane is gone, and the cluster with it`);
        this.clusters.delete(cluster.apiName);
      }
    } else if (cluster?.hasQuorum()) {
      cluster.wakeControllers();
    }
  }

  /**
   * Reads what an earlier daemon left, ends its processes, and starts those of the machines that
   * are still there.
   */
  async resume(vms: readonly VirtualMachine[]): Promise<void> {
    for (const folder of foldersIn(this.clustersFolder)) {
      const cluster = await SimulatedCluster.load(folder, this.clusterOptions);
      if (cluster) {
        this.clusters.set(cluster.apiName, cluster);
      }
    }
    const present = new Map(vms.map((vm) => [vm.vmId, vm]));
    for (const machine of foldersIn(this.machinesFolder).flatMap(
      (folder) => SimulatedMachine.load(folder) ?? [],
    )) {
      const vm = present.get(machine.vm.vmId);
      if (vm) {
        machine.update(vm);
        this.machines.set(vm.id, machine);
      } else {
        await this.remove(machine);
      }
    }
    for (const vm of vms.filter(({ id }) => !this.machines.has(id))) {
      this.add(vm);
    }
    await Promise.all([...this.clusters.values()].map((cluster) => cluster.reconcileQuorum()));
  }

  async stop(): Promise<void> {
    for (const machine of this.machines.values()) {
      machine.stop();
    }
    const clusters = [...this.clusters.values()];
    await Promise.all(clusters.map((cluster) => cluster.stop()));
    for (const cluster of clusters) {
      cluster.close();
    }
    this.clusters.clear();
    this.machines.clear();
  }

  private get clustersFolder(): string {
    return path.join(this.stateDir, "clusters");
  }

  private get machinesFolder(): string {
    return path.join(this.stateDir, "machines");
  }
}
