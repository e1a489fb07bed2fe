import { ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { SecureContextOptions } from "node:tls";
import { promisify } from "node:util";
import { parse } from "yaml";

import { Fault } from "../local-azure/arm/faults";
import { account, subscriptionPath } from "../local-azure/arm/resources/resource";
import { authorityFile } from "../local-azure/arm/rest/listener";
import { LoggedRequest } from "../local-azure/arm/requests";
import { Attachment, blobEndpointOf, endpointOf } from "../local-azure/daemon/attachment";
import { endDaemon, ensureDaemon } from "../local-azure/daemon/daemon-client";
import { apiNameIn, reachableHere } from "../local-azure/rehearsal/cluster-view";
import { choosePlugins } from "../local-azure/rehearsal/choose-plugins";
import { Rehearsal, RehearsalOptions, Run } from "../local-azure/rehearsal/rehearsal";
import { takeFolder } from "../local-azure/rehearsal/state-folder";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { run } from "../shared/run";
import { changedAnything } from "../pulumi/events";
import { environmentOf } from "../pulumi/pulumi";
import type { Clients, ContainerClient } from "../local-azure/tests/support/arm/clients";
import { sendToAzure } from "./azure-request";

/** Microsoft's clients, which take seconds to load; few clusters are asked by them. */
const clients = () =>
  require("../local-azure/tests/support/arm/clients") as typeof import("../local-azure/tests/support/arm/clients");

const ca = "certificate-authority-data";

/** No engine is killed here, and checkpoints are a quarter of its processor time. */
const endStateOnly = { PULUMI_SKIP_CHECKPOINTS: "true" };

export const hasManifests = Boolean(process.env["ZONED_MANIFESTS"]);

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: {
    readonly metadata: {
      readonly name: string;
      readonly deletionTimestamp?: string;
      readonly resourceVersion?: string;
    };
    readonly spec: { readonly nodeName?: string; readonly unschedulable?: boolean };
    readonly status?: { readonly nodeInfo?: { readonly kubeletVersion: string } };
  };
}

/** Settings of a cluster without the add-ons that a test does not ask about. */
export const fewAddOns = {
  cni: "flannel",
  cloudProvider: false,
  diskDriver: false,
  storageClasses: false,
  apiAccessCidrs: ["203.0.113.0/24"],
  sshPublicKey:
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILNfwl00yhHyj+EIF4C2SvRcENYQs34j+sgCl1EG/LXB e2e@zoned.example",
};

/** By what status a server answers a GET on a connection of its own. */
const statusOf = (url: string, options: RequestOptions): Promise<number> =>
  new Promise((resolve, reject) => {
    get(url, { ...options, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    }).on("error", reject);
  });

/** A local Azure of a test's own, with one stack on it. */
export class LocalCloud {
  /** The same until other CAs are wanted, of however many clusters. */
  #kubeconfig: string | undefined;

  private constructor(
    readonly state: string,
    readonly stack: Rehearsal,
    private readonly azure: Attachment,
    private readonly stackName: string,
  ) {}

  private get clusterName(): string {
    return `zoned-${this.stackName}`;
  }

  /** @param prepare what is done to the state folder before the local Azure runs */
  static async start(
    stack: string,
    settings: Record<string, unknown> = {},
    prepare: (state: string) => void = () => undefined,
  ): Promise<LocalCloud> {
    const state = takeFolder(mkdtempSync(join(tmpdir(), "zoned-e2e-")));
    prepare(state);
    const { signal } = new AbortController();
    const progress = new Progress({ write: () => true });
    const asked = process.env["ZONED_PLUGINS"] || "stand-ins";
    await choosePlugins(state, { progress, signal, asked });
    return LocalCloud.in(state, stack, settings);
  }

  /** The local Azure of this folder, which runs from now on if it has not run before. */
  static async in(
    state: string,
    stack: string,
    settings: Record<string, unknown> = {},
  ): Promise<LocalCloud> {
    const { signal } = new AbortController();
    const progress = new Progress({ write: () => true });
    const azure = await ensureDaemon({ state, binaries: binaries() }, progress, signal);
    const rehearsal = await Rehearsal.open({
      ...{ state, stack, binaries: binaries(), azure, settings },
      environment: endStateOnly,
    });
    return new LocalCloud(state, rehearsal, azure, stack);
  }

  /** Another stack on this local Azure, of any program. */
  other(
    options: Pick<RehearsalOptions, "stack" | "program" | "settings" | "environment">,
  ): Promise<Rehearsal> {
    const state = join(this.state, options.stack);
    return Rehearsal.open({ ...options, state, binaries: binaries(), azure: this.azure });
  }

  /** Ends every process and removes every file. */
  async stop(): Promise<void> {
    await endDaemon(this.state);
    rmSync(this.state, { recursive: true, force: true, maxRetries: 5 });
  }

  /** All that Azure was asked, in order. */
  async requests(): Promise<LoggedRequest[]> {
    return (await this.send("GET", "/local/requests")) as LoggedRequest[];
  }

  async fault(fault: Fault): Promise<void> {
    await this.send("POST", "/local/faults", fault);
  }

  async clearFaults(): Promise<void> {
    await this.send("DELETE", "/local/faults");
  }

  /** Lets Azure's operations take this share of their time; 0 until then. */
  async takingTime(factor: number): Promise<void> {
    await this.send("PUT", "/local/durations", { factor });
  }

  /**
   * Makes a component of a control plane unhealthy: etcd, kube-apiserver …, kubelet, or etcd-space, when it
   * takes no writes.
   */
  async injectFailure(machine: string, component: string): Promise<void> {
    await this.send("POST", `/local/machines/${this.clusterName}-${machine}/failures`, {
      component,
    });
  }

  /** Makes all components of a control plane healthy. */
  async clearFailures(machine: string): Promise<void> {
    await this.send("DELETE", `/local/machines/${this.clusterName}-${machine}/failures`);
  }

  /**
   * Runs the `pulumi config` command of this kind that a message names, word by word; returns it.
   */
  async runSuggested(message: string, kind: RegExp): Promise<string> {
    const command = new RegExp(`pulumi (${kind.source})`).exec(message)?.[1];
    if (command === undefined) throw new Error(`no command ${kind} in:\n${message}`);
    const words = [...command.split(" "), "--config-file", this.stack.place.config];
    const { code, stderr } = await this.stack.command(...words);
    if (code !== 0) throw new Error(`pulumi ${command} ended with ${code}: ${stderr}`);
    return command;
  }

  /** Saves a snapshot of etcd from a control plane, as its timer would. */
  async snapshot(machine: string): Promise<void> {
    await this.send("POST", `/local/machines/${this.clusterName}-${machine}/snapshot`);
  }

  /** Lets Azure announce something to a machine, so many seconds ahead, and do it. */
  async event(machine: string, type: string, notice: number): Promise<void> {
    const path = `/local/machines/${this.clusterName}-${machine}/events`;
    await this.send("POST", path, { type, notice });
  }

  /** Makes a blob container in a resource group of its own; returns the setting that names it. */
  async container(group: string, name: string): Promise<{ container: string; endpoint: string }> {
    const inGroup = `${subscriptionPath}/resourceGroups/${group}`;
    const account = `${inGroup}/providers/Microsoft.Storage/storageAccounts/snapshots`;
    const container = `${account}/blobServices/default/containers/${name}`;
    const location = "westeurope";
    await this.send("PUT", inGroup, { location });
    const sku = { name: "Standard_ZRS" };
    const properties = { supportsHttpsTrafficOnly: false };
    await this.send("PUT", account, { kind: "StorageV2", location, sku, properties });
    await this.send("PUT", container, { properties: {} });
    return { container, endpoint: blobEndpointOf(this.azure.ports, "snapshots") };
  }

  /** Gives the login a role by which it reads the blobs of a resource group. */
  async readsBlobs(group: string): Promise<void> {
    await this.assignToLogin(
      "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
      `${subscriptionPath}/resourceGroups/${group}`,
    );
  }

  /**
   * Leaves the login, which owns the subscription until then, with these roles alone.
   *
   * @param roles by scope: the last part of each one's id
   */
  async limitLogin(roles: Readonly<Record<string, string>>): Promise<void> {
    for (const [scope, role] of Object.entries(roles)) await this.assignToLogin(role, scope);
    await this.send("PUT", "/local/login", { isOwner: false });
  }

  private async assignToLogin(role: string, scope: string): Promise<void> {
    const roleDefinitionId = `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${role}`;
    await this.send("PUT", `${scope}/providers/Microsoft.Authorization/roleAssignments/${role}`, {
      properties: { principalId: account.objectId, roleDefinitionId },
    });
  }

  /** What leads an engine that a test starts by itself to this cloud, and to the secrets of its stacks. */
  environment(): Record<string, string> {
    const all = Object.entries(environmentOf(this.stack.engine));
    return Object.fromEntries(
      all.filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
  }

  /** Registers a feature of Microsoft.Compute for the subscription. */
  async register(feature: string): Promise<void> {
    const features = "providers/Microsoft.Features/providers/Microsoft.Compute/features";
    await this.send("POST", `${subscriptionPath}/${features}/${feature}/register`);
  }

  /** Limits of vCPU quotas by name; those that are not named have room for anything. */
  async quotas(limits: Readonly<Record<string, number>>): Promise<void> {
    await this.send("PUT", "/local/quotas", limits);
  }

  /** Reads or changes a thing in the resource group behind Pulumi's back. */
  inGroup(method: string, path: string, body?: unknown): Promise<unknown> {
    const group = `${subscriptionPath}/resourceGroups/${this.clusterName}`;
    return this.send(method, `${group}${path}`, body);
  }

  /** Has Azure refuse changes or deletions at the scope that a lock's id begins with. */
  async lock(id: string, level: "CanNotDelete" | "ReadOnly"): Promise<void> {
    await this.send("PUT", id, { properties: { level } });
  }

  async unlock(id: string): Promise<void> {
    await this.send("DELETE", id);
  }

  /**
   * Assigns one of the policies that every tenant has.
   *
   * @param id of the assignment, which begins with its scope
   */
  async assign(
    id: string,
    policy: string,
    values: Readonly<Record<string, string | readonly string[]>>,
  ): Promise<void> {
    const policyDefinitionId = `/providers/Microsoft.Authorization/policyDefinitions/${policy}`;
    const parameters = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, { value }]),
    );
    await this.send("PUT", id, { properties: { policyDefinitionId, parameters } });
  }

  /** What Azure shows of a resource. */
  read(id: string): Promise<unknown> {
    return this.send("GET", id);
  }

  /**
   * Microsoft's client of a blob container, for a pod that has this token of its service account.
   *
   * @param clientId of the identity that it logs in as
   */
  containerFor(url: string, clientId: string, token: string): ContainerClient {
    const tokenFilePath = join(this.state, "service-account-token");
    writeFileSync(tokenFilePath, token);
    const { ports } = this.azure;
    return clients().containerFor(url, {
      clientId,
      tokenFilePath,
      ports,
      authority: this.authority,
    });
  }

  /** Microsoft's clients, by which others read and change things. */
  sdks(): Clients {
    return clients().clientsOf(this.azure.ports.resourceManager, this.authority);
  }

  private get authority(): string {
    return readFileSync(authorityFile(this.state), "utf8");
  }

  /** Whether the resource manager holds nothing at all. */
  async isEmpty(): Promise<boolean> {
    return ((await this.send("GET", "/local/health")) as { empty: boolean }).empty;
  }

  /** Has the next question asked by the kubeconfig of now. */
  renewKubeconfig(): void {
    this.#kubeconfig = undefined;
  }

  async kubectl(...args: string[]): Promise<string> {
    const file = join(this.state, "kubeconfig");
    this.#kubeconfig ??= ((await this.stack.outputs()) as { kubeconfig: string }).kubeconfig;
    const address = await this.azure.apiAddress(apiNameIn(this.#kubeconfig));
    writeFileSync(file, reachableHere(this.#kubeconfig, address!), { mode: 0o600 });
    return run([
      ...[join(binaries(), "kubectl"), "--kubeconfig", file, "--request-timeout", "30s"],
      ...args,
    ]);
  }

  /** The status of the API's answer to a GET by somebody who shows no credential. */
  anonymously(path: string, tls: SecureContextOptions = {}): Promise<number> {
    return this.ask(path, tls);
  }

  /** The same of somebody who shows a token. */
  byToken(token: string, path: string): Promise<number> {
    return this.ask(path, { headers: { authorization: `Bearer ${token}` } });
  }

  private async ask(path: string, more: RequestOptions): Promise<number> {
    const { clusters } = parse(await this.kubectl("config", "view", "--raw")) as {
      clusters: { cluster: Record<"server" | "tls-server-name", string> & { [ca]: string } }[];
    };
    const { cluster } = clusters[0]!;
    return statusOf(`${cluster.server}${path}`, {
      ca: Buffer.from(cluster[ca], "base64"),
      servername: cluster["tls-server-name"],
      ...more,
    });
  }

  /**
   * What the API says of the objects at a path from now on, until it is ended. An API server that goes
   * away with its control plane ends its watches; another one goes on where that one was.
   */
  async watch(path: string, see: (event: WatchEvent) => void): Promise<{ end: () => void }> {
    await this.kubectl("get", "--raw", "/readyz");
    let ended = false;
    let seen = "";
    let kubectl: ChildProcess | undefined;
    const open = (): void => {
      const from = `${path}?watch=1&resourceVersion=${seen}`;
      const file = join(this.state, "kubeconfig");
      const child = spawn(join(binaries(), "kubectl"), [
        "--kubeconfig",
        file,
        "get",
        "--raw",
        from,
      ]);
      kubectl = child;
      createInterface({ input: child.stdout }).on("line", (line) => {
        const event = JSON.parse(line) as WatchEvent;
        seen = event.object.metadata.resourceVersion ?? "";
        if (seen !== "") see(event);
      });
      child.on("close", () => !ended && setTimeout(() => !ended && open(), 200));
    };
    open();
    return {
      end: () => {
        ended = true;
        kubectl?.kill();
      },
    };
  }

  /** What etcd has stored of every object whose key begins so, as it is on its disk. */
  async stored(prefix: string): Promise<string[]> {
    const clusters = join(this.state, "machines/clusters");
    const [name = ""] = readdirSync(clusters);
    const { ports } = JSON.parse(readFileSync(join(clusters, name, "cluster.json"), "utf8")) as {
      ports: { etcdClient: number };
    };
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const range = { key: base64(prefix), range_end: base64(`${prefix}\uffff`) };
    const pki = join(clusters, name, "root/etc/kubernetes/pki/etcd");
    const answer = await run([
      ...["curl", "--silent", "--fail", "--cacert", `${pki}/ca.crt`],
      ...["--cert", `${pki}/healthcheck-client.crt`, "--key", `${pki}/healthcheck-client.key`],
      ...["--data", JSON.stringify(range), `https://127.0.0.1:${ports.etcdClient}/v3/kv/range`],
    ]);
    const { kvs = [] } = JSON.parse(answer) as { kvs?: { value: string }[] };
    return kvs.map(({ value }) => Buffer.from(value, "base64").toString("latin1"));
  }

  /** Runs `npm run doctor` on this stack. */
  doctor = (...args: string[]): Promise<{ code: number; stdout: string }> =>
    this.look("doctor", ...args);

  /** Runs `npm run picture` on this stack; returns what it has drawn. */
  async picture(): Promise<string> {
    const file = join(this.state, "picture.svg");
    await this.look("picture", "--output", file);
    return readFileSync(file, "utf8");
  }

  /** Runs a command that looks at a stack. */
  private look(command: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
    const stack = ["--stack", this.stackName, "--state", this.state];
    const words = ["tools/cli/zoned.cjs", command, ...stack, ...args];
    return promisify(execFile)(process.execPath, words, { cwd: checkout }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout, stderr }) => {
        if (code !== 1)
          throw new Error(`npm run ${command} ended with ${code}: ${stdout}${stderr}`);
        return { code, stdout };
      },
    );
  }

  async get<T>(...args: string[]): Promise<T[]> {
    return (JSON.parse(await this.kubectl("get", ...args, "--output", "json")) as { items: T[] })
      .items;
  }

  private send(method: string, path: string, body?: unknown): Promise<unknown> {
    return sendToAzure(endpointOf(this.azure.ports), { method, path, body });
  }
}

function binaries(): string {
  const folder = process.env["ZONED_BINARIES"];
  if (!folder)
    throw new Error("ZONED_BINARIES names no folder of built tools; run these tests by npm test");
  return folder;
}

/** Fails with what the engine said when an update failed: why first, then its steps. */
export function succeeded(run: Run): Run {
  if (run.code !== 0) {
    const why = run.stdout.split("Diagnostics:").slice(1).at(-1) ?? "";
    throw new Error(`pulumi ended with ${run.code}:\n${why}\n${run.stderr}\n${run.stdout}`);
  }
  return run;
}

/**
 * A machine that changes may get another id, as far as a preview knows, and these follow its id. So
 * may the cluster be another one while its kubeconfig is not known, and join tokens follow it.
 */
const maybe =
  /^(update .*-(labels|bootstrap|membership|join-token|join-binding)|(replace|create-replacement|delete-replaced) .*-membership)$/;

/** Fails when an update failed, or did otherwise than its preview had said. */
export function asPlanned(run: Run): Run {
  succeeded(run);
  const only = (these: readonly string[], those: readonly string[]) =>
    these.filter((step) => !those.includes(step));
  const { steps, planned = steps } = run;
  // While the id is unknown, a preview takes the machine's membership for replaced.
  const announced = planned.map((step) => step.replace(/^replace (.*-membership)$/, "update $1"));
  const unplanned = only(steps, [...planned, ...announced]);
  const undone = only(planned, steps).filter((step) => !maybe.test(step));
  if (unplanned.length + undone.length > 0) {
    throw new Error(
      `the preview and the update differ: planned and not done ${undone.join(", ")}; done and not planned ${unplanned.join(", ")}`,
    );
  }
  return run;
}

/**
 * Fails with what changed when a run changed anything. Without its preview, which would say the same,
 * such a run takes half the time.
 */
export function unchanged(run: Run): void {
  succeeded(run);
  if (changedAnything(run)) {
    throw new Error(`expected no change, got ${JSON.stringify(run.changes)}:\n${run.stdout}`);
  }
}

/** Fails with what the engine said when an update succeeded. */
export function refused(run: Run): string {
  if (run.code === 0)
    throw new Error(`expected the engine to refuse, and it went on:\n${run.stdout}`);
  return `${run.stdout}\n${run.stderr}\n${run.diagnostics.join("\n")}`;
}
