import { operatorAddress } from "../../../../machines/qemu/network/namespaces";
import type { VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { MachinesInNetwork } from "../../../support/qemu/machines-in-network";

jest.setTimeout(120_000);

const service = "203.0.113.7";
const machines = ["172.16.1.16", "172.16.1.17"];
const network = (sources: string): VirtualNetwork => ({
  key: "0badcafe",
  ranges: ["172.16.0.0/16"],
  subnets: [
    {
      ...{ bridge: "s0badcafe", prefix: "172.16.1.0/24", gateway: "172.16.1.1" },
      isBehindFirewall: false,
      rules: [
        {
          ...{ access: "Allow", direction: "Inbound", priority: 500, protocol: "Tcp" },
          ...{ sourceAddressPrefix: sources, sourcePortRange: "*" },
          ...{ destinationAddressPrefix: service, destinationPortRange: "80" },
        },
      ],
    },
  ],
  balanced: [
    {
      ...{ address: service, port: 80, protocol: "Tcp", backendPort: 80 },
      ...{ isFloating: true, isInternal: false, backends: machines },
    },
  ],
  ...{ destinations: [service], names: {} },
});

const world = new MachinesInNetwork();
const ask = (): Promise<string> =>
  world.ask(world.namespaces.internet, `http://${service}/`, "--interface", operatorAddress);

beforeAll(async () => {
  await world.shape(network("Internet"));
  // As kube-proxy has it, a machine has the Service's address itself.
  for (const address of machines) await world.add(network("Internet"), address, service);
});
afterAll(() => world.remove());

it("leads each connection to a healthy machine, which sees who sent it and to what address", async () => {
  await world.follow(network("Internet"), machines);
  const said = new Set<string>();
  for (let time = 0; time < 12; time += 1) said.add(await ask());
  expect([...said].sort()).toEqual(machines.map((address) => `${address} ${operatorAddress}`));

  await world.follow(network("Internet"), machines.slice(1));
  for (let time = 0; time < 4; time += 1) expect(await ask()).toContain(machines[1]);
});

it("judges by the rules of the security group with the address that the sender wrote", async () => {
  await world.follow(network("192.0.2.0/24"), machines);

  await expect(ask()).rejects.toThrow("timed out");
});
