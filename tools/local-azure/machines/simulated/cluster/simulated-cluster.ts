import * as fs from "node:fs";
import * as path from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import type { PayloadFile } from "../../../../../components/kubeadm/payload-file";
import { writeWhole } from "../../../../shared/files";
import type { ServicePorts, VirtualMachine } from "../../machines";
import type { OwnPrograms } from "../../own-programs";
import { components, freePorts, type Ports } from "../control-plane/static-pods";
import { Poller, reconcileCloudProvider } from "../nodes/cloud-provider";
import { Api, type Body, strategicPatch, unlessStatus } from "../api";
import { findSize } from "../../../arm/subscription/offers";
import { type Binaries, ControlPlane } from "../control-plane/control-plane";
import type { Etcd } from "../control-plane/etcd";
import type { KubeletCertificates } from "../control-plane/kubelet";
import { reconcileDisks } from "../nodes/disks";
import { podPath, reconcileKubelets } from "../nodes/kubelets";
import { endOf } from "../nodes/mirror-pods";
import { PodProcesses } from "../nodes/pod-processes";
import {
  type Ended,
  etcdVersionIn,
  isUnhealthy,
  type Member,
  type MemberComponent,
  Members,
  peerProblems,
  type PodResult,
  runEtcdctlPod,
  runSnapshotPod,
  runsPods,
} from "./members";
import type { ProcessStatus } from "../../supervisor";

interface ClusterRecord {
  readonly apiName: string;
  readonly ports: Ports;
  readonly members: readonly Member[];
}

export interface ClusterStatus {
  readonly apiName: string;
  readonly api: { readonly host: string; readonly port: number };
  readonly members: readonly Member[];
  readonly hasQuorum: boolean;
  readonly processes: readonly ProcessStatus[];
}

/** What a cluster must know of the machines around it. */
export interface SimulatedClusterOptions {
  readonly binaries: Binaries;
  /** Run in place of pods. */
  readonly programs: OwnPrograms;
  readonly log: (message: string) => void;
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  readonly kubeletOf: (name: string) => Api | undefined;
  readonly kubeletCertificates: KubeletCertificates;
  /** What a machine's own script does to save this etcd; nothing where it has none. */
  readonly snapshotBy: (
    name: string,
    cluster: SimulatedCluster,
  ) => (() => Promise<void>) | undefined;
  /** File of the authority that the local Azure identifies itself by. */
  readonly authority?: string;
  /** Where the local Azure answers, once it does. */
  readonly ports: () => ServicePorts | undefined;
}

const recordFile = "cluster.json";
const shownWithinMs = 120_000;
const pollMs = 200;
const podPollMs = 1000;

/**
 * One cluster: the processes that are its control plane, and the machines that count as its
 * members.
 *
 * Members after the first run nothing of their own. What they change is how many losses the cluster
 * survives: its API answers only while more than half of the listed members live.
 */
export class SimulatedCluster {
  readonly apiName: string;
  private members: Members;
  private readonly controlPlane: ControlPlane;
  private turn: Promise<unknown> = Promise.resolve();
  private changes: Promise<unknown> = Promise.resolve();
  private kubelets: Promise<unknown> = Promise.resolve();
  private readonly controllers: Poller;
  /** Runs until the cluster stops, since nothing wakes it when there is a pod to run. */
  private readonly podRunner: Poller;
  /** Where programs run in place of pods. */
  private readonly podProcesses?: PodProcesses;
  /** Pods that have been run, by their uid. */
  private readonly ran = new Set<string>();

  private constructor(
    private readonly folder: string,
    private readonly record: Omit<ClusterRecord, "members">,
    members: Members,
    private readonly options: SimulatedClusterOptions,
  ) {
    this.apiName = record.apiName;
    this.members = members;
    const { binaries, programs, log, kubeletCertificates } = options;
    this.controlPlane = new ControlPlane(
      folder,
      record.apiName,
      record.ports,
      binaries,
      log,
      kubeletCertificates,
      Object.keys(programs),
    );
    const { vmOf, kubeletOf, authority = "", ports } = options;
    if (Object.keys(programs).length > 0) {
      const own = { programs, authority, folder: path.join(folder, "pods") };
      this.podProcesses = new PodProcesses({
        ...own,
        ...{ vmOf, kubeletOf, ports, log },
      });
    }
    this.controllers = new Poller(
      async (logOnce) => {
        const isDue = await reconcileCloudProvider({
          api: this.superAdmin(),
          vmOf,
          kubeletOf,
          managesNodes: programs["azure-cloud-controller-manager"]?.() === undefined,
          log: logOnce,
        });
        return (await this.reconcileKubelets()).due || isDue;
      },
      (message) => log(`${record.apiName}: ${message}`),
    );
    this.podRunner = new Poller(
      async () => {
        await wait(podPollMs);
        // Also while nothing changes here: the node controller calls a pod not ready by a state of its Node that is
        // up to five seconds old, and a KWOK that has just started takes every Node once.
        const { nodes, pods } = await this.reconcileKubelets();
        await this.runPods(pods);
        const api = this.superAdmin();
        await this.podProcesses?.follow(pods, api, this.controlPlane.server(""));
        await reconcileDisks({ api, nodes, pods, vmOf, kubeletOf });
        return true;
      },
      (message) => log(`${record.apiName}: ${message}`),
    );
  }

  /** Initializes a cluster on its first control plane machine. What fails leaves nothing behind. */
  static async initialize(
    folder: string,
    {
      apiName,
      vm,
      files,
      configuration,
      snapshot,
    }: {
      apiName: string;
      vm: VirtualMachine;
      files: ReadonlyMap<string, string>;
      configuration: string;
      /** File of one that etcd begins with. */
      snapshot?: string;
    },
    options: SimulatedClusterOptions,
  ): Promise<SimulatedCluster> {
    const record = { apiName, ports: await freePorts() };
    const cluster = new SimulatedCluster(folder, record, Members.of(vm), options);
    try {
      await cluster.controlPlane.initialize(files, configuration, snapshot);
    } catch (error) {
      await cluster.controlPlane.wipe();
      throw error;
    }
    cluster.save();
    return cluster;
  }

  /** What an earlier daemon has left in this folder; undefined when it never finished initialization. */
  static async load(
    folder: string,
    options: SimulatedClusterOptions,
  ): Promise<SimulatedCluster | undefined> {
    const file = path.join(folder, recordFile);
    const initialized = fs.existsSync(file);
    const { members, ...record } = initialized
      ? (JSON.parse(fs.readFileSync(file, "utf8")) as ClusterRecord)
      : { apiName: "", ports: await freePorts(), members: [] };
    const cluster = new SimulatedCluster(folder, record, new Members(members), options);
    await cluster.controlPlane.endOrphans();
    await cluster.podProcesses?.endOrphans();
    if (!initialized) {
      await cluster.controlPlane.wipe();
      return undefined;
    }
    return cluster;
  }

  /** Configures the control plane anew; what runs with other arguments is started again. */
  upgrade = (files: ReadonlyMap<string, string>, configuration: string): Promise<void> =>
    this.afterOthers(async () => {
      await this.controlPlane.upgrade(files, configuration);
      await this.applyMembers(this.members);
    });

  /** Done when the API server has the keys that this file says. */
  loadEncryptionKeys = (file: PayloadFile): Promise<void> =>
    this.afterOthers(async () => {
      if (await this.controlPlane.loadEncryptionKeys(file)) await this.applyMembers(this.members);
    });

  /** Has the API server store every Secret once more. */
  async rewriteSecrets(): Promise<void> {
    const api = this.superAdmin();
    const { items } = await api.get("/api/v1/secrets");
    for (const secret of items as Body[]) {
      const { namespace, name } = secret.metadata;
      await api
        .put(`/api/v1/namespaces/${namespace}/secrets/${name}`, secret)
        .catch(unlessStatus(409))
        .catch(unlessStatus(404));
    }
  }

  upgradeCoreDns = (files: ReadonlyMap<string, string>): Promise<void> =>
    this.controlPlane.upgradeCoreDns(files);

  certificatesValidUntil = (): string => this.controlPlane.certificatesValidUntil();

  hasQuorum = (): boolean => this.members.haveQuorum;

  /** What a member of etcd says that it is: a release of the other minor is only said to run. */
  etcdVersionOf(vm: VirtualMachine): string {
    return etcdVersionIn(this.controlPlane.manifestOf("etcd", vm));
  }

  get etcd(): Etcd {
    return this.controlPlane.etcd;
  }

  /** The API for a client that trusts this CA. */
  server = (ca: string) => this.controlPlane.server(ca);

  /** The API for a client that trusts this CA and has no credential. */
  anonymously = (ca: string): Api => new Api(this.server(ca), {});

  superAdmin = (): Api => this.controlPlane.superAdmin();
  initialKubeconfig = (): string => this.controlPlane.initialKubeconfig();

  isMember = (vm: VirtualMachine): boolean => this.members.has(vm);

  /** One etcd stands for all members here; the first that lives is said to lead. */
  leads = ({ vmId }: VirtualMachine): boolean => this.members.living[0]?.vmId === vmId;

  /** etcd admits one learner at a time: control planes that join together wait for each other. */
  inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = this.turn.then(action);
    this.turn = result.catch(() => undefined);
    return result;
  }

  addMember(vm: VirtualMachine): void {
    this.members = this.members.with(vm);
    this.save();
  }

  /**
   * Removes what a machine of this name has left in the list of members; whether there was
   * something.
   */
  removeMember(vm: VirtualMachine): boolean {
    const before = this.members.list.length;
    this.members = this.members.without(vm);
    this.save();
    return this.members.list.length < before;
  }

  /** A machine of Azure's is gone. With the last living member, so is the cluster. */
  machineDeleted(vm: VirtualMachine): Promise<"gone" | "lives"> {
    this.members = this.members.withDeleted(vm);
    return this.afterOthers(() => this.applyDeletion());
  }

  /** A machine was switched on or off; done when the API shows it, if there is one then. */
  powerChanged = (vm: VirtualMachine): Promise<void> =>
    this.afterOthers(() => this.applyMembers(this.members.withPower(vm)));

  /** Makes a component of a member unhealthy; done when the API shows it, if there is one then. */
  injectFailure = (machine: string, part: MemberComponent): Promise<void> =>
    this.afterOthers(() => this.applyMembers(this.members.withFailure(machine, part)));

  /** Makes all components of a member healthy. */
  clearFailures = (machine: string): Promise<void> =>
    this.afterOthers(() => this.applyMembers(this.members.withoutFailures(machine)));

  private async applyMembers(members: Members): Promise<void> {
    this.members = members;
    this.save();
    await this.reconcileQuorum();
    if (!this.hasQuorum()) return;
    for (const until = Date.now() + shownWithinMs; Date.now() < until; await wait(pollMs)) {
      const { due } = await this.reconcileKubelets().catch(() => ({ due: !this.isFull }));
      if (!due) return;
    }
  }

  /** Of changes that come together, the end of one must not stop the API that another waits for. */
  private afterOthers<T>(change: () => Promise<T>): Promise<T> {
    const result = this.changes.then(change);
    this.changes = result.catch(() => undefined);
    return result;
  }

  /** The problem that the bootstrap script sees with a machine's own etcd and API server. */
  problemAt(vm: VirtualMachine): string | undefined {
    const member = this.members.list.find(({ vmId }) => vmId === vm.vmId);
    if (member && isUnhealthy(member, "etcd")) return "etcd does not answer at 127.0.0.1:2381";
    if (member && isUnhealthy(member, "kube-apiserver")) {
      return "the API server does not answer at 127.0.0.1:6443";
    }
    return this.isFull ? "etcd is not healthy: alarm NOSPACE" : undefined;
  }

  /** What a machine's own kubelet tells it of static pods that are not Ready. */
  unreadyAt({ name, vmId }: VirtualMachine): string | undefined {
    const member = this.members.list.find((one) => one.vmId === vmId);
    const unready = components.filter((component) => member && isUnhealthy(member, component));
    if (unready.length === 0) return undefined;
    const pods = unready.map((component) => `${component}-${name}`);
    return `not Ready for the kubelet: ${pods.join(", ")}`;
  }

  /** The problems that it sees with the other control planes. */
  async peerProblems({ name }: VirtualMachine, awaitsReady: boolean): Promise<string[]> {
    const api = this.superAdmin();
    const [nodes, pods] = await Promise.all([
      api.get("/api/v1/nodes"),
      api.get("/api/v1/namespaces/kube-system/pods"),
    ]);
    const seen = { own: name, nodes: nodes.items, pods: pods.items, awaitsReady };
    return peerProblems({ ...seen, members: this.members.list });
  }

  /**
   * Whether a member has raised the alarm that it has no space, at which etcd takes no writes
   * anywhere.
   */
  private get isFull(): boolean {
    return this.members.living.some((member) => isUnhealthy(member, "etcd-space"));
  }

  /**
   * One at a time: another would undo what a member's change has just done, or take what is
   * half done for the end.
   */
  private reconcileKubelets(): ReturnType<typeof reconcileKubelets> {
    const { vmOf, kubeletOf } = this.options;
    const result = this.kubelets.then(() =>
      reconcileKubelets({
        api: this.superAdmin(),
        members: this.members.list,
        vmOf,
        kubeletOf,
        manifestOf: (component, vm) => this.controlPlane.manifestOf(component, vm),
        kwokSince: () => this.controlPlane.kwokSince,
        restartKwok: () => this.controlPlane.restartKwok(),
      }),
    );
    this.kubelets = result.catch(() => undefined);
    return result;
  }

  private async applyDeletion(): Promise<"gone" | "lives"> {
    if (this.members.allGone) {
      await this.wipe();
      return "gone";
    }
    this.save();
    await this.reconcileQuorum();
    return "lives";
  }

  /** Starts or stops the API, as etcd's majority has it. */
  async reconcileQuorum(): Promise<void> {
    if (this.hasQuorum()) {
      await this.controlPlane.start();
      await this.controlPlane.etcd.limitSpace(this.isFull);
      this.wakeControllers();
    } else if (this.controlPlane.isUp()) {
      this.options.log(`${this.apiName}: etcd has lost its majority, and the API is gone`);
      await this.pauseControllers();
      await this.controlPlane.stopApi();
    }
  }

  /** A machine is down for a moment; if etcd has no majority without it, so is the API. */
  async rebooted(vm: VirtualMachine): Promise<void> {
    if (this.isMember(vm) && !this.members.withDeleted(vm).haveQuorum) {
      await this.stop();
      await this.reconcileQuorum();
    }
  }

  /** Ends everything and leaves nothing. */
  async wipe(): Promise<void> {
    await this.pauseControllers();
    await this.controlPlane.wipe();
  }

  async stop(): Promise<void> {
    await this.pauseControllers();
    await this.controlPlane.stop();
  }

  close(): void {
    this.controlPlane.close();
    this.podProcesses?.close();
  }

  status(): ClusterStatus {
    const { host, port } = this.server("");
    return {
      apiName: this.apiName,
      api: { host, port },
      members: this.members.list,
      hasQuorum: this.hasQuorum(),
      processes: this.controlPlane.processes(),
    };
  }

  /** Has simulated kubelets and cloud provider work until nothing is due. */
  wakeControllers(): void {
    this.podProcesses?.resume();
    this.controllers.wake();
    this.podRunner.wake();
  }

  private async pauseControllers(): Promise<void> {
    this.controllers.stop();
    this.podRunner.stop();
    await this.podProcesses?.pause();
  }

  /** Ends pods that run etcdctl on a control plane, or save etcd there, as their kubelets would. */
  private async runPods(all: readonly Body[]): Promise<void> {
    const isMeant = ({ metadata, spec, status }: Body): boolean =>
      metadata.namespace === "kube-system" &&
      spec.restartPolicy === "Never" &&
      status.phase === "Running";
    for (const pod of all.filter(isMeant)) {
      const host = this.members.list.find(({ machine }) => machine === pod.spec.nodeName);
      if (host === undefined || !runsPods(host) || this.ran.has(pod.metadata.uid)) continue;
      const ended = this.runEtcdctl(pod) ?? (await this.runSnapshot(pod));
      if (ended === undefined) continue;
      this.ran.add(pod.metadata.uid);
      await this.superAdmin()
        .patch(`${podPath(pod)}/status`, endOf(pod, ended), strategicPatch)
        .catch(unlessStatus(404));
    }
  }

  private runEtcdctl(pod: Body): Ended | undefined {
    const ended = runEtcdctlPod(pod, this.members, {
      vmOf: this.options.vmOf,
      versionOf: (vm) => this.etcdVersionOf(vm),
    });
    if (ended === undefined) return undefined;
    this.members = ended.members;
    this.save();
    for (const [container, text] of ended.outputs) {
      this.controlPlane.kubelets.keepLog(pod, container, text);
    }
    return ended;
  }

  private async runSnapshot(pod: Body): Promise<PodResult | undefined> {
    const { vmOf, snapshotBy } = this.options;
    const { nodeName } = pod.spec;
    const { architecture } = findSize(vmOf(nodeName)?.size ?? "") ?? {};
    const said = await runSnapshotPod(pod, snapshotBy(nodeName, this), architecture);
    if (said === undefined) return undefined;
    this.controlPlane.kubelets.keepLog(pod, pod.spec.containers[0].name, said.output);
    return said;
  }

  private save(): void {
    const record: ClusterRecord = { ...this.record, members: this.members.list };
    writeWhole(path.join(this.folder, recordFile), JSON.stringify(record, null, 1));
  }
}
