import { existsSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

import { writeWhole } from "../../../../shared/files";
import type { Address } from "../../../daemon/attachment";

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
export class PortForwards {
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
