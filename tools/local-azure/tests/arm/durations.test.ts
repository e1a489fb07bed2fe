import { readFileSync } from "node:fs";

import { ResourceManager } from "../../arm/resource-manager";
import { Durations } from "../../arm/durations";
import { createResources, newArm, ManualClock, refusedBy } from "../support/arm/fixture";
import { group, network, valid } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("with durations", () => {
  const timed = async () => {
    const clock = new ManualClock();
    const { arm, machines, args } = newArm({ clock });
    await createResources(arm);
    arm.durations.set({ factor: 0.5 });
    const seconds = async (request: Promise<unknown>) => {
      const before = clock.now().getTime();
      await clock.until(request);
      return (clock.now().getTime() - before) / 1000;
    };
    return { arm, clock, machines, args, seconds };
  };
  const subnet = (digit: number) =>
    [
      network(`virtualNetworks/vnet/subnets/s${digit}`),
      { addressPrefix: `172.16.${digit}.0/24` },
    ] as const;

  it("takes the configured share of Azure's time", async () => {
    const { arm, seconds } = await timed();

    expect(await seconds(arm.put(network("virtualNetworks/other"), valid.vnet[1]))).toBe(3.5);
    expect(await seconds(arm.delete(network("virtualNetworks/other")))).toBe(5.5);
    expect(await seconds(arm.get(group))).toBe(0);
  });

  it("allows one operation at a time on a virtual network", async () => {
    const { arm, clock } = await timed();

    const first = arm.put(...subnet(7));
    const second = refusedBy(arm.put(...subnet(8)));

    expect(await second).toMatch(/^AnotherOperationInProgress/);
    await clock.until(first);
    expect(await clock.until(refusedBy(arm.put(...subnet(8))))).toBe("not refused");
  });

  it("refuses a reference to a resource with an operation in progress", async () => {
    const { arm, clock } = await timed();
    const first = arm.put(...subnet(7));

    const nic = arm.put(network("networkInterfaces/b"), {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: subnet(7)[0] } }],
    });

    expect(await refusedBy(nic)).toMatch(/^ReferencedResourceNotProvisioned/);
    await clock.until(first);
  });

  it("changes no tags of what is being changed, and deletes nothing twice", async () => {
    const { arm, clock } = await timed();
    const [id, body] = valid.routeTable;

    const change = arm.put(id, body);
    expect(await refusedBy(arm.patch(id, { tags: { a: "b" } }))).toMatch(
      /^AnotherOperationInProgress/,
    );
    await clock.until(change);
    const deletion = arm.delete(group);
    expect(await refusedBy(arm.delete(group))).toMatch(/^ResourceGroupBeingDeleted/);
    await clock.until(deletion);
  });

  it("shows a group as Deleting, creates nothing in it, and completes the deletion after a restart", async () => {
    const { arm, args } = await timed();
    void arm.delete(group);

    expect(arm.peek(group)).toMatchObject({ properties: { provisioningState: "Deleting" } });
    expect(await refusedBy(arm.put(...valid.vnet))).toMatch(/^ResourceGroupBeingDeleted/);
    while (!readFileSync(args.stateFile, "utf8").includes("Deleting")) await nextTurn();
    const later = new ResourceManager(args);
    await later.resume();
    expect(later.isEmpty).toBe(true);
  });
});

it("refuses a negative factor", () => {
  expect(() => new Durations({ factor: -1 })).toThrow(/factor -1/);
});
