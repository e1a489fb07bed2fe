import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { messageOf, UserError } from "../../shared/user-error";
import { ResourceManager } from "../arm/resource-manager";
import { wallClock } from "../arm/durations";
import { authorityFile, certificateIn, type Served } from "../arm/rest/listener";
import type { Hooks } from "../arm/rest/control";
import { serveRest } from "../arm/rest/rest";
import { blobContainerType } from "../arm/types/storage";
import { BlobService } from "../blobs/blob-service";
import { BlobStore } from "../blobs/store";
import { publicDocuments, TokenService } from "../entra";
import type { Machines, RealBackend, SimulatedBackend } from "../machines/machines";
import { ownProgramsIn } from "../machines/own-programs";
import { hostSettings } from "../machines/qemu/host";
import { QemuMachines } from "../machines/qemu/qemu";
import { SimulatedMachines } from "../machines/simulated/simulated";
import { serveKubernetes } from "../plugins/kubernetes/provider";
import { serveTls } from "../plugins/tls/tls";
import { serveAzureNative } from "../provider/azure-native";
import { RegistryService } from "../registries/registry-service";
import { serveApiProxy } from "./api-proxy";
import type { Address, Attachment, Ports } from "./attachment";
import { operationsOf } from "./operation-log";

export interface LocalAzureOptions {
  /** State folder. */
  readonly state: string;
  /** Folder of the binaries: etcd, kube-apiserver and others. */
  readonly binaries: string;
  /**
   * Preferred ports.
   *
   * @default any free ones
   */
  readonly ports?: Partial<Ports>;
  /** Whether a port that is in use is an error. */
  readonly exactPorts?: boolean;
  /** Wraps the machines; the bench adds durations. */
  readonly around?: (machines: Machines) => Machines;
  readonly log: (message: string) => void;
}

/** The local Azure, running in this process. */
export interface LocalAzure extends Attachment {
  readonly arm: ResourceManager;
  readonly machines: SimulatedBackend | RealBackend;
  /** Stops every process and closes every port. The state folder remains. */
  stop(): Promise<void>;
}

/** Starts the resource manager, its REST API, the providers and the machines in its state. */
export async function startLocalAzure(options: LocalAzureOptions): Promise<LocalAzure> {
  const { state, binaries, log, around = (machines) => machines } = options;
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const machines = machinesIn(state, binaries, log);
  const real = machines.backend === "qemu" ? machines : undefined;
  const store = new BlobStore(join(state, "blobs"), wallClock.now);
  const arm = new ResourceManager({
    stateFile: join(state, "resources.json"),
    requestLog: join(state, "requests.jsonl"),
    machines: around(machines),
    networkChanged: real && ((view) => real.networkChanged(view)),
    removed: ({ id, type }) => type === blobContainerType && store.removeContainer(id),
  });
  const servers: Served[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
    await machines.stop();
  };
  const serve = async (name: keyof Ports, start: (port: number) => Promise<Served>) => {
    const server = await listen(options, name, start);
    servers.push(server);
    return server.port;
  };
  try {
    await arm.resume();
    const redirect = (apiName: string) => machines.apiAddress(apiName);
    const hooks: Hooks = {
      health: () => ({ apis: apisOf(machines), machines: real?.machines() ?? [] }),
      power: (machine, action) => machines.power(machine, action),
      simulated: machines.backend === "simulated" ? machines : undefined,
    };
    const operations = operationsOf(state, arm.breakpoints);
    const certificate = await certificateIn(state);
    const blob = await serve("blob", (port) =>
      new BlobService(arm, store).serve(port, certificate),
    );
    const documents = publicDocuments(blob, certificate.authority);
    const login = await serve("login", (port) =>
      new TokenService(arm, documents).serve(port, certificate),
    );
    const ports: Ports = {
      resourceManager: await serve("resourceManager", (port) =>
        serveRest(arm, port, hooks, certificate),
      ),
      azureNative: await serve("azureNative", (port) => serveAzureNative(arm, store, port)),
      tls: await serve("tls", (port) => serveTls(port, operations)),
      kubernetes: await serve("kubernetes", (port) =>
        serveKubernetes({ port, resolve: redirect, around: operations }),
      ),
      proxy: await serve("proxy", (port) => serveApiProxy(redirect, login, port)),
      blob,
      login,
    };
    // Nobody but machines asks it, and they by its name.
    const registries = await new RegistryService(arm, state).serve(0, certificate);
    servers.push(registries);
    await machines.openServices({ ...ports, registry: registries.port });
    const authority = authorityFile(state);
    const apiAddress = async (name: string) => machines.apiAddress(name);
    return { arm, machines, ports, authority, stop, apiAddress };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The machines of a state folder, real or simulated. */
function machinesIn(
  state: string,
  binaries: string,
  log: (message: string) => void,
): SimulatedBackend | RealBackend {
  const settings = hostSettings(state);
  if (settings !== undefined) return new QemuMachines({ state, settings, log });
  const at = (name: string): string => join(binaries, name);
  return new SimulatedMachines({
    stateDir: join(state, "machines"),
    binaries: {
      etcd: at("etcd"),
      etcdctl: at("etcdctl"),
      etcdutl: at("etcdutl"),
      "kube-apiserver": at("kube-apiserver"),
      "kube-controller-manager": at("kube-controller-manager"),
      "kube-scheduler": at("kube-scheduler"),
      kubeadm: at("kubeadm"),
      kwok: at("kwok"),
    },
    programs: ownProgramsIn(state),
    authority: authorityFile(state),
    log,
  });
}

/** Where each API listens, by its name on Azure. */
const apisOf = (machines: LocalAzure["machines"]): Record<string, Address> =>
  Object.fromEntries(machines.status().map(({ apiName, api }) => [apiName, api]));

async function listen(
  { ports = {}, exactPorts = false }: LocalAzureOptions,
  name: keyof Ports,
  start: (port: number) => Promise<Served>,
): Promise<Served> {
  const wanted = ports[name] ?? 0;
  try {
    return await start(wanted);
  } catch (error) {
    if (wanted === 0 || !/EADDRINUSE|EACCES|No address added/.test(messageOf(error))) throw error;
    if (!exactPorts) return await start(0);
    throw new UserError(
      `port ${wanted}, which ${name} needs, is in use: ` +
        "stop what uses it, choose another with --port, or omit --port to take any free ports",
    );
  }
}
