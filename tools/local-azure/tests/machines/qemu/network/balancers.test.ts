import { operatorAddress } from "../../../../machines/qemu/network/namespaces";
import type { VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { MachinesInNetwork } from "../../../support/qemu/fixture";

describe("a floating address", () => {
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
});

describe("an internal balancer", () => {
  const [first = "", second = ""] = ["10.1.1.28", "10.1.1.27"];
  const both = [second, first];
  const service = "10.1.1.20";

  /** One subnet for machines and balancer, as somebody is given it. */
  const network = ({ isFloating = false, deny = "" } = {}): VirtualNetwork => {
    const rule = (priority: number, access: string, source: string) => ({
      ...{ access, direction: "Inbound", priority, protocol: "*" },
      ...{ sourceAddressPrefix: source, sourcePortRange: "*" },
      ...{ destinationAddressPrefix: "*", destinationPortRange: "*" },
    });
    const frontend = isFloating ? service : "10.1.1.29";
    return {
      key: "0badcafd",
      ranges: ["10.1.0.0/16"],
      subnets: [
        {
          ...{ bridge: "s0badcafd", prefix: "10.1.1.0/27", gateway: "10.1.1.1" },
          isBehindFirewall: true,
          rules: [
            ...(deny ? [rule(100, "Deny", deny)] : []),
            ...[rule(200, "Allow", "VirtualNetwork"), rule(300, "Allow", "198.18.0.0/24")],
          ],
        },
      ],
      balanced: [
        {
          ...{ address: frontend, port: 80, protocol: "Tcp", backendPort: 80 },
          ...{ isFloating, isInternal: true, backends: both },
        },
      ],
      ...{ destinations: ["10.1.1.0/27"], names: {} },
    };
  };
  const frontend = "http://10.1.1.29/";

  const world = new MachinesInNetwork();
  beforeAll(async () => {
    await world.shape(network());
    for (const address of both) await world.add(network(), address, service);
  });
  afterAll(() => world.remove());

  it("leads whoever asks it to a healthy machine, also one beside it in the same subnet", async () => {
    await world.follow(network(), both);
    const said = new Set<string>();
    const operator = ["--interface", operatorAddress];
    for (let time = 0; time < 12; time += 1)
      said.add(await world.ask(world.namespaces.internet, frontend, ...operator));
    expect([...said].sort()).toEqual(both.map((address) => `${address} ${operatorAddress}`));

    await world.follow(network(), [second]);
    expect(await world.ask(first, frontend)).toBe(`${second} ${first}`);
  });

  it.each([false, true])(
    "gives a machine no answer by way of itself, and nobody one while none is healthy (floating IP: %s)",
    async (isFloating) => {
      const url = isFloating ? `http://${service}:80/` : frontend;
      await world.follow(network({ isFloating }), [first]);
      // A machine has a floating address itself, so that what it asks of it never leaves it.
      if (!isFloating) await expect(world.ask(first, url)).rejects.toThrow("timed out");
      expect(await world.ask(world.namespaces.internet, url, "--interface", operatorAddress)).toBe(
        `${first} ${operatorAddress}`,
      );

      await world.follow(network({ isFloating }), []);
      await expect(
        world.ask(world.namespaces.internet, url, "--interface", operatorAddress),
      ).rejects.toThrow("timed out");
    },
  );

  it("leads machines of one subnet to each other as far as the security group lets them", async () => {
    await world.follow(network(), both);
    expect(await world.ask(first, `http://${second}/`)).toBe(`${second} ${first}`);

    await world.follow(network({ deny: first }), both);
    await expect(world.ask(first, `http://${second}/`)).rejects.toThrow("timed out");
    expect(await world.ask(second, `http://${first}/`)).toBe(`${first} ${second}`);
  });

  it("has no way out but to the firewall's proxy", async () => {
    await world.follow(network(), both);

    await expect(world.ask(first, "http://198.18.4.1:3128/")).rejects.toThrow("Couldn't connect");
    for (const elsewhere of ["198.18.4.1", "198.18.1.1"])
      await expect(world.ask(first, `http://${elsewhere}/`)).rejects.toThrow("timed out");
  });
});
