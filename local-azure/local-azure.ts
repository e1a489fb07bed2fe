import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { serveApiProxy } from "./api-proxy";
import type { Address, Attachment, Ports } from "./attachment";
import { type LocalMachines, machinesIn } from "./machines/kinds";
import type { Machines } from "./machines/machines";
import { operationsOf } from "./operation-log";
import { serveAzureNative } from "./provider/azure-native";
import { Cloud, type CloudArgs } from "./resource-manager/cloud";
import { serveRest } from "./resource-manager/rest";
import { serveKubernetes } from "./standins/kubernetes";
import { serveTls } from "./standins/tls";
import { messageOf, Trouble } from "./trouble";

export interface LocalAzureOptions extends Pick<CloudArgs, "clock" | "durations" | "faults"> {
  /** Folder of everything it keeps; the same folder again is the same cloud. */
  readonly state: string;
  /** Folder of etcd, kube-apiserver and the rest. */
  readonly binaries: string;
  /**
   * Ports to take while they are free.
   *
   * @default any that are free
   */
  readonly ports?: Partial<Ports>;
  /** Whether the ports are an order, and one that is taken is an error. */
  readonly exactPorts?: boolean;
  /** Comes between the resource manager and the machines; a bench makes them take their time. */
  readonly around?: (machines: Machines) => Machines;
  readonly log: (message: string) => void;
}

/** The local Azure, running in this process. */
export interface LocalAzure extends Attachment {
  readonly cloud: Cloud;
  readonly machines: LocalMachines;
  /** Stops every process and closes every port; what is on disk stays. */
  stop(): Promise<void>;
}

interface Server {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts the resource manager, its REST side, the providers and the machines that it remembers. */
export async function startLocalAzure(options: LocalAzureOptions): Promise<LocalAzure> {
  const { state, binaries, log, around = (machines) => machines } = options;
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const machines = machinesIn(state, binaries, log);
  const cloud = new Cloud({
    ...options,
    stateFile: join(state, "cloud.json"),
    requestLog: join(state, "requests.jsonl"),
    machines: around(machines),
  });
  const servers: Server[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
    await machines.stop();
  };
  const serve = async (name: keyof Ports, start: (port: number) => Promise<Server>) => {
    const server = await listen(options, name, start);
    servers.push(server);
    return server.port;
  };
  try {
    await cloud.resume();
    const redirect = (apiName: string) => machines.apiAddress(apiName);
    const hooks = {
      facts: () => ({ apis: apisOf(machines), machines: machines.machines?.() ?? [] }),
      power: machines.power?.bind(machines),
      sicken: machines.sicken?.bind(machines),
      cure: machines.cure?.bind(machines),
    };
    const operations = operationsOf(state, cloud.breakpoints);
    const ports: Ports = {
      resourceManager: await serve("resourceManager", (port) => serveRest(cloud, port, hooks)),
      azureNative: await serve("azureNative", (port) => serveAzureNative(cloud, port)),
      tls: await serve("tls", (port) => serveTls(port, operations)),
      kubernetes: await serve("kubernetes", (port) =>
        serveKubernetes({ port, resolve: redirect, around: operations }),
      ),
      proxy: await serve("proxy", (port) => serveApiProxy(redirect, port)),
    };
    return { cloud, machines, ports, stop, apiAddress: async (name) => machines.apiAddress(name) };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Where each API listens, by its name on Azure. */
const apisOf = (machines: LocalMachines): Record<string, Address> =>
  Object.fromEntries(machines.status().map(({ apiName, api }) => [apiName, api]));

async function listen(
  { ports = {}, exactPorts = false }: LocalAzureOptions,
  name: keyof Ports,
  start: (port: number) => Promise<Server>,
): Promise<Server> {
  const wanted = ports[name] ?? 0;
  try {
    return await start(wanted);
  } catch (error) {
    if (wanted === 0 || !/EADDRINUSE|EACCES|No address added/.test(messageOf(error))) throw error;
    if (!exactPorts) return await start(0);
    throw new Trouble(
      `port ${wanted} is taken: the local Azure was told to listen there (${name}); ` +
        "end what has it, name another with --port, or leave --port out to take any that are free",
    );
  }
}
