import { readFileSync } from "node:fs";

import { Cloud } from "../../arm/cloud";
import { Durations } from "../../arm/durations";
import { createResources, newCloud, ManualClock, refusedBy } from "../support/arm/fixture";
import { group, network, valid } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("with durations", () => {
  const timed = async () => {
    const clock = new ManualClock();
    const { cloud, machines, args } = newCloud({ clock });
    await createResources(cloud);
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

  it("takes the configured share of Azure's time", async () => {
    const { cloud, seconds } = await timed();

    expect(await seconds(cloud.put(network("virtualNetworks/other"), valid.vnet[1]))).toBe(3.5);
    expect(await seconds(cloud.delete(network("virtualNetworks/other")))).toBe(5.5);
    expect(await seconds(cloud.get(group))).toBe(0);
  });

  it("allows one operation at a time on a virtual network", async () => {
    const { cloud, clock } = await timed();

    const first = cloud.put(...subnet(7));
    const second = refusedBy(cloud.put(...subnet(8)));

    expect(await second).toMatch(/^AnotherOperationInProgress/);
    await clock.until(first);
    expect(await clock.until(refusedBy(cloud.put(...subnet(8))))).toBe("not refused");
  });

  it("refuses a reference to a resource with an operation in progress", async () => {
    const { cloud, clock } = await timed();
    const first = cloud.put(...subnet(7));

    const nic = cloud.put(network("networkInterfaces/b"), {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: subnet(7)[0] } }],
    });

    expect(await refusedBy(nic)).toMatch(/^ReferencedResourceNotProvisioned/);
    await clock.until(first);
  });

  it("changes no tags of what is being changed, and deletes nothing twice", async () => {
    const { cloud, clock } = await timed();
    const [id, body] = valid.routeTable;

    const change = cloud.put(id, body);
    expect(await refusedBy(cloud.patch(id, { tags: { a: "b" } }))).toMatch(
      /^AnotherOperationInProgress/,
    );
    await clock.until(change);
    const deletion = cloud.delete(group);
    expect(await refusedBy(cloud.delete(group))).toMatch(/^ResourceGroupBeingDeleted/);
    await clock.until(deletion);
  });

  it("shows a group as Deleting, creates nothing in it, and completes the deletion after a restart", async () => {
    const { cloud, args } = await timed();
    void cloud.delete(group);

    expect(cloud.peek(group)).toMatchObject({ properties: { provisioningState: "Deleting" } });
    expect(await refusedBy(cloud.put(...valid.vnet))).toMatch(/^ResourceGroupBeingDeleted/);
    while (!readFileSync(args.stateFile, "utf8").includes("Deleting")) await nextTurn();
    const later = new Cloud(args);
    await later.resume();
    expect(later.isEmpty).toBe(true);
  });
});

it("refuses a negative factor", () => {
  expect(() => new Durations({ factor: -1 })).toThrow(/factor -1/);
});
