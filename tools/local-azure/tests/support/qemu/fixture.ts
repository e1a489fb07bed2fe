import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../../../tests/support/test-folder";
import type { Qemu } from "../../../machines/qemu/hypervisor";
import { Namespaces } from "../../../machines/qemu/network/namespaces";
import type { VirtualNetwork } from "../../../machines/qemu/network/network-view";
import { probeKey, ruleset } from "../../../machines/qemu/network/ruleset";
import { run } from "../../../../shared/run";

/** What a stand-in may call: it finds the paths that QEMU is given, opens its disk, and answers on its sockets. */
const asQemu = `
const fs = require("node:fs");
const drive = process.argv.find((word) => word.includes("id=os,"));
if (drive) fs.closeSync(fs.openSync(/file=([^,]+)/.exec(drive)[1]));
const pathOf = (id) => /path=([^,]+)/.exec(process.argv.find((word) => word.includes("id=" + id + ",")))[1];
const serve = (id, greeting, answer, begun) => {
  fs.rmSync(pathOf(id), { force: true });
  require("node:net").createServer((client) => {
    client.write(greeting);
    client.on("data", (line) => {
      const { execute, arguments: given } = JSON.parse(line);
      const answered = JSON.stringify({ return: answer(execute, given) ?? {} }) + "\\n";
      client.write(answered, () => execute === "quit" && process.exit(0));
    }).on("error", () => undefined);
  }).listen(pathOf(id), begun);
};
const monitor = (answer, begun) => serve("qmp", '{"QMP": {}}\\n', answer, begun);
`;

/** A program in QEMU's place, in a folder that is its `__dirname`. */
export function standIn(folder: string, program: string): Qemu {
  const file = join(folder, "machine.cjs");
  writeFileSync(file, `${asQemu}${program}`);
  return {
    version: "0",
    command: [process.execPath, file],
    environment: {},
    img: ["sh", "-c", 'for disk; do :; done; touch "$disk"', "sh"],
  };
}

/** A virtual network with the kernel's own packets, and namespaces in place of virtual machines. */
export class MachinesInNetwork {
  private readonly state = testFolder();
  readonly namespaces = new Namespaces(this.state);
  private readonly servers: ChildProcess[] = [];

  async shape(network: VirtualNetwork): Promise<void> {
    await this.namespaces.ensureInternet();
    await this.namespaces.shape(network);
  }

  /** Puts the network's rules in force, with these machines healthy behind each balancer. */
  async follow(network: VirtualNetwork, healthy: readonly string[]): Promise<void> {
    const everywhere = new Map(network.balanced.map((one) => [probeKey(one), healthy]));
    const inside = this.namespaces.of(network.key);
    await run(this.namespaces.within(inside, ["nft", "--file", "-"]), {
      input: ruleset(network, everywhere),
    });
  }

  /** A machine that answers port 80 with its address and who asked; `service` is one that it has besides. */
  async add(network: VirtualNetwork, address: string, service?: string): Promise<void> {
    const subnet = network.subnets[0]!;
    const { gateway, prefix } = subnet;
    const name = this.machine(address);
    const index = this.servers.length;
    const ip = (within: string, line: string) => run(["ip", "-n", within, ...line.split(" ")]);
    const [tap, router] = [`t${index}`, this.namespaces.of(network.key)];
    await run(["ip", "netns", "add", name]);
    await ip(router, `link add ${tap} type veth peer name eth0 netns ${name}`);
    await this.namespaces.plug({
      ...{ network: network.key, tap, subnet, mac: "", address, isBalanced: true, isFirst: false },
    });
    for (const line of [
      ...["link set lo up", ...(service ? [`address add ${service}/32 dev lo`] : [])],
      ...["link set eth0 up", `address add ${address}/${prefix.split("/")[1]} dev eth0`],
      `route add default via ${gateway}`,
    ]) {
      await ip(name, line);
    }
    const serve = `
require("node:http")
  .createServer((request, response) => response.end(process.argv[1] + " " + request.socket.remoteAddress))
  .listen(80, "0.0.0.0", () => console.log("ready"));`;
    const [program = "", ...args] = this.namespaces.within(name, [
      ...[process.execPath, "-e", serve, address],
    ]);
    const server = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    this.servers.push(server);
    await new Promise((ready) => server.stdout.once("data", ready));
  }

  /** What an address answers within two seconds to a machine, or to somebody in a namespace. */
  ask(from: string, url: string, ...options: string[]): Promise<string> {
    const isMachine = /^[\d.]+$/.test(from);
    const curl = ["curl", "-sS", "--max-time", "2", ...options, url];
    return run(this.namespaces.within(isMachine ? this.machine(from) : from, curl));
  }

  async remove(): Promise<void> {
    this.servers.forEach((server) => server.kill("SIGKILL"));
    await this.namespaces.remove(await this.namespaces.existing());
  }

  private machine = (address: string): string =>
    this.namespaces.of(`machine-${address.replaceAll(".", "-")}`);
}
