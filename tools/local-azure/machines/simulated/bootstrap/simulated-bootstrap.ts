import { setTimeout as wait } from "node:timers/promises";

import { parsePayload, type Payload } from "../../../../../components/machine/payload";
import { validUntil } from "../../../../../components/machine/timers";
import type { VirtualMachine } from "../../machines";
import { Api, ApiError, type Body, kubeconfigOf, mergePatch } from "../api";
import { SimulatedCluster } from "../cluster/simulated-cluster";
import type { Binaries } from "../control-plane/control-plane";
import { KubeadmCommand } from "../control-plane/kubeadm-command";
import type { MachineRegistry } from "../machine-registry";
import type { Joined, SimulatedMachine } from "../machine";
import { sizeLabel } from "../nodes/cloud-provider";
import { cniAnnotation } from "../nodes/kwok";
import { isOf, isReady, nodePath, readyText } from "../nodes/node";
import { join, registerInitial } from "./join";
import { isSignedBy, kubeletCertificate } from "../control-plane/kubelet";
import {
  caFile,
  checkFirstBoot,
  discoveryFile,
  encryptionFile,
  fileOf,
  filesOf,
  hasTask,
  initFile,
  trustedOf,
} from "./payload";
import { type Steps, TimedOut } from "./steps";
import {
  awaitTurn,
  checkEtcd,
  drain,
  endTurn,
  hasOtherVersion,
  isDrained,
  restartPods,
  undoDrain,
  unpublished,
  upgradeControlPlane,
  upgradeKubelet,
} from "./upgrade";

/** How long a script waits, in milliseconds; at 0 it looks once. */
export interface Limits {
  readonly api: number;
  readonly ready: number;
  readonly peers: number;
}

const pollMs = 250;

/**
 * What cloud-init/bootstrap.sh does, for simulated machines: the same steps under the same names,
 * in the same order. tests/unit/cloud-init/simulated-twin.test.ts compares the two.
 */
export class SimulatedBootstrap {
  /** Initializations under way, by the API's name. */
  private readonly initializations = new Map<string, Promise<unknown>>();
  /** What saves etcd by the clock, by the machine's id; gone with the daemon. */
  private readonly timers = new Map<string, NodeJS.Timeout>();

  constructor(
    private readonly registry: MachineRegistry,
    private readonly binaries: Pick<Binaries, "kubeadm" | "etcdutl">,
    private readonly limits: Limits,
  ) {}

  /** Waits for initializations under way: none is left half done. */
  async stop(): Promise<void> {
    this.timers.forEach((timer) => clearInterval(timer));
    await Promise.all(this.initializations.values());
  }

  async run(machine: SimulatedMachine, script: string, steps: Steps): Promise<void> {
    const isMember = machine.joined !== undefined;
    const payload = await steps.step("payload", () => {
      const payload = parsePayload(script);
      checkComplete(payload);
      payload.files
        .filter(({ path }) => !isMember || !path.startsWith("/etc/kubernetes/"))
        .forEach((file) => machine.writeFile(file));
      return payload;
    });
    const isControlPlane = payload.role === "control-plane";
    const awaitsReady = payload.awaitsReady ?? true;
    await steps.step("first boot", () => checkFirstBoot(machine.vm, payload));
    await steps.step("kernel modules", () => undefined);
    if (!isMember) {
      await steps.step("packages", () => checkPayload(payload, machine.vm));
      const cluster = await steps.step("search for the API", () =>
        isControlPlane
          ? this.searchAsControlPlane(machine, payload, steps)
          : this.searchAsWorker(machine, payload),
      );
      await this.becomeMember(machine, payload, cluster, steps);
    }
    const isOutdated = isMember && machine.configuration !== payload.configuration;
    if (isOutdated) {
      await this.upgrade(machine, payload, steps).catch(async (error: unknown) => {
        if (!machine.needsPeerCheck) await this.leaveUntouched(machine, payload);
        throw error;
      });
    }
    if (isControlPlane) {
      await steps.step("control plane", () => this.awaitControlPlane(machine, payload));
    }
    if (hasTask(payload, "snapshots") || this.timers.has(machine.vm.vmId)) {
      await steps.step("snapshots", () => this.scheduleSnapshots(machine, payload));
    }
    // Before there is a pod network, the initial control plane cannot be Ready.
    if (machine.joined?.as === "joined" || (await this.isNetworkUp(machine))) {
      await steps.step("node", () => this.awaitNode(machine, awaitsReady));
    }
    if (await isDrained(this.kubeletOf(machine), payload.machine)) {
      await steps.step("uncordon", () => undoDrain(this.kubeletOf(machine), payload.machine));
    }
    if (isControlPlane && machine.needsPeerCheck) {
      await steps.step("other control planes", () => this.awaitPeers(machine, awaitsReady));
    }
    if (isControlPlane) {
      await steps.step("certificates", () => this.reportCertificates(machine));
    }
    if (hasTask(payload, "restart-pods")) {
      await steps.step("pods", () => this.restartPods(machine, trustedOf(payload)));
    }
    if (hasTask(payload, "rewrite-secrets")) {
      await steps.step("encryption", () => this.registry.clusterOf(machine)!.rewriteSecrets());
    }
    await steps.step("secrets", async () => {
      machine.bootstrapped(payload);
      await endTurn(this.kubeletOf(machine), payload);
      machine.forgetSecrets();
    });
    steps.note(`${machine.vm.name} is a member of the cluster`);
  }

  /** Makes a member what its payload says. */
  private async upgrade(machine: SimulatedMachine, payload: Payload, steps: Steps): Promise<void> {
    const isControlPlane = payload.role === "control-plane";
    const kubelet = this.kubeletOf(machine);
    const cluster = this.registry.clusterOf(machine)!;
    const isWell = (await kubelet.isReady()) && cluster.problemAt(machine.vm) === undefined;
    if (isControlPlane && isWell) {
      const awaitsReady = payload.awaitsReady ?? true;
      await steps.step("other control planes", () => this.awaitPeers(machine, awaitsReady));
    }
    machine.beginUpgrade();
    await steps.step("packages", () =>
      isControlPlane ? checkEtcd(cluster.etcdVersionOf(machine.vm), payload) : undefined,
    );
    const node = await kubelet.get(nodePath(payload.machine));
    const isNext = hasOtherVersion(node, payload);
    if (isNext && hasTask(payload, "snapshots")) {
      await steps.step("snapshot", () => this.registry.snapshotsOn(machine)?.save(cluster));
    }
    await steps.step("turn", () => awaitTurn(kubelet, payload, this.limits.peers));
    if (isNext || machine.room !== payload.room)
      await steps.step("drain", () => drain(kubelet, payload));
    await steps.step("kubeadm upgrade", async () => {
      machine.requirePeerCheck();
      const takesCas = hasTask(payload, "cas") || trustsSeveral(machine.joined!);
      if (takesCas) machine.trust(trustedOf(payload));
      if (isControlPlane) {
        const taken = takesCas ? { ...payload, tasks: ["cas" as const] } : payload;
        await cluster.inTurn(() => upgradeControlPlane(cluster, taken));
        // kubeadm waits for what the kubelet says of static pods, which has the CAs with which it started.
        await kubelet.get(nodePath(payload.machine));
      }
      const { caCert, kubelet: client } = machine.joined!;
      if (!isSignedBy(caCert, client.cert)) {
        machine.trust(caCert, await kubeletCertificate(this.kubeletOf(machine), payload.machine));
      }
    });
    await steps.step("kubelet", () => upgradeKubelet(this.kubeletOf(machine), payload));
    if (isControlPlane) {
      await steps.step("static pods", () =>
        retryUntilHealthy(machine, this.limits.api, async () => cluster.unreadyAt(machine.vm)),
      );
    }
  }

  private async leaveUntouched(machine: SimulatedMachine, payload: Payload): Promise<void> {
    const kubelet = this.kubeletOf(machine);
    if (!(await isDrained(kubelet, payload.machine))) return;
    await undoDrain(kubelet, payload.machine);
    await endTurn(kubelet, payload);
  }

  /** @param cluster to join; without one, it is initialized */
  private async becomeMember(
    machine: SimulatedMachine,
    payload: Payload,
    cluster: SimulatedCluster | undefined,
    steps: Steps,
  ): Promise<void> {
    const kubeadm = new KubeadmCommand(this.binaries.kubeadm, machine.root);
    if (cluster !== undefined) {
      const joining = { machine, payload, kubeadm, steps };
      return await steps.step("kubeadm join", () => join(joining, cluster));
    }
    const { restoredFrom } = payload;
    const snapshot =
      restoredFrom &&
      (await steps.step("snapshot", () =>
        this.registry.snapshotsOn(machine)?.fetch(restoredFrom, payload, this.binaries.etcdutl),
      ));
    const initialized = this.initialize(machine, payload, kubeadm, snapshot);
    const finished = initialized.catch(() => undefined);
    this.initializations.set(payload.apiName, finished);
    void finished.finally(() => this.initializations.delete(payload.apiName));
    await steps.step("kubeadm init", () => initialized);
  }

  private async initialize(
    machine: SimulatedMachine,
    payload: Payload,
    kubeadm: KubeadmCommand,
    snapshot: string | undefined,
  ): Promise<void> {
    const { apiName } = payload;
    const configuration = fileOf(payload, initFile);
    await kubeadm.validate(configuration);
    // Of a cluster before this one, too few members are left to answer.
    await this.registry.discard(apiName);
    const cluster = await SimulatedCluster.initialize(
      this.registry.clusterFolder(apiName),
      {
        apiName,
        vm: machine.vm,
        files: filesOf(payload),
        configuration,
        snapshot,
      },
      this.registry.clusterOptions,
    );
    try {
      await registerInitial(machine, payload, cluster);
    } catch (error) {
      await cluster.machineDeleted(machine.vm);
      throw error;
    }
    this.registry.clusters.set(apiName, cluster);
    cluster.wakeControllers();
  }

  /** Has the machine save etcd by the clock while it leads etcd. */
  private scheduleSnapshots(machine: SimulatedMachine, payload: Payload): void {
    const { vmId } = machine.vm;
    clearInterval(this.timers.get(vmId));
    this.timers.delete(vmId);
    const snapshots = hasTask(payload, "snapshots")
      ? this.registry.snapshotsOn(machine)
      : undefined;
    if (snapshots === undefined) return;
    const save = (): void => {
      const cluster = this.registry.clusterOf(machine);
      if (!cluster?.leads(machine.vm) || !cluster.hasQuorum()) return;
      // How it ended is in the cluster.
      void snapshots.save(cluster).catch(() => undefined);
    };
    this.timers.set(vmId, setInterval(save, snapshots.period).unref());
  }

  /** The cluster to join, or nothing on a machine that is to initialize it. */
  private async searchAsControlPlane(
    machine: SimulatedMachine,
    payload: Payload,
    steps: Steps,
  ): Promise<SimulatedCluster | undefined> {
    const { apiName, apiPort, initialControlPlane } = payload;
    const { vmId } = machine.vm;
    const server = `https://${apiName}:${apiPort}`;
    const isInitial = initialControlPlane?.toLowerCase() === vmId.toLowerCase();
    steps.write(`this machine is ${vmId}, the initial control plane is ${initialControlPlane}`);
    await this.initializations.get(apiName);
    let cluster: SimulatedCluster | undefined;
    await retryUntilHealthy(machine, this.limits.api, async () => {
      cluster = await this.answering(payload);
      const isLost = !this.registry.clusters.get(apiName)?.hasQuorum();
      if (cluster !== undefined || (isInitial && isLost)) return undefined;
      return (
        `no API answers at ${server}, and this machine (vmId ${vmId}) is not the one that may initialize ` +
        `the cluster (vmId ${initialControlPlane}). Bring a control plane machine back and run \`pulumi up\` again; ` +
        "if all are lost, it says how a new, empty cluster takes their place"
      );
    });
    if (cluster === undefined && machine.hasBegunToJoin) {
      throw new Error(
        `no API answers at ${server}, and this machine has begun to join one: bring the other control plane ` +
          "machines back and run `pulumi up` again",
      );
    }
    return cluster;
  }

  /** Whatever it says, a server that proves itself by this cluster's CA is this cluster. */
  private async answering(payload: Payload): Promise<SimulatedCluster | undefined> {
    const cluster = this.registry.clusters.get(payload.apiName);
    try {
      await cluster?.anonymously(fileOf(payload, caFile)).get("/readyz");
    } catch (error) {
      if (error instanceof ApiError) return cluster;
      if (!isFinal(error)) return undefined;
      throw new Refused(
        `at https://${payload.apiName}:${payload.apiPort} somebody else's cluster answers, one with another CA: ` +
          "take it away, or give this one another name (zoned:clusterName)",
        { cause: error },
      );
    }
    return cluster;
  }

  private async searchAsWorker(
    machine: SimulatedMachine,
    payload: Payload,
  ): Promise<SimulatedCluster> {
    const { server, ca, user } = kubeconfigOf(fileOf(payload, discoveryFile));
    const isOfPayload = Number(server.port || 443) === payload.apiPort;
    let refusals = 0;
    await retryUntilHealthy(machine, this.limits.api, async () => {
      const cluster = isOfPayload && this.registry.clusters.get(server.hostname);
      if (!cluster) return `no API answers at ${server.origin}`;
      try {
        await new Api(cluster.server(ca), user).find(nodePath(payload.machine));
        return undefined;
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) throw error;
        if (refusals++ < mostRefusals) return error.message;
        throw new Refused(
          `the API does not know the join token of ${payload.machine}, which lasts one day: ` +
            "run `pulumi up` again, without --replace and --target, and it makes another one",
          { cause: error },
        );
      }
    });
    return this.registry.clusters.get(server.hostname)!;
  }

  private isNetworkUp = (machine: SimulatedMachine): Promise<boolean> =>
    this.kubeletOf(machine)
      .get(nodePath(machine.joined?.node ?? ""))
      .then(hasNetwork, () => false);

  private async awaitControlPlane(machine: SimulatedMachine, payload: Payload): Promise<void> {
    const cluster = this.registry.clusterOf(machine)!;
    await retryUntilHealthy(machine, this.limits.api, async () =>
      (await this.kubeletOf(machine).isReady())
        ? cluster.problemAt(machine.vm)
        : "the API does not answer",
    );
    const keys = payload.files.find(({ path }) => path === encryptionFile);
    if (keys !== undefined) await cluster.loadEncryptionKeys(keys);
  }

  private async awaitNode(machine: SimulatedMachine, awaitsReady: boolean): Promise<void> {
    await this.untilReady(machine, awaitsReady);
    const kubelet = this.kubeletOf(machine);
    const path = nodePath(machine.joined?.node ?? "");
    const { metadata } = await kubelet.get(path);
    const { size } = machine.vm;
    if (![undefined, size].includes(metadata.labels?.[sizeLabel])) {
      await kubelet.patch(path, { metadata: { labels: { [sizeLabel]: size } } }, mergePatch);
    }
  }

  private untilReady = (machine: SimulatedMachine, awaitsReady: boolean): Promise<void> =>
    retryUntilHealthy(machine, this.limits.ready, async () => {
      const name = machine.joined?.node ?? "";
      const node = await this.kubeletOf(machine).get(nodePath(name));
      if (!isOf(node, machine.vm)) return `node ${name} is another machine's`;
      if (isReady(node) || !awaitsReady) return undefined;
      return hasNetwork(node)
        ? `node ${name}: Ready is ${readyText(node)}`
        : `node ${name}: no pod network yet, /etc/cni/net.d has no configuration`;
    });

  /** The next machine begins when this one's step ends. */
  private awaitPeers = (machine: SimulatedMachine, awaitsReady: boolean): Promise<void> =>
    retryUntilHealthy(machine, this.limits.peers, async () => {
      const problems =
        (await this.registry.clusterOf(machine)?.peerProblems(machine.vm, awaitsReady)) ?? [];
      return problems.length === 0
        ? undefined
        : "another control plane is not well, so no other machine was touched; make it well, or delete its Node if its " +
            "machine is gone for good (kubectl delete node), and run `pulumi up` again, which goes on from here: " +
            problems.join("; ");
    });

  private async reportCertificates(machine: SimulatedMachine): Promise<void> {
    const until = this.registry.clusterOf(machine)!.certificatesValidUntil();
    const path = nodePath(machine.joined?.node ?? "");
    const metadata = { annotations: { [validUntil]: until } };
    await this.kubeletOf(machine).patch(path, { metadata }, mergePatch);
  }

  private async restartPods(machine: SimulatedMachine, trusted: string): Promise<void> {
    const api = this.registry.clusterOf(machine)!.superAdmin();
    await retryUntilHealthy(machine, this.limits.api, () => unpublished(api, trusted));
    await restartPods(api);
  }

  private kubeletOf(machine: SimulatedMachine): Api {
    const kubelet = this.registry.kubeletOf(machine);
    if (kubelet === undefined) {
      throw new Error(`there is no cluster ${machine.joined?.apiName} any more`);
    }
    return kubelet;
  }
}

const hasNetwork = ({ metadata }: Body): boolean =>
  metadata.annotations?.[cniAnnotation] !== undefined;

class Refused extends Error {}

/** An API server that has just begun does not know every token yet. */
const mostRefusals = 10;

/** Repeats a check until it finds no problem; a final error is not retried. */
async function retryUntilHealthy(
  machine: SimulatedMachine,
  limit: number,
  problems: () => Promise<string | undefined>,
): Promise<void> {
  for (const until = Date.now() + limit; ; await wait(pollMs)) {
    let problem: string | undefined;
    machine.failIfEnded();
    try {
      problem = await problems();
    } catch (error) {
      if (isFinal(error)) throw error;
      problem = (error as Error).message;
    }
    if (problem === undefined) return;
    if (Date.now() >= until) throw new TimedOut(limit / 1000, problem);
  }
}

/** Whether waiting cannot help: the API refuses this user, or its certificate is not to be trusted. */
function isFinal(error: unknown): boolean {
  if (error instanceof Refused) return true;
  if (error instanceof ApiError) return [401, 403].includes(error.status);
  const { code } = error as NodeJS.ErrnoException;
  return code !== undefined && !/^(ECONN|ETIMEDOUT|EPIPE)/.test(code);
}

/** As after a stage that gave it other CAs beside the first one. */
const trustsSeveral = ({ caCert }: Joined): boolean => caCert.split("BEGIN CERTIFICATE").length > 2;

const needed = ["machine", "role", "apiName", "apiPort", "nodeAddress", "tasks", "files"] as const;

function checkComplete(payload: Payload): void {
  const missing = needed.filter((field) => payload[field] === undefined);
  if (missing.length > 0) throw new Error(`the script's payload lacks ${missing.join(", ")}`);
}

function checkPayload({ machine, nodeAddress }: Payload, vm: VirtualMachine): void {
  if (machine !== vm.name) {
    throw new Error(`the payload is for ${machine}, and this machine's host name is ${vm.name}`);
  }
  if (nodeAddress !== vm.privateAddress) {
    throw new Error(
      `the payload gives ${machine} the address ${nodeAddress}, and its interface has ${vm.privateAddress}`,
    );
  }
}
