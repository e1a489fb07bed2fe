import { readFileSync, statSync, writeFileSync } from "node:fs";

import { UserError } from "../../../shared/user-error";
import { ConnectionLost } from "../../arm/azure-error";
import { Durations } from "../../arm/durations";
import { Faults } from "../../arm/faults";
import { ResourceManager } from "../../arm/resource-manager";
import { StateFile } from "../../arm/resources/inventory";
import {
  createResources,
  ManualClock,
  newArm,
  RecordingMachines,
  refusedBy,
} from "../support/arm/fixture";
import { group, network, valid } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const location = "westeurope";
const [vnet, vnetBody] = valid.vnet;

describe("the state", () => {
  it("is the same after a restart, for its user alone", async () => {
    const { arm, args } = newArm();
    await createResources(arm);
    const machines = new RecordingMachines();

    const later = new ResourceManager({ ...args, machines });
    await later.resume();

    for (const [id] of Object.values(valid)) expect(later.peek(id)).toEqual(arm.peek(id));
    expect(machines.calls).toEqual(["resume cp-1"]);
    expect(await refusedBy(later.delete(valid.subnet[0]))).toMatch(/^InUseSubnetCannotBeDeleted/);
    expect(statSync(args.stateFile).mode & 0o777).toBe(0o600);
  });

  it("has a change on the disk before the answer", async () => {
    const { arm, args } = newArm();
    const ids = Array.from({ length: 20 }, (_, number) => network(`routeTables/rt-${number}`));
    await createResources(arm, "group");

    await Promise.all(
      ids.map(async (id) => {
        await arm.put(id, { location });
        expect(new ResourceManager(args).peek(id)).toBeDefined();
      }),
    );
  });

  it("is written at most twice for many simultaneous changes", async () => {
    const { args } = newArm();
    let writes = 0;
    const file = new StateFile(args.stateFile, () => (writes++, []));

    await Promise.all(Array.from({ length: 50 }, () => file.save()));

    expect(writes).toBeLessThanOrEqual(2);
  });

  it.each([
    ["cut off", (text: string) => text.slice(0, -5), /not JSON/],
    ["of another format", () => '{"format":0,"resources":[]}', /format 0/],
    ["without resources", () => '{"format":1}', /no list of resources/],
  ])("is reported when it is %s, with a fix, and left as it is", async (_, damage, says) => {
    const { arm, args } = newArm();
    await createResources(arm, "vnet");
    const damaged = damage(readFileSync(args.stateFile, "utf8"));
    writeFileSync(args.stateFile, damaged);

    const open = () => new ResourceManager(args);

    for (const what of [UserError, says, /npm stop/]) expect(open).toThrow(what);
    expect(readFileSync(args.stateFile, "utf8")).toBe(damaged);
  });

  it("has a script as failed that was running when the process ended", async () => {
    const { arm, machines, args } = newArm();
    await createResources(arm, "machine");
    machines.scriptResult = () => new Promise(() => undefined);
    void arm.put(...valid.extension);
    while (!machines.calls.some((one) => one.startsWith("run"))) await nextTurn();

    const later = new ResourceManager({ ...args, machines: new RecordingMachines() });
    await later.resume();

    expect(later.peek(valid.extension[0])).toMatchObject({ provisioningState: "Failed" });
    expect(await refusedBy(later.put(...valid.extension))).toMatch(
      /^VMExtensionProvisioningError: [^]*was stopped/,
    );
  });
});

it("compares ids case-insensitively, and keeps the case of the first PUT", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");

  await arm.put(vnet.toUpperCase(), vnetBody);

  expect(arm.peek(vnet.toLowerCase())).toMatchObject({ id: vnet });
  expect(arm.list(group).filter(({ type }) => /virtualNetworks$/.test(type))).toHaveLength(1);
});

it.each([
  ["as many in a row as it says", { times: 2 }, ["Busy", "Busy", "not refused"]],
  ["the nth alone", { nth: 2 }, ["not refused", "Busy", "not refused"]],
])("fails of the requests that match a fault %s", async (_, which, answers) => {
  const fault = { method: "PUT", id: "/publicIPAddresses/api$", code: "Busy", ...which } as const;
  const { arm } = newArm({ faults: new Faults([fault]) });
  await createResources(arm, "group");
  const put = async () => (await refusedBy(arm.put(...valid.apiIp))).split(":")[0];

  expect([await put(), await put(), await put()]).toEqual(answers);
});

describe("with durations", () => {
  const timed = async () => {
    const clock = new ManualClock();
    const { arm, machines, args } = newArm({ clock });
    await createResources(arm);
    arm.durations.set({ factor: 0.5 });
    return { arm, clock, machines, args };
  };
  const subnet = (digit: number) =>
    [`${vnet}/subnets/s${digit}`, { addressPrefix: `172.16.${digit}.0/24` }] as const;
  const onSubnet = (id: string) => ({
    location,
    ipConfigurations: [{ name: "ip", subnet: { id } }],
  });

  it("takes the configured share of Azure's time", async () => {
    const { arm, clock } = await timed();
    const seconds = async (request: Promise<unknown>) => {
      const before = clock.now().getTime();
      await clock.until(request);
      return (clock.now().getTime() - before) / 1000;
    };

    expect(await seconds(arm.put(`${vnet}-2`, vnetBody))).toBe(3.5);
    expect(await seconds(arm.delete(`${vnet}-2`))).toBe(5.5);
    expect(await seconds(arm.get(group))).toBe(0);
    expect(() => new Durations({ factor: -1 })).toThrow(/factor -1/);
  });

  type Change = (arm: ResourceManager) => Promise<unknown>;
  it.each<[what: string, first: Change, second: Change, answer: RegExp]>([
    [
      "a second operation on a network",
      (arm) => arm.put(...subnet(7)),
      (arm) => arm.put(...subnet(8)),
      /^AnotherOperationInProgress/,
    ],
    [
      "a reference to what is being made",
      (arm) => arm.put(...subnet(7)),
      (arm) => arm.put(network("networkInterfaces/b"), onSubnet(subnet(7)[0])),
      /^ReferencedResourceNotProvisioned/,
    ],
    [
      "tags of what is being changed",
      (arm) => arm.put(...valid.routeTable),
      (arm) => arm.patch(valid.routeTable[0], { tags: { a: "b" } }),
      /^AnotherOperationInProgress/,
    ],
    [
      "a second deletion of a group",
      (arm) => arm.delete(group),
      (arm) => arm.delete(group),
      /^ResourceGroupBeingDeleted/,
    ],
    [
      "what is new in a group that is being deleted",
      (arm) => arm.delete(group),
      (arm) => arm.put(vnet, vnetBody),
      /^ResourceGroupBeingDeleted/,
    ],
  ])("refuses %s, until that is done", async (_, first, second, answer) => {
    const { arm, clock } = await timed();

    const done = first(arm);

    expect(await refusedBy(second(arm))).toMatch(answer);
    await clock.until(done);
  });

  it("completes the deletion of a group, which is Deleting, after a restart, and ends its machines", async () => {
    const { arm, machines, args } = await timed();
    void arm.delete(group);

    expect(arm.peek(group)).toMatchObject({ properties: { provisioningState: "Deleting" } });
    while (!readFileSync(args.stateFile, "utf8").includes("Deleting")) await nextTurn();
    const later = new ResourceManager(args);
    await later.resume();
    expect(later.isEmpty).toBe(true);
    expect(machines.calls).toContain("remove cp-1");
  });
});

describe("a breakpoint", () => {
  it.each([
    ["arrived", undefined, "under way", false, "answered", true],
    ["accepted", undefined, "under way", true, "answered", true],
    ["answered", undefined, "answered", true, "answered", true],
    ["arrived", true, "under way", false, "lost", false],
    ["accepted", true, "under way", true, "lost", true],
  ] as const)(
    "holds a request that is %s, and on release (drop: %s) it is: %s, %s, %s, %s",
    async (stage, drop, held, isThereHeld, released, isThereReleased) => {
      const { arm } = newArm();
      await createResources(arm, "group");
      arm.breakpoints.set({ method: "PUT", id: "virtualNetworks/vnet$", stage, drop });
      let is = "under way";
      const request = arm.put(vnet, vnetBody).then(
        () => (is = "answered"),
        (error: unknown) => (is = error instanceof ConnectionLost ? "lost" : String(error)),
      );
      const seen = () => [is, arm.peek(vnet) !== undefined];
      await arm.breakpoints.reached();
      await nextTurn();
      expect(seen()).toEqual([held, isThereHeld]);

      arm.breakpoints.clear();
      await request;

      expect(seen()).toEqual([released, isThereReleased]);
    },
  );

  it.each([
    ["the nth matching request", { method: "PUT", id: "virtualNetworks/vnet$", nth: 2 }],
    ["without method and id any request but GET", {}],
  ])("holds %s", async (_, which) => {
    const { arm } = newArm();
    await createResources(arm, "group");
    arm.breakpoints.set({ stage: "arrived", ...which });
    await arm.get(group);
    if ("nth" in which) await arm.put(vnet, vnetBody);

    void arm.put(vnet, vnetBody).catch(() => undefined);
    await arm.breakpoints.reached();
  });

  it("has an id that is a regular expression", () => {
    const { breakpoints } = newArm().arm;

    expect(() => breakpoints.set({ id: "(", stage: "arrived" })).toThrow(/id \(,/);
  });
});
