import { readFileSync, statSync, writeFileSync } from "node:fs";

import { ResourceManager } from "../../arm/resource-manager";
import { Faults } from "../../arm/faults/faults";
import { StateFile } from "../../arm/resources/state-file";
import { UserError } from "../../../shared/user-error";
import { createResources, newArm, refusedBy, RecordingMachines } from "../support/arm/fixture";
import { group, network, valid } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

it("has the same resources after a restart", async () => {
  const { arm, args } = newArm();
  await createResources(arm);
  const machines = new RecordingMachines();

  const later = new ResourceManager({ ...args, machines });
  await later.resume();

  for (const [id] of Object.values(valid)) expect(later.peek(id)).toEqual(arm.peek(id));
  expect(machines.calls).toEqual(["resume cp-1"]);
  expect(await refusedBy(later.delete(valid.subnet[0]))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("has written a change to the disk before it answers", async () => {
  const { arm, args } = newArm();
  const ids = Array.from({ length: 20 }, (_, number) => network(`routeTables/rt-${number}`));
  await createResources(arm, "group");

  await Promise.all(
    ids.map(async (id) => {
      await arm.put(id, { location: "westeurope" });
      expect(new ResourceManager(args).peek(id)).toBeDefined();
    }),
  );
});

it.each([
  ["cut off", (text: string) => text.slice(0, -5), /not JSON/],
  ["of another format", () => '{"format":0,"resources":[]}', /format 0/],
  ["without resources", () => '{"format":1}', /no list of resources/],
])(
  "reports a state file that is %s with a fix, and does not change it",
  async (_, damage, says) => {
    const { arm, args } = newArm();
    await createResources(arm, "vnet");
    const damaged = damage(readFileSync(args.stateFile, "utf8"));
    writeFileSync(args.stateFile, damaged);

    const open = () => new ResourceManager(args);

    expect(open).toThrow(UserError);
    expect(open).toThrow(says);
    expect(open).toThrow(/npm stop/);
    expect(readFileSync(args.stateFile, "utf8")).toBe(damaged);
  },
);

it("writes at most twice for many simultaneous changes", async () => {
  const { args } = newArm();
  let writes = 0;
  const file = new StateFile(args.stateFile, () => (writes++, []));

  await Promise.all(Array.from({ length: 50 }, () => file.save()));

  expect(writes).toBeLessThanOrEqual(2);
});

it("deletes everything in a group, and removes its machines", async () => {
  const { arm, machines } = newArm();
  await createResources(arm);

  await arm.delete(group);

  expect(arm.isEmpty).toBe(true);
  expect(machines.calls.at(-1)).toBe("remove cp-1");
});

it("compares ids case-insensitively, and keeps the case of the first PUT", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");
  const [id, body] = valid.vnet;

  await arm.put(id.toUpperCase(), body);

  expect(arm.peek(id.toLowerCase())).toMatchObject({ id });
  expect(arm.list(group).filter(({ type }) => /virtualNetworks$/.test(type))).toHaveLength(1);
});

it("logs every request in the order of the answers, errors with their code", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");
  await refusedBy(arm.put(valid.nic[0], valid.nic[1]));
  await arm.get(group);
  await arm.delete(valid.vnet[0]);
  await arm.delete(valid.vnet[0]);

  const log = arm.log
    .read()
    .map(({ method, type, status, code }) => [method, type.split("/").at(-1), status, code]);

  expect(log.slice(-4)).toEqual([
    ["PUT", "networkInterfaces", 400, "InvalidResourceReference"],
    ["GET", "resourceGroups", 200, undefined],
    ["DELETE", "virtualNetworks", 200, undefined],
    ["DELETE", "virtualNetworks", 204, undefined],
  ]);
});

it("fails as many requests in a row as a fault says, and no more", async () => {
  const faults = new Faults([
    { method: "PUT", id: "/publicIPAddresses/api$", times: 2, code: "Busy" },
  ]);
  const { arm } = newArm({ faults });
  await createResources(arm, "group");
  const put = () => refusedBy(arm.put(...valid.apiIp));

  expect([await put(), await put(), await put()].map((one) => one.split(":")[0])).toEqual([
    ...["Busy", "Busy", "not refused"],
  ]);
});

it("writes its state for its user alone", async () => {
  const { arm, args } = newArm();
  await createResources(arm, "group");

  expect(statSync(args.stateFile).mode & 0o777).toBe(0o600);
});

it("fails the nth request that matches a fault", async () => {
  const faults = new Faults([
    { method: "PUT", id: "/publicIPAddresses/api$", nth: 2, code: "TooManyRequests", status: 429 },
  ]);
  const { arm } = newArm({ faults });
  await createResources(arm, "apiIp");

  expect(await refusedBy(arm.put(...valid.apiIp))).toMatch(/^TooManyRequests/);
  expect(await refusedBy(arm.put(...valid.apiIp))).toBe("not refused");
});

it("marks a script that was running when the process ended as failed", async () => {
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
