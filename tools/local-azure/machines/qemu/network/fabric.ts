import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { loadTypeScript } from "../../../../shared/checkout";
import { writeWhole } from "../../../../shared/files";
import type { View } from "../../../arm/resources/resource";
import type { Address } from "../../../daemon/attachment";
import type { ServicePorts } from "../../machines";
import { Supervisor } from "../../supervisor";
import type { Host } from "../host";
import { azureNamesOf, type AzureService, relay, serviceNames } from "./azure-services";
import type { NetworkConfig } from "./network-process";
import { metadataOf, networksOf, publicNamesOf, type VirtualNetwork } from "./network-view";

const startWithin = 60_000;
/** An emulated processor needs longer to answer a probe. */
const patience = { kvm: 1, tcg: 4 } as const;

/** The networks of the resource manager as namespaces with what lives in them. */
export class Fabric {
  private readonly forwards: PortForwards;
  private readonly supervisor: Supervisor;
  private readonly applied = new Map<string, string>();
  private last: Promise<void>;
  private services: readonly Server[] = [];

  constructor(
    private readonly host: Host,
    private readonly folder: string,
  ) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    mkdirSync(host.sockets, { recursive: true, mode: 0o700 });
    this.forwards = new PortForwards(join(folder, "port-forwards.json"), this.socket("internet"));
    this.supervisor = new Supervisor(folder, host.log);
    // What an earlier local Azure left running has its own idea of things.
    this.last = this.supervisor.endOrphans();
  }

  apiAddress = (name: string): Address | undefined => this.forwards.at(name);

  apis = () => this.forwards.all();

  /** Leads machines to Azure's services, which listen on these ports of the host. */
  async openServices(ports: ServicePorts): Promise<void> {
    const host = "127.0.0.1";
    this.services = await Promise.all(
      serviceNames.map((name) => relay({ path: this.socket(name) }, { host, port: ports[name] })),
    );
  }

  /** Makes the networks what the resource manager says; one change after the other. */
  apply(view: View): Promise<void> {
    const next = this.last.then(() => this.follow(view));
    this.last = next.catch(() => undefined);
    return next;
  }

  /** Ends what lives in the networks; with `remove`, they too are gone. */
  async stop({ remove }: { readonly remove: boolean }): Promise<void> {
    this.forwards.close();
    this.services.forEach((service) => service.close());
    await Promise.all(this.supervisor.status().map(({ name }) => this.supervisor.stop(name)));
    this.supervisor.close();
    const { namespaces, sockets } = this.host;
    if (!remove) return;
    await namespaces.remove(await namespaces.existing());
    rmSync(sockets, { recursive: true, force: true });
  }

  private async follow(view: View): Promise<void> {
    const networks = networksOf(view);
    const names = { ...publicNamesOf(view), ...azureNamesOf(view) };
    for (const key of [...this.applied.keys()]) {
      if (!networks.some((network) => network.key === key)) await this.removeNetwork(key);
    }
    if (networks.length > 0) await this.startInternet();
    if (networks.some(({ subnets }) => subnets.some(({ isBehindFirewall }) => isBehindFirewall))) {
      this.startFirewall();
    }
    for (const network of networks) {
      const config: NetworkConfig = {
        network,
        names: { ...names, ...network.names },
        machines: metadataOf(network, view),
        patience: patience[this.host.accelerator],
      };
      await this.applyConfig(network, JSON.stringify(config));
    }
    const privateNames = networks.map((network) => network.names);
    await this.forwardPorts(networks, Object.assign(names, ...privateNames));
  }

  private async applyConfig(network: VirtualNetwork, config: string): Promise<void> {
    const { key } = network;
    if (this.applied.get(key) === config) return;
    const { namespaces } = this.host;
    await namespaces.shape(network);
    const file = join(this.folder, `${key}.json`);
    writeWhole(file, config);
    const resourceManager: AzureService = "resourceManager";
    const sockets = [this.socket(key), this.socket(resourceManager)];
    this.run(namespaces.of(key), key, "network-process.ts", file, ...sockets);
    await this.reload(key);
    this.applied.set(key, config);
  }

  private async startInternet(): Promise<void> {
    const { namespaces, mirror } = this.host;
    if (this.supervisor.isRunning("internet")) return;
    await namespaces.ensureInternet();
    const name = "internet";
    const args = [this.socket(name), mirror, ...serviceNames.map(this.socket)];
    this.run(namespaces.internet, name, "internet-process.ts", ...args);
  }

  private startFirewall(): void {
    const name = "firewall";
    if (this.supervisor.isRunning(name)) return;
    this.run(this.host.namespaces.internet, name, "firewall-process.ts", this.folder);
  }

  private async removeNetwork(key: string): Promise<void> {
    await this.supervisor.stop(key);
    await this.host.namespaces.remove([this.host.namespaces.of(key)]);
    rmSync(join(this.folder, `${key}.json`), { force: true });
    this.applied.delete(key);
  }

  private forwardPorts(
    networks: readonly VirtualNetwork[],
    names: Readonly<Record<string, string>>,
  ): Promise<void> {
    const balanced = networks.flatMap((network) => network.balanced);
    return this.forwards.lead(
      new Map(
        Object.entries(names).flatMap(([name, host]) => {
          const rule = balanced.find(({ address }) => address === host);
          return rule === undefined ? [] : [[name, { host, port: rule.port }] as const];
        }),
      ),
    );
  }

  private run(namespace: string, name: string, file: string, ...args: string[]): void {
    const node = [process.execPath, ...loadTypeScript];
    const command = [...node, join(__dirname, file), ...args];
    this.supervisor.start({ name, command: this.host.namespaces.within(namespace, command) });
  }

  /** Has a network's process read its file again, and waits until all of it is in force. */
  private async reload(key: string): Promise<void> {
    for (const until = Date.now() + startWithin; ; await wait(100)) {
      try {
        const reply = await replyOf(this.socket(key));
        if (reply === "done") return;
        throw new Error(`network ${key}: ${reply}`);
      } catch (error) {
        const isStarting = /ENOENT|ECONNREFUSED/.test((error as Error).message);
        if (!isStarting || Date.now() > until) {
          throw new Error(`${(error as Error).message}\n${this.supervisor.endOfLog(key)}`, {
            cause: error,
          });
        }
      }
    }
  }

  private socket = (name: string): string => join(this.host.sockets, `${name}.sock`);
}

const replyOf = (path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = "";
    connect(path)
      .setEncoding("utf8")
      .on("data", (chunk: string) => (text += chunk))
      .on("end", () => resolve(text))
      .on("error", reject);
  });

interface Forward {
  readonly server: Server;
  readonly address: Address;
  target: string;
}

const loopback = "127.0.0.1";

/**
 * Ports of this host that lead to names on the simulated internet: a client comes from an
 * operator's address there, so that security groups judge it as they would on Azure.
 */
class PortForwards {
  private readonly forwards = new Map<string, Forward>();

  /**
   * @param file remembers the ports, which kubeconfigs hold @param socket where the internet begins
   */
  constructor(
    private readonly file: string,
    private readonly socket: string,
  ) {}

  at = (name: string): Address | undefined => this.forwards.get(name)?.address;

  all = (): { apiName: string; api: Address }[] =>
    [...this.forwards].map(([apiName, { address }]) => ({ apiName, api: address }));

  /** Opens ports for these names, and closes those for others. */
  async lead(targets: ReadonlyMap<string, Address>): Promise<void> {
    for (const [name, forward] of this.forwards) {
      if (targets.has(name)) continue;
      forward.server.close();
      this.forwards.delete(name);
    }
    for (const [name, { host, port }] of targets) {
      const target = `${host} ${port}\n`;
      const forward = this.forwards.get(name);
      if (forward) forward.target = target;
      else await this.open(name, target);
    }
    const ports = [...this.forwards].map(([name, { address }]) => [name, address.port]);
    if (ports.length > 0) writeWhole(this.file, JSON.stringify(Object.fromEntries(ports)));
  }

  close(): void {
    for (const { server } of this.forwards.values()) server.close();
    this.forwards.clear();
  }

  private async open(name: string, target: string): Promise<void> {
    const server = createServer((from) => {
      const to = connect(this.socket);
      to.write(this.forwards.get(name)?.target ?? target);
      from.pipe(to).pipe(from);
      to.on("error", () => from.destroy()).on("close", () => from.destroy());
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
    });
    const listen = (port: number): Promise<void> =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, loopback, () => resolve(void server.off("error", reject)));
      });
    await listen(this.remembered(name)).catch(() => listen(0));
    const { port } = server.address() as AddressInfo;
    this.forwards.set(name, { server, address: { host: loopback, port }, target });
  }

  private remembered(name: string): number {
    if (!existsSync(this.file)) return 0;
    return (JSON.parse(readFileSync(this.file, "utf8")) as Record<string, number>)[name] ?? 0;
  }
}
