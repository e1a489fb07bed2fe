import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";

import { type ImageStack, openImageStack } from "../../pulumi/image-stack";
import { subscriptionPath } from "../../local-azure/arm/resources/resource";
import { BlobStore } from "../../local-azure/blobs/store";
import { type Attachment, endpointOf, runningDaemon } from "../../local-azure/daemon/attachment";
import { ensureDaemon } from "../../local-azure/daemon/daemon-client";
import { chooseBackend } from "../../local-azure/machines/choose-backend";
import { hostSettings, writeHostSettings } from "../../local-azure/machines/qemu/host";
import type { MachineReport } from "../../local-azure/machines/machines";
import { Agent } from "../../local-azure/machines/qemu/guest/agent";
import { run } from "../../shared/run";
import { Namespaces } from "../../local-azure/machines/qemu/network/namespaces";
import { prepareHost } from "../../local-azure/machines/qemu/prepare";
import { defaultScale } from "../../local-azure/machines/qemu/sizes";
import type { Body } from "../../local-azure/machines/simulated/api";
import {
  apiNameIn,
  followMachines,
  type MachineOutput,
  reachableHere,
} from "../../local-azure/rehearsal/cluster-view";
import { imagesOf } from "../../local-azure/registries/registry-service";
import { Rehearsal, type Run } from "../../local-azure/rehearsal/rehearsal";
import { stackSettings } from "../../local-azure/rehearsal/settings";
import { takeFolder } from "../../local-azure/rehearsal/state-folder";
import { prepareBinaries } from "../../programs/engine";
import { kubectlTools } from "../../programs/tools";
import { pulumi } from "../../pulumi/pulumi";
import { checkout } from "../../shared/checkout";
import { writeWhole } from "../../shared/files";
import type { Progress } from "../../shared/progress";
import { sendToAzure } from "../azure-request";

const stack = "machines";

interface Outputs {
  readonly kubeconfig: string;
  readonly machines: readonly MachineOutput[];
}

export interface RealClusterOptions {
  readonly state: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Kubernetes versions that its machines can be upgraded to. */
  readonly upgrades?: readonly string[];
  /** Whether its machines pull the images of add-ons, in place of finding them on their disk. */
  readonly pullsAddOns?: boolean;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** What a cluster finds when it is made, and settings that only follow from it. */
export interface Given {
  readonly settings: Readonly<Record<string, unknown>>;
  /** By path, such as `httpProxy.https`: what is encrypted in the stack's file. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** A local Azure with real machines, and everything that a claim needs to look into it. */
export class RealCluster {
  private readonly namespaces: Namespaces;
  /** The stack's outputs, asked for once after each update. */
  private outputs: Promise<Outputs> | undefined;
  private found: Given = { settings: {}, secrets: {} };

  private constructor(
    private readonly given: RealClusterOptions,
    private readonly binaries: string,
    private azure: Attachment,
    readonly stack: Rehearsal,
  ) {
    this.namespaces = new Namespaces(given.state);
  }

  /** Makes everything ready but the machines; takes up what an interrupted run left. */
  static async open(given: RealClusterOptions): Promise<RealCluster> {
    const { settings, upgrades, pullsAddOns, progress, signal } = given;
    const options = { progress, signal };
    const state = takeFolder(given.state);
    await prepareHost(options);
    const binaries = await prepareBinaries(options, kubectlTools);
    const asked = stackSettings(checkout, stack, settings);
    const machines = { scale: defaultScale, upgrades, pullsAddOns };
    await chooseBackend(state, asked, { ...options, ...machines });
    if (!runningDaemon(state)) ownMirror(state);
    const azure = await ensureDaemon({ state, binaries }, progress, signal);
    const base = { state, stack, binaries, azure, progress, signal };
    return new RealCluster(
      { ...given, state },
      binaries,
      azure,
      await Rehearsal.open({ ...base, settings }),
    );
  }

  /** The stack of an image for machines of these settings. */
  imageStack(): Promise<ImageStack> {
    const { engine, place } = this.stack;
    const environment = { ...engine.environment, ZONED_PROGRAM: "image" };
    return openImageStack({
      ...{ cluster: stack, config: place.config, program: checkout },
      pulumi: (args) => pulumi(args, { ...engine, environment }),
    });
  }

  get signal(): AbortSignal {
    return this.given.signal;
  }

  get progress(): Progress {
    return this.given.progress;
  }

  /** The folder that its machines take packages and images from. */
  get mirror(): string {
    return mirrorOf(this.given.state);
  }

  /** Does this work while these parts of the mirror are out of the machines' reach. */
  async without<T>(parts: readonly ("apt" | "images")[], work: () => Promise<T>): Promise<T> {
    const places = parts.map((part) => join(this.mirror, part));
    for (const place of places) renameSync(place, `${place}.gone`);
    try {
      return await work();
    } finally {
      for (const place of places) renameSync(`${place}.gone`, place);
    }
  }

  get group(): string {
    const { resourceGroup = `zoned-${stack}` } = this.given.settings;
    return `${subscriptionPath}/resourceGroups/${String(resourceGroup)}`;
  }

  /** Where the networks of its machines are kept. */
  get networks(): string {
    return join(this.given.state, "machines", "networks");
  }

  /** `pulumi up`, with every machine's steps. */
  async up(...flags: string[]): Promise<Run> {
    this.outputs = undefined;
    const unfollow = followMachines(this.azure, this.given.progress);
    return await this.stack.up(...flags).finally(unfollow);
  }

  /** With these settings above those that it has from its chapter, and by what it was given. */
  async configure(settings: Readonly<Record<string, unknown>>): Promise<void> {
    const { settings: found, secrets } = this.found;
    await this.stack.configure({ ...this.given.settings, ...found, ...settings });
    for (const [path, value] of Object.entries(secrets)) await this.stack.setSecret(path, value);
  }

  /** Has all further settings be above these. */
  take(found: Given): Promise<void> {
    this.found = found;
    return this.configure({});
  }

  async machines(): Promise<readonly MachineOutput[]> {
    return (await this.stackOutputs()).machines;
  }

  async names(role?: string): Promise<string[]> {
    const machines = await this.machines();
    return machines
      .filter((one) => role === undefined || one.role === role)
      .map(({ name }) => name);
  }

  async apiName(): Promise<string> {
    return apiNameIn((await this.stackOutputs()).kubeconfig);
  }

  /** A file for whoever wants to reach the API from this host. */
  async kubeconfig(): Promise<string> {
    const file = join(this.given.state, "kubeconfig");
    if (!existsSync(file)) {
      const { kubeconfig, address } = await this.api();
      writeWhole(file, reachableHere(kubeconfig, address));
    }
    return file;
  }

  /** The stack's own kubeconfig, and where the API that it names answers on this host. */
  private async api() {
    const { kubeconfig } = await this.stackOutputs();
    const address = await this.azure.apiAddress(apiNameIn(kubeconfig));
    if (address === undefined) throw new Error("no API answers yet");
    return { kubeconfig, address };
  }

  /** Has the next kubectl use the stack's kubeconfig of now. */
  renewKubeconfig(): void {
    rmSync(join(this.given.state, "kubeconfig"), { force: true });
  }

  async kubectl(args: readonly string[], input?: string): Promise<string> {
    const access = ["--kubeconfig", await this.kubeconfig(), "--request-timeout", "60s"];
    return await run([this.kubectlPath, ...access, ...args], { input, signal: this.signal });
  }

  private get kubectlPath(): string {
    return join(this.binaries, "kubectl");
  }

  /** By what a program beside it reaches its API, and where that may write. */
  async access() {
    return { kubectl: this.kubectlPath, folder: this.given.state, ...(await this.api()) };
  }

  async get<T>(...args: string[]): Promise<T[]> {
    return (JSON.parse(await this.kubectl(["get", ...args, "--output", "json"])) as { items: T[] })
      .items;
  }

  /** Without kubectl's own look at the objects, for which an emulated processor takes a minute. */
  apply = (...items: object[]): Promise<string> =>
    this.kubectl(
      ["apply", "--server-side", "--validate=ignore", "--filename", "-"],
      JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    );

  /** What the local Azure reports of every machine. */
  async reports(): Promise<readonly MachineReport[]> {
    const { machines } = (await this.sendToAzure("GET", "/local/health")) as {
      machines: MachineReport[];
    };
    return machines;
  }

  /** Runs a script as root in a machine, past its network. */
  async inMachine(name: string, script: string): Promise<string> {
    const report = (await this.reports()).find((one) => one.name === name);
    if (report === undefined) throw new Error(`there is no machine ${name}`);
    const path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    const { exitCode, stdout } = await new Agent(report.agent).run(
      ...(["/bin/bash", "-c", `export ${path}; exec 2>&1; ${script}`] as const),
    );
    if (exitCode !== 0) throw new Error(`on ${name}, ${script} ended with ${exitCode}:\n${stdout}`);
    return stdout;
  }

  /** Kills the process of the local Azure, and starts it again. */
  async crash(): Promise<void> {
    const { pid } = await this.sendToAzure("GET", "/local/health");
    process.kill(pid as number, "SIGKILL");
    const { state, progress, signal } = this.given;
    this.azure = await ensureDaemon({ state, binaries: this.binaries }, progress, signal);
  }

  /** What an address answers to somebody in the machines' virtual network who is no machine. */
  async fromNetwork(url: string): Promise<string> {
    const all = await this.namespaces.existing();
    const network = all.find((name) => name !== this.namespaces.internet);
    if (network === undefined) throw new Error("there is no virtual network");
    const ask = "fetch(process.argv[1]).then((r) => r.text()).then((t) => process.stdout.write(t))";
    return await run(this.namespaces.within(network, [process.execPath, "-e", ask, url]), {
      signal: this.signal,
    });
  }

  /**
   * What an address answers to somebody on the internet, who has one of the addresses there.
   *
   * @throws when nothing answers within ten seconds
   */
  fromInternet(url: string, localAddress: string): Promise<string> {
    const ask = `
require("node:http")
  .get(process.argv[1], { localAddress: process.argv[2], agent: false, timeout: 10_000 }, (answer) => answer.pipe(process.stdout))
  .on("timeout", () => { console.error("no answer"); process.exit(1); })`;
    const { internet } = this.namespaces;
    return run(this.namespaces.within(internet, [process.execPath, "-e", ask, url, localAddress]), {
      signal: this.signal,
    });
  }

  /** Reads or changes a thing in the resource group behind Pulumi's back. */
  inGroup(method: string, path: string): Promise<Body> {
    return this.sendToAzure(method, `${this.group}/providers${path}`);
  }

  /**
   * Asks Azure something about a machine behind Pulumi's back; an action is one of its own, as
   * restart.
   */
  ask(method: string, machine: string, action = ""): Promise<Body> {
    return this.inGroup(method, `/Microsoft.Compute/virtualMachines/${join(machine, action)}`);
  }

  /** Lets Azure announce something to a machine, and do it. */
  async event(machine: string, type: string): Promise<void> {
    const answer = await fetch(`${endpointOf(this.azure.ports)}/local/machines/${machine}/events`, {
      ...{ method: "POST", body: JSON.stringify({ type }), signal: this.signal },
    });
    if (!answer.ok) throw new Error(`${type} of ${machine}: ${await answer.text()}`);
  }

  /** Which generation each machine is, by Azure's own id of it. */
  async generations(): Promise<Record<string, string>> {
    const names = await this.names();
    const ids = names.map(async (name) => {
      const { properties } = await this.ask("GET", name);
      return [name, properties.vmId as string] as const;
    });
    return Object.fromEntries(await Promise.all(ids));
  }

  /** The file of the authority by which Azure's services prove themselves here. */
  get authority(): string {
    return this.azure.authority;
  }

  /** Where the images are that a registry of this name has. */
  imagesOf = (server: string): string => imagesOf(this.given.state, server);

  /** Puts a blob into a container, as its owner. */
  async putBlob(container: string, name: string, content: string): Promise<void> {
    const blobs = new BlobStore(join(this.given.state, "blobs"), () => new Date());
    await blobs.putBlock(container, name, "AAAA", Readable.from([Buffer.from(content)]));
    await blobs.putBlockList(container, name, ["AAAA"], {});
  }

  /** Makes a blob container in a resource group of its own; returns its id. */
  async container(account: string, name = "etcd"): Promise<string> {
    const group = `${subscriptionPath}/resourceGroups/backups`;
    const at = `${group}/providers/Microsoft.Storage/storageAccounts/${account}`;
    const location = "westeurope";
    const sku = { name: "Standard_ZRS" };
    const properties = { supportsHttpsTrafficOnly: false };
    await this.sendToAzure("PUT", group, { location });
    await this.sendToAzure("PUT", at, { kind: "StorageV2", location, sku, properties });
    const container = `${at}/blobServices/default/containers/${name}`;
    await this.sendToAzure("PUT", container, { properties: {} });
    return container;
  }

  private stackOutputs = (): Promise<Outputs> =>
    (this.outputs ??= this.stack.outputs() as Promise<unknown> as Promise<Outputs>);

  /** Asks Azure as somebody else does who has a part in the subscription. */
  async sendToAzure(method: string, path: string, body?: object): Promise<Body> {
    const answer = await sendToAzure(endpointOf(this.azure.ports), {
      method,
      path,
      body,
      signal: this.signal,
    });
    return (answer ?? {}) as Body;
  }
}

const mirrorOf = (state: string): string => join(state, "mirror");

/** Links to the mirror's parts: one that is taken away is gone for these machines alone. */
function ownMirror(state: string): void {
  const settings = hostSettings(state)!;
  const own = mirrorOf(state);
  if (!existsSync(own)) {
    mkdirSync(own);
    for (const part of ["apt", "images", "manifests", "credential-provider"]) {
      symlinkSync(join(settings.mirror, part), join(own, part));
    }
  }
  writeHostSettings(state, { ...settings, mirror: own });
}
