import { createHash, X509Certificate } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import type { PayloadFile } from "../../../../../components/kubeadm/payload-file";
import type { VirtualMachine } from "../../machines";
import { type Component, components, type Ports, processOf } from "./static-pods";
import { Api, type ApiServer, type Body, kubeconfigOf, unlessStatus } from "../api";
import { endpointOf, KubeadmCommand } from "./kubeadm-command";
import { type KubeletCertificates, KubeletServer } from "./kubelet";
import { podPath } from "../nodes/kubelets";
import { kwokCommand, kwokConfiguration } from "../nodes/kwok";
import { Etcd } from "./etcd";
import { type ProcessStatus, Supervisor } from "../../supervisor";

type Binary = Component | "etcdctl" | "etcdutl" | "kubeadm" | "kwok";
export type Binaries = Readonly<Record<Binary, string>>;

const electing = ["kube-controller-manager", "kube-scheduler"] as const;

const apiReadyWithinMs = 120_000;
const pollMs = 150;

/**
 * The control plane of one cluster, as processes of this host.
 *
 * All its control plane machines share this one: an etcd of one member and one API server. Which
 * machines are members, and whether enough of them live, is the cluster's business.
 */
export class ControlPlane {
  private readonly root: string;
  private readonly kubeadm: KubeadmCommand;
  private readonly supervisor: Supervisor;
  /** Where the API server finds what containers have printed. */
  readonly kubelets: KubeletServer;

  constructor(
    private readonly folder: string,
    private readonly apiName: string,
    readonly ports: Ports,
    private readonly binaries: Binaries,
    log: (message: string) => void,
    kubeletCertificates: KubeletCertificates,
    /** Names of images whose pods others run. */
    private readonly processImages: readonly string[],
  ) {
    this.root = path.join(folder, "root");
    this.kubeadm = new KubeadmCommand(binaries.kubeadm, this.root);
    this.kubelets = new KubeletServer(kubeletCertificates);
    this.supervisor = new Supervisor(path.join(folder, "processes"), log);
  }

  /**
   * Turns what the initial control plane was given into a running cluster, by the phases of `kubeadm
   * init`.
   *
   * @param snapshot file of one that etcd begins with
   */
  async initialize(
    files: ReadonlyMap<string, string>,
    configuration: string,
    snapshot?: string,
  ): Promise<void> {
    this.writeFiles(files);
    await this.kubeadm.prepare(configuration);
    if (snapshot !== undefined) await this.etcd.restore(snapshot, this.commandOf("etcd"));
    this.pointKubeconfigsHere();
    await this.start();
    await bindAdministrators(this.superAdmin());
    if (snapshot !== undefined) await deleteOldControlPlanes(this.superAdmin());
    await this.kubeadm.finish(this.adminKubeconfig, snapshot === undefined ? "all" : "coredns");
    await restoreMachinePaths(
      this.superAdmin(),
      { address: this.localAddress, root: this.root },
      endpointOf(configuration),
    );
  }

  /** Kubeconfigs lead to this host. */
  private pointKubeconfigsHere(): void {
    for (const name of fs.readdirSync(this.kubernetesFolder)) {
      if (name.endsWith(".conf")) {
        const file = path.join(this.kubernetesFolder, name);
        const text = fs.readFileSync(file, "utf8");
        fs.writeFileSync(file, text.replace(/server: .*/, `server: ${this.localAddress}`));
      }
    }
  }

  private writeFiles(files: ReadonlyMap<string, string>): void {
    for (const [name, text] of files) {
      const file = path.join(this.root, name);
      fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
      fs.writeFileSync(file, text, { mode: 0o600 });
    }
  }

  /** `kubeadm upgrade apply`, by phases of `kubeadm init` over the new configuration. */
  async upgrade(files: ReadonlyMap<string, string>, configuration: string): Promise<void> {
    this.writeFiles(files);
    const before = new Map(components.map((name) => [name, this.kubeadm.manifest(name)]));
    await this.kubeadm.writeManifests(configuration);
    await this.kubeadm.upload(this.adminKubeconfig);
    const changed = components.filter((name) => before.get(name) !== this.kubeadm.manifest(name));
    // Controllers end with the API server that they lose.
    if (changed.length > 0) {
      await this.stopApi();
      await this.kubeadm.renew(configuration);
      this.pointKubeconfigsHere();
    }
    if (changed.includes("etcd")) await this.supervisor.stop("etcd");
    await this.start();
    await restoreMachinePaths(
      this.superAdmin(),
      { address: this.localAddress, root: this.root },
      endpointOf(configuration),
    );
  }

  /**
   * Gives the API server other keys of Secrets; whether that was to be done. It would look for them
   * within a minute; here it is started anew, which takes seconds.
   */
  async loadEncryptionKeys({ path: name, content }: PayloadFile): Promise<boolean> {
    if (await this.hasLoaded(content)) return false;
    this.writeFiles(new Map([[name, content]]));
    await this.stopApi();
    await this.start();
    if (await this.hasLoaded(content)) return true;
    throw new Error(`the API server has not loaded ${name}`);
  }

  /** Whether the API server says so of a file of keys. */
  private async hasLoaded(content: string): Promise<boolean> {
    const digest = createHash("sha256").update(content).digest("hex");
    const { message } = await this.superAdmin().get("/metrics");
    return new RegExp(
      `^apiserver_encryption_config_controller_last_config_info{.*${digest}`,
      "m",
    ).test(message);
  }

  /** The part of `kubeadm upgrade` that no control plane does alone. */
  async upgradeCoreDns(files: ReadonlyMap<string, string>): Promise<void> {
    this.writeFiles(files);
    await this.kubeadm.upgradeCoreDns(this.adminKubeconfig);
  }

  /** Starts what is not running; done when the API server says it is ready. */
  async start(): Promise<void> {
    await this.kubelets.listen(this.egressFile);
    this.startComponent("etcd");
    this.startComponent("kube-apiserver");
    await this.untilReady();
    await this.deleteLeases();
    for (const component of electing) {
      this.startComponent(component);
    }
    this.startKwok();
  }

  private startKwok(): void {
    fs.writeFileSync(this.stagesFile, kwokConfiguration(this.processImages));
    this.supervisor.start({
      name: "kwok",
      command: kwokCommand(this.binaries.kwok, this.adminKubeconfig, this.stagesFile),
    });
  }

  /** When KWOK was started the last time, in milliseconds. */
  get kwokSince(): number {
    return this.supervisor.status().find(({ name }) => name === "kwok")?.since ?? 0;
  }

  async restartKwok(): Promise<void> {
    await this.supervisor.stop("kwok");
    this.startKwok();
  }

  /**
   * Ends everything but etcd, as when etcd has no majority: what needs the API would only die of
   * its absence.
   */
  async stopApi(): Promise<void> {
    await Promise.all(["kwok", ...electing].map((name) => this.supervisor.stop(name)));
    await this.supervisor.stop("kube-apiserver");
  }

  async stop(): Promise<void> {
    await this.stopApi();
    await this.supervisor.stop("etcd");
  }

  /** Ends everything and leaves nothing. */
  async wipe(): Promise<void> {
    await this.stop();
    this.close();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  endOrphans = (): Promise<void> => this.supervisor.endOrphans();

  close(): void {
    this.kubelets.close();
    this.supervisor.close();
  }

  isUp = (): boolean => this.supervisor.isRunning("kube-apiserver");

  processes = (): readonly ProcessStatus[] => this.supervisor.status();

  /**
   * How to reach the API as a client that knows this CA: under the cluster's name, on this host.
   */
  server(ca: string): ApiServer {
    return { host: "127.0.0.1", port: this.ports.api, serverName: this.apiName, ca };
  }

  /**
   * The API, as the group that no RBAC binds. Only for what is simulated, never for what the program
   * asks.
   */
  superAdmin(): Api {
    const { ca, user } = kubeconfigOf(fs.readFileSync(this.adminKubeconfig, "utf8"));
    return new Api(this.server(ca), user);
  }

  /**
   * The manifest of a component as it lies on this machine's disk: like the initial control
   * plane's, by another name.
   */
  manifestOf(component: Component, { name, privateAddress }: VirtualMachine): string {
    const [, initialName = "", initialAddress = ""] =
      /--initial-cluster=([^=\s]+)=https:\/\/(.+):2380/.exec(this.kubeadm.manifest("etcd")) ?? [];
    return this.kubeadm
      .manifest(component)
      .replaceAll(this.root, "")
      .replaceAll(initialAddress, privateAddress)
      .replaceAll(initialName, name);
  }

  /** The certificate that kubeadm made for the kubelet of the initial control plane. */
  initialKubeconfig = (): string =>
    fs.readFileSync(path.join(this.kubernetesFolder, "kubelet.conf"), "utf8");

  /** When the certificates end that kubeadm made, as ISO 8601. */
  certificatesValidUntil(): string {
    const file = path.join(this.kubernetesFolder, "pki/apiserver.crt");
    return new X509Certificate(fs.readFileSync(file)).validToDate.toISOString();
  }

  get etcd(): Etcd {
    return new Etcd(this.root, this.ports.etcdClient, this.binaries);
  }

  private get kubernetesFolder(): string {
    return path.join(this.root, "etc/kubernetes");
  }

  private get adminKubeconfig(): string {
    return path.join(this.kubernetesFolder, "super-admin.conf");
  }

  private get stagesFile(): string {
    return path.join(this.folder, "kwok.yaml");
  }

  private get egressFile(): string {
    return path.join(this.folder, "egress.yaml");
  }

  private get localAddress(): string {
    return `https://127.0.0.1:${this.ports.api}`;
  }

  private commandOf(component: Component): readonly string[] {
    const { root, ports } = this;
    const binary = this.binaries[component];
    const { egressFile } = this;
    return processOf(component, this.kubeadm.manifest(component), {
      ...{ binary, root, ports, egressFile },
    });
  }

  private startComponent(component: Component): void {
    this.supervisor.start({ name: component, command: this.commandOf(component) });
  }

  /** What held a lease and has ended keeps it for a while, in which its successor does nothing. */
  private async deleteLeases(): Promise<void> {
    const api = this.superAdmin();
    const namespaces = "/apis/coordination.k8s.io/v1/namespaces";
    const leases = electing.map((name) => [name, `${namespaces}/kube-system/leases/${name}`]);
    for (const [name = "", lease = ""] of [
      ...leases,
      ["kwok", `${namespaces}/kube-node-lease/leases`],
    ]) {
      if (!this.supervisor.isRunning(name)) {
        await api.delete(lease).catch(unlessStatus(404));
      }
    }
  }

  private async untilReady(): Promise<void> {
    const api = this.superAdmin();
    for (const until = Date.now() + apiReadyWithinMs; Date.now() < until; await wait(pollMs)) {
      if (await api.isReady()) {
        return;
      }
      for (const { name, lastExit } of this.supervisor.status()) {
        if (lastExit) {
          const end = this.supervisor.endOfLog(name);
          await this.stop();
          throw new Error(`${name} ended with ${lastExit}; the end of its log:\n${end}`);
        }
      }
    }
    const end = this.supervisor.endOfLog("kube-apiserver");
    await this.stop();
    throw new Error(
      `the API was not ready within ${apiReadyWithinMs / 1000} s; the end of its server's log:\n${end}`,
    );
  }
}

/** What a snapshot knows of control plane machines that are gone. */
async function deleteOldControlPlanes(api: Api): Promise<void> {
  const selected = async (path: string): Promise<Body[]> => (await api.get(path)).items as Body[];
  const forget = (path: string) =>
    api.delete(`${path}?gracePeriodSeconds=0`).catch(unlessStatus(404));
  const label = "node-role.kubernetes.io%2Fcontrol-plane";
  for (const { metadata: node } of await selected(`/api/v1/nodes?labelSelector=${label}`)) {
    await forget(`/api/v1/nodes/${node.name}`);
    const pods = await selected(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node.name}`);
    for (const pod of pods) await forget(podPath(pod));
  }
}

/** kubeadm does this on the way, but only with an admin.conf in /etc/kubernetes. */
async function bindAdministrators(api: Api): Promise<void> {
  const name = "kubeadm:cluster-admins";
  const apiGroup = "rbac.authorization.k8s.io";
  await api
    .post(`/apis/${apiGroup}/v1/clusterrolebindings`, {
      apiVersion: `${apiGroup}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup, kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ apiGroup, kind: "Group", name }],
    })
    .catch(unlessStatus(409));
}

/**
 * What kubeadm has written into the cluster names this host's address and folder; here it gets what
 * a machine's has.
 */
async function restoreMachinePaths(
  api: Api,
  here: { readonly address: string; readonly root: string },
  endpoint: string,
): Promise<void> {
  const restore = async (configMap: string, from: string, to: string) => {
    const { data } = await api.get(configMap);
    const restored = Object.entries(data as Record<string, string>).map(([key, text]) => [
      key,
      text.replaceAll(from, to),
    ]);
    await api.patch(configMap, { data: Object.fromEntries(restored) });
  };
  const of = (namespace: string, name: string) =>
    `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  await Promise.all([
    restore(of("kube-public", "cluster-info"), here.address, `https://${endpoint}`),
    restore(of("kube-system", "kubeadm-config"), here.root, ""),
  ]);
}
