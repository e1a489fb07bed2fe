import { existsSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";

import type { Address } from "../../attachment";
import { writeWhole } from "../../files";

interface Door {
  readonly server: Server;
  readonly address: Address;
  target: string;
}

const loopback = "127.0.0.1";

/**
 * Ports of this host that lead to names on the played internet: whoever connects comes from an
 * operator's address there, so that security groups judge him as they would on Azure.
 */
export class Doors {
  private readonly doors = new Map<string, Door>();

  /** @param file remembers the ports, which kubeconfigs hold @param socket where the internet begins */
  constructor(
    private readonly file: string,
    private readonly socket: string,
  ) {}

  at = (name: string): Address | undefined => this.doors.get(name)?.address;

  all = (): { apiName: string; api: Address }[] =>
    [...this.doors].map(([apiName, { address }]) => ({ apiName, api: address }));

  /** Opens doors to these names, and closes those to others. */
  async lead(targets: ReadonlyMap<string, Address>): Promise<void> {
    for (const [name, door] of this.doors) {
      if (targets.has(name)) continue;
      door.server.close();
      this.doors.delete(name);
    }
    for (const [name, { host, port }] of targets) {
      const target = `${host} ${port}\n`;
      const door = this.doors.get(name);
      if (door) door.target = target;
      else await this.open(name, target);
    }
    const ports = [...this.doors].map(([name, { address }]) => [name, address.port]);
    if (ports.length > 0) writeWhole(this.file, JSON.stringify(Object.fromEntries(ports)));
  }

  close(): void {
    for (const { server } of this.doors.values()) server.close();
    this.doors.clear();
  }

  private async open(name: string, target: string): Promise<void> {
    const server = createServer((from) => {
      const to = connect(this.socket);
      to.write(this.doors.get(name)?.target ?? target);
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
    this.doors.set(name, { server, address: { host: loopback, port }, target });
  }

  private remembered(name: string): number {
    if (!existsSync(this.file)) return 0;
    return (JSON.parse(readFileSync(this.file, "utf8")) as Record<string, number>)[name] ?? 0;
  }
}
