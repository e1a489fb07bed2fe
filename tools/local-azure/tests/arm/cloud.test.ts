import { readFileSync, statSync, writeFileSync } from "node:fs";

import { Cloud } from "../../arm/cloud";
import { Faults } from "../../arm/faults/faults";
import { StateFile } from "../../arm/resources/state-file";
import { UserError } from "../../../shared/user-error";
import { createResources, newCloud, refusedBy, RecordingMachines } from "../support/arm/fixture";
import { group, network, valid } from "../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

it("has the same resources after a restart", async () => {
  const { cloud, args } = newCloud();
  await createResources(cloud);
  const machines = new RecordingMachines();

  const later = new Cloud({ ...args, machines });
  await later.resume();

  for (const [id] of Object.values(valid)) expect(later.peek(id)).toEqual(cloud.peek(id));
  expect(machines.calls).toEqual(["resume cp-1"]);
  expect(await refusedBy(later.delete(valid.subnet[0]))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("has written a change to the disk before it answers", async () => {
  const { cloud, args } = newCloud();
  const ids = Array.from({ length: 20 }, (_, number) => network(`routeTables/rt-${number}`));
  await createResources(cloud, "group");

  await Promise.all(
    ids.map(async (id) => {
      await cloud.put(id, { location: "westeurope" });
      expect(new Cloud(args).peek(id)).toBeDefined();
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
    const { cloud, args } = newCloud();
    await createResources(cloud, "vnet");
    const damaged = damage(readFileSync(args.stateFile, "utf8"));
    writeFileSync(args.stateFile, damaged);

    const open = () => new Cloud(args);

    expect(open).toThrow(UserError);
    expect(open).toThrow(says);
    expect(open).toThrow(/npm stop/);
    expect(readFileSync(args.stateFile, "utf8")).toBe(damaged);
  },
);

it("writes at most twice for many simultaneous changes", async () => {
  const { args } = newCloud();
  let writes = 0;
  const file = new StateFile(args.stateFile, () => (writes++, []));

  await Promise.all(Array.from({ length: 50 }, () => file.save()));

  expect(writes).toBeLessThanOrEqual(2);
});

it("deletes everything in a group, and removes its machines", async () => {
  const { cloud, machines } = newCloud();
  await createResources(cloud);

  await cloud.delete(group);

  expect(cloud.isEmpty).toBe(true);
  expect(machines.calls.at(-1)).toBe("remove cp-1");
});

it("compares ids case-insensitively, and keeps the case of the first PUT", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "vnet");
  const [id, body] = valid.vnet;

  await cloud.put(id.toUpperCase(), body);

  expect(cloud.peek(id.toLowerCase())).toMatchObject({ id });
  expect(cloud.list(group).filter(({ type }) => /virtualNetworks$/.test(type))).toHaveLength(1);
});

it("logs every request in the order of the answers, errors with their code", async () => {
  const { cloud } = newCloud();
  await createResources(cloud, "vnet");
  await refusedBy(cloud.put(valid.nic[0], valid.nic[1]));
  await cloud.get(group);
  await cloud.delete(valid.vnet[0]);
  await cloud.delete(valid.vnet[0]);

  const log = cloud.log
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
  const { cloud } = newCloud({ faults });
  await createResources(cloud, "group");
  const put = () => refusedBy(cloud.put(...valid.apiIp));

  expect([await put(), await put(), await put()].map((one) => one.split(":")[0])).toEqual([
    ...["Busy", "Busy", "not refused"],
  ]);
});

it("writes its state for its user alone", async () => {
  const { cloud, args } = newCloud();
  await createResources(cloud, "group");

  expect(statSync(args.stateFile).mode & 0o777).toBe(0o600);
});

it("fails the nth request that matches a fault", async () => {
  const faults = new Faults([
    { method: "PUT", id: "/publicIPAddresses/api$", nth: 2, code: "TooManyRequests", status: 429 },
  ]);
  const { cloud } = newCloud({ faults });
  await createResources(cloud, "apiIp");

  expect(await refusedBy(cloud.put(...valid.apiIp))).toMatch(/^TooManyRequests/);
  expect(await refusedBy(cloud.put(...valid.apiIp))).toBe("not refused");
});

it("marks a script that was running when the process ended as failed", async () => {
  const { cloud, machines, args } = newCloud();
  await createResources(cloud, "machine");
  machines.scriptResult = () => new Promise(() => undefined);
  void cloud.put(...valid.extension);
  while (!machines.calls.some((one) => one.startsWith("run"))) await nextTurn();

  const later = new Cloud({ ...args, machines: new RecordingMachines() });
  await later.resume();

  expect(later.peek(valid.extension[0])).toMatchObject({ provisioningState: "Failed" });
  expect(await refusedBy(later.put(...valid.extension))).toMatch(
    /^VMExtensionProvisioningError: [^]*was stopped/,
  );
});
