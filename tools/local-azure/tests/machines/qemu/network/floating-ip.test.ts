import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { run } from "../../../../machines/qemu/command";
import { Namespaces, operatorAddress } from "../../../../machines/qemu/network/namespaces";
import type { VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { probeKey, ruleset } from "../../../../machines/qemu/network/ruleset";

jest.setTimeout(120_000);

const state = mkdtempSync(join(tmpdir(), "zoned-floating-"));
const namespaces = new Namespaces(state);
const servers: ChildProcess[] = [];

const service = "203.0.113.7";
const machines = ["172.16.1.16", "172.16.1.17"];
const balanced = {
  ...{ address: service, port: 80, protocol: "Tcp", backendPort: 80 },
  ...{ isFloating: true, backends: machines },
};
const network = (sources: string): VirtualNetwork => ({
  key: "0badcafe",
  ranges: ["172.16.0.0/16"],
  subnets: [
    {
      ...{ bridge: "s0badcafe", prefix: "172.16.1.0/24", gateway: "172.16.1.1" },
      rules: [
        {
          ...{ access: "Allow", direction: "Inbound", priority: 500, protocol: "Tcp" },
          ...{ sourceAddressPrefix: sources, sourcePortRange: "*" },
          ...{ destinationAddressPrefix: service, destinationPortRange: "80" },
        },
      ],
    },
  ],
  balanced: [balanced],
  publicAddresses: [service],
});

const follow = (healthy: readonly string[], sources = "Internet"): Promise<string> =>
  run(namespaces.within(namespaces.of("0badcafe"), ["nft", "--file", "-"]), {
    input: ruleset(network(sources), new Map([[probeKey(balanced), healthy]])),
  });

/** As kube-proxy has it, the machine has the Service's address itself. */
async function addMachine(address: string, index: number): Promise<void> {
  const name = namespaces.of(`machine-${index}`);
  const router = namespaces.of("0badcafe");
  const ip = (within: string, line: string) => run(["ip", "-n", within, ...line.split(" ")]);
  await run(["ip", "netns", "add", name]);
  await ip(router, `link add t${index} type veth peer name eth0 netns ${name}`);
  await ip(router, `link set t${index} master s0badcafe up`);
  for (const line of [
    ...["link set lo up", `address add ${service}/32 dev lo`, "link set eth0 up"],
    ...[`address add ${address}/24 dev eth0`, "route add default via 172.16.1.1"],
  ]) {
    await ip(name, line);
  }
  const serve = `
const [address, service] = process.argv.slice(1);
require("node:http")
  .createServer((request, response) => response.end(address + " " + request.socket.remoteAddress))
  .listen(80, service, () => console.log("ready"));`;
  const [program = "", ...args] = namespaces.within(name, [
    ...[process.execPath, "-e", serve, address, service],
  ]);
  const server = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  servers.push(server);
  await new Promise((ready) => server.stdout.once("data", ready));
}

const ask = (): Promise<string> =>
  run(
    namespaces.within(namespaces.internet, [
      ...["curl", "-sS", "--max-time", "2", "--interface", operatorAddress, `http://${service}/`],
    ]),
  );

beforeAll(async () => {
  await namespaces.ensureInternet();
  await namespaces.shape(network("Internet"));
  for (const [index, address] of machines.entries()) await addMachine(address, index);
});
afterAll(async () => {
  servers.forEach((server) => server.kill("SIGKILL"));
  await namespaces.remove(await namespaces.existing());
  rmSync(state, { recursive: true });
});

it("leads each connection to a healthy machine, which sees who sent it and to what address", async () => {
  await follow(machines);
  const said = new Set<string>();
  for (let time = 0; time < 12; time += 1) said.add(await ask());
  expect([...said].sort()).toEqual(machines.map((address) => `${address} ${operatorAddress}`));

  await follow(machines.slice(1));
  for (let time = 0; time < 4; time += 1) expect(await ask()).toContain(machines[1]);
});

it("judges by the rules of the security group with the address that the sender wrote", async () => {
  await follow(machines, "192.0.2.0/24");

  await expect(ask()).rejects.toThrow("timed out");
});
