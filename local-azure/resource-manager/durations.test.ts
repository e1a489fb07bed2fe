import { readFileSync } from "node:fs";

import { Cloud } from "./cloud";
import { Durations } from "./durations";
import { build, newCloud, PlayedClock, refusedBy } from "./fixture";
import { group, network, sound } from "./sample";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("with durations", () => {
  const timed = async () => {
    const clock = new PlayedClock();
    const { cloud, machines, args } = newCloud({ clock });
    await build(cloud);
    cloud.durations.set({ factor: 0.5 });
    const seconds = async (request: Promise<unknown>) => {
      const before = clock.now().getTime();
      await clock.until(request);
      return (clock.now().getTime() - before) / 1000;
    };
    return { cloud, clock, machines, args, seconds };
  };
  const subnet = (digit: number) =>
    [
      network(`virtualNetworks/vnet/subnets/s${digit}`),
      { addressPrefix: `172.16.${digit}.0/24` },
    ] as const;

  it("takes its share of Azure's time", async () => {
    const { cloud, seconds } = await timed();

    expect(await seconds(cloud.put(network("virtualNetworks/other"), sound.vnet[1]))).toBe(3.5);
    expect(await seconds(cloud.delete(network("virtualNetworks/other")))).toBe(5.5);
    expect(await seconds(cloud.get(group))).toBe(0);
  });

  it("does one operation at a time on a network", async () => {
    const { cloud, clock } = await timed();

    const first = cloud.put(...subnet(7));
    const second = refusedBy(cloud.put(...subnet(8)));

    expect(await second).toMatch(/^AnotherOperationInProgress/);
    await clock.until(first);
    expect(await clock.until(refusedBy(cloud.put(...subnet(8))))).toBe("not refused");
  });

  it("lets nobody use what is being changed", async () => {
    const { cloud, clock } = await timed();
    const first = cloud.put(...subnet(7));

    const nic = cloud.put(network("networkInterfaces/b"), {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: subnet(7)[0] } }],
    });

    expect(await refusedBy(nic)).toMatch(/^ReferencedResourceNotProvisioned/);
    await clock.until(first);
  });

  it("shows a group as Deleting, takes nothing new into it, and finishes the deletion after a restart", async () => {
    const { cloud, args } = await timed();
    void cloud.delete(group);

    expect(cloud.peek(group)).toMatchObject({ properties: { provisioningState: "Deleting" } });
    expect(await refusedBy(cloud.put(...sound.vnet))).toMatch(/^ResourceGroupBeingDeleted/);
    while (!readFileSync(args.stateFile, "utf8").includes("Deleting")) await nextTurn();
    const later = new Cloud(args);
    await later.resume();
    expect(later.isEmpty).toBe(true);
  });
});

it("refuses a pace that makes no sense", () => {
  expect(() => new Durations({ factor: -1 })).toThrow(/factor -1/);
});
