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
import { Body, groupType } from "../../arm/resources/resource";
import { group, Kind, network, valid, withChange } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const location = "westeurope";
const [vnet, vnetBody] = valid.vnet;
const [machine] = valid.machine;

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

describe("the end of a group", () => {
  const other = group.replace("/zoned", "/other");
  const ofOther = ([id]: readonly [string, unknown]) => id.replace(group, other);
  const [nic, otherVnet] = [ofOther(valid.nic), ofOther(valid.vnet)];
  const zone = ofOther(valid.zone).replace("zoned-abc", "hub");
  const onSubnet = (id: string) =>
    [nic, { location, ipConfigurations: [{ name: "ip", subnet: { id } }] }] as const;
  const networkWith = (more: Body) =>
    [
      otherVnet,
      { ...vnetBody, subnets: [{ name: "nodes", addressPrefix: "172.16.1.0/24", ...more }] },
    ] as const;
  const { securityGroup, rule, routeTable, nat, natIp, subnet, disk } = valid;

  it.each<
    [
      who: string,
      uses: readonly (readonly [string, Body])[],
      stays: readonly (readonly [string, Body])[],
    ]
  >([
    [
      "interface has its subnet, with all that this uses",
      [onSubnet(subnet[0])],
      [valid.vnet, subnet, securityGroup, rule, routeTable, nat, natIp],
    ],
    [
      "subnet has its security group",
      [networkWith({ networkSecurityGroup: { id: securityGroup[0] } })],
      [securityGroup, rule],
    ],
    [
      "machine has its disk, not where a zone is linked to its network",
      [
        [zone, valid.zone[1]],
        [`${zone}/virtualNetworkLinks/hub`, valid.link[1]],
        networkWith({}),
        onSubnet(`${otherVnet}/subnets/nodes`),
        [
          ofOther(valid.machine),
          withChange("machine", {
            "networkProfile.networkInterfaces": [{ id: nic }],
            "storageProfile.dataDisks": [
              { lun: 0, createOption: "Attach", managedDisk: { id: disk[0] } },
            ],
          }),
        ],
      ],
      [disk],
    ],
  ])("fails where another group's %s, and that stays", async (_, uses, stays) => {
    const { arm } = newArm();
    await createResources(arm);
    for (const [id, body] of [[other, { location }] as const, ...uses]) await arm.put(id, body);

    expect(await refusedBy(arm.delete(group))).toMatch(
      /^ResourceGroupDeletionBlocked: .*'zoned'.*rolled back/,
    );

    const left = Object.values(valid).filter(([id]) => arm.peek(id) !== undefined);
    expect(left).toEqual(expect.arrayContaining([valid.group, ...stays]));
    expect(left).toHaveLength(1 + stays.length);
    expect(arm.peek(group)).toMatchObject({ properties: { provisioningState: "Succeeded" } });
    for (const [id] of uses.toReversed()) await arm.delete(id);
    expect(await refusedBy(arm.delete(group))).toBe("not refused");
  });
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

it.each<[failed: Kind, user: Kind, operation: string]>([
  ["apiIp", "balancer", "PutPublicIpAddressOperation"],
  ["subnet", "nic", "PutSubnetOperation"],
  ["balancer", "nic", "PutLoadBalancerOperation"],
  ["nic", "machine", "PutNicOperation"],
])("has a %s that failed written again before a %s may use it", async (failed, user, operation) => {
  const [[id, body], [userId, userBody]] = [valid[failed], valid[user]];
  const { arm } = newArm();
  arm.faults.add({ method: "PUT", id: `${id}$`, accepted: true });
  for (const [before, beforeBody] of Object.values(valid)) {
    if (before === userId) break;
    await refusedBy(arm.put(before, beforeBody));
  }

  expect(await refusedBy(arm.put(userId, userBody))).toMatch(
    new RegExp(`^ReferencedResourceNotProvisioned: .*in Failed state and .* is ${operation}\\.$`),
  );
  await arm.put(id, body);
  expect(await refusedBy(arm.put(userId, userBody))).toBe("not refused");
});

describe("with durations", () => {
  const timed = async () => {
    const clock = new ManualClock();
    const { arm, machines, args } = newArm({ clock });
    await createResources(arm);
    await arm.put(identity, { location });
    await arm.put(hub, { location, addressSpace: { addressPrefixes: ["10.0.0.0/16"] } });
    arm.durations.set({ factor: 0.5 });
    return { arm, clock, machines, args };
  };
  const subnet = (digit: number) =>
    [`${vnet}/subnets/s${digit}`, { addressPrefix: `172.16.${digit}.0/24` }] as const;
  const onSubnet = (id: string) => ({
    location,
    ipConfigurations: [{ name: "ip", subnet: { id } }],
  });
  const hub = network("virtualNetworks/hub");
  const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pods`;
  const credential = (digit: number) =>
    [
      `${identity}/federatedIdentityCredentials/account-${digit}`,
      { issuer: "https://issuer", subject: `account-${digit}`, audiences: ["api"] },
    ] as const;

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
      "a second credential of an identity",
      (arm) => arm.put(...credential(1)),
      (arm) => arm.put(...credential(2)),
      /^ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity/,
    ],
    [
      "a peering of a network that is being changed",
      (arm) => arm.put(...subnet(7)),
      (arm) => arm.put(`${vnet}/virtualNetworkPeerings/hub`, { remoteVirtualNetwork: { id: hub } }),
      /^AnotherOperationInProgress/,
    ],
    ...(["machine", "disk"] as const).map((kind): [string, Change, Change, RegExp] => [
      `a second change of a ${kind}`,
      (arm) => arm.put(valid[kind][0], valid[kind][1]),
      (arm) => arm.put(valid[kind][0], valid[kind][1]),
      /^Conflict: .*concurrent request/,
    ]),
    [
      "a change of a machine that is being deleted",
      (arm) => arm.delete(machine),
      (arm) => arm.put(...valid.machine),
      /^OperationNotAllowed: .*'cp-1'.*marked for deletion/,
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

  it.each([
    ["itself", machine],
    ["its group", group],
  ])(
    "boots no machine whose deletion by %s comes before the end of its creation",
    async (_, id) => {
      const clock = new ManualClock();
      const { arm, machines } = newArm({ clock });
      await createResources(arm, "nic");
      // Of a group, in the time that it takes a machine of it to be created.
      arm.durations.set({ factor: 1, seconds: { [groupType]: { delete: 5 } } });
      const created = refusedBy(arm.put(...valid.machine));
      await nextTurn();

      clock.advance(20);
      let deleted: Promise<unknown> = Promise.resolve();
      await new Promise<unknown>((accepted) => (deleted = arm.delete(id, { accepted })));
      await nextTurn();
      await clock.until(deleted);
      expect(arm.peek(machine)).toBeUndefined();
      expect(await clock.until(created)).toMatch(/^OperationPreempted/);
      expect(machines.calls).toEqual(["remove cp-1"]);
    },
  );

  it("has a machine that is being deleted neither changed nor created, and joins a second deletion", async () => {
    const { arm, clock, machines } = await timed();
    await clock.until(arm.delete(valid.extension[0]));
    const deleted = arm.delete(machine);
    const perform = () => machines.calls.push("restart");
    const accepted = jest.fn();

    for (const change of [
      arm.power(machine, "restart", { perform }),
      arm.power(machine, "deallocate", { perform }),
      arm.put(...valid.extension),
    ]) {
      expect(await refusedBy(change)).toMatch(/^OperationNotAllowed: .*cp-1.*marked for deletion/);
    }
    expect(arm.peek(machine)).toMatchObject({ provisioningState: "Deleting" });
    const again = arm.delete(machine, { accepted });
    await nextTurn();
    expect(accepted).toHaveBeenCalled();
    expect(await clock.until(Promise.all([deleted, again]))).toMatchObject([
      { status: 200 },
      { status: 200 },
    ]);
    expect(machines.calls.filter((call) => /restart|remove/.test(call))).toEqual(["remove cp-1"]);
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
