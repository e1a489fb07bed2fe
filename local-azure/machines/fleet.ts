import * as fs from "node:fs";
import * as path from "node:path";

import { Api } from "./api";
import { Cluster, type Surroundings } from "./cluster";
import type { Binaries } from "./control-plane";
import { Guest } from "./guest";
import type { VirtualMachine } from "./machines";

const foldersIn = (folder: string): string[] =>
  fs.existsSync(folder) ? fs.readdirSync(folder).map((name) => path.join(folder, name)) : [];

/** All simulated machines and the clusters that they have become, with what is on disk of both. */
export class Fleet {
  readonly clusters = new Map<string, Cluster>();
  readonly surroundings: Surroundings;
  private readonly guests = new Map<string, Guest>();

  constructor(
    private readonly stateDir: string,
    binaries: Binaries,
    private readonly log: (message: string) => void,
  ) {
    this.surroundings = {
      binaries,
      log,
      vmOf: (name) => this.named(name)?.vm,
      kubeletOf: (name) => this.kubeletOf(this.named(name)),
    };
  }

  add(vm: VirtualMachine): void {
    this.guests.set(vm.id, Guest.create(this.guestsFolder, vm));
  }

  find = (vm: VirtualMachine): Guest | undefined => this.guests.get(vm.id);

  /** The cluster that a machine has joined, while it lives. */
  clusterOf = (guest: Guest): Cluster | undefined => this.clusters.get(guest.joined?.apiName ?? "");

  /** The cluster of a control plane of this name, as whoever makes it sick needs it. */
  clusterOfMember(name: string): Cluster {
    const guest = this.named(name);
    const cluster = guest && this.clusterOf(guest);
    if (guest && cluster?.isMember(guest.vm)) return cluster;
    throw new Error(`${name} is no control plane that is a member of a cluster`);
  }

  clusterFolder = (apiName: string): string => path.join(this.clustersFolder, apiName);

  /** The API as this machine's kubelet reaches it. */
  kubeletOf(guest: Guest | undefined): Api | undefined {
    const joined = guest?.joined;
    const cluster = guest && this.clusterOf(guest);
    return joined && cluster && new Api(cluster.server(joined.caCert), joined.kubelet);
  }

  async remove(guest: Guest): Promise<void> {
    const { vm } = guest;
    const cluster = this.clusterOf(guest);
    this.guests.delete(vm.id);
    guest.remove();
    if (cluster?.isMember(vm)) {
      if ((await cluster.lose(vm)) === "gone") {
        this.log(`${cluster.apiName}: the last control plane is gone, and the cluster with it`);
        this.clusters.delete(cluster.apiName);
      }
    } else if (cluster?.hasQuorum()) {
      cluster.play();
    }
  }

  /** Reads what an earlier daemon left, ends its processes, and starts those of the machines that are still there. */
  async resume(vms: readonly VirtualMachine[]): Promise<void> {
    for (const folder of foldersIn(this.clustersFolder)) {
      const cluster = await Cluster.load(folder, this.surroundings);
      if (cluster) {
        this.clusters.set(cluster.apiName, cluster);
      }
    }
    const present = new Map(vms.map((vm) => [vm.vmId, vm]));
    for (const guest of foldersIn(this.guestsFolder).flatMap(
      (folder) => Guest.load(folder) ?? [],
    )) {
      const vm = present.get(guest.vm.vmId);
      if (vm) {
        guest.update(vm);
        this.guests.set(vm.id, guest);
      } else {
        await this.remove(guest);
      }
    }
    for (const vm of vms.filter(({ id }) => !this.guests.has(id))) {
      this.add(vm);
    }
    await Promise.all([...this.clusters.values()].map((cluster) => cluster.obeyQuorum()));
  }

  async stop(): Promise<void> {
    for (const guest of this.guests.values()) {
      guest.stop();
    }
    const clusters = [...this.clusters.values()];
    await Promise.all(clusters.map((cluster) => cluster.stop()));
    for (const cluster of clusters) {
      cluster.close();
    }
    this.clusters.clear();
    this.guests.clear();
  }

  private get clustersFolder(): string {
    return path.join(this.stateDir, "clusters");
  }

  private get guestsFolder(): string {
    return path.join(this.stateDir, "guests");
  }

  private named = (name: string): Guest | undefined =>
    [...this.guests.values()].find((guest) => guest.vm.name === name);
}
