import { readFileSync, writeFileSync } from "node:fs";

import { Cloud } from "./cloud";
import { Faults } from "./faults";
import { build, newCloud, refusedBy, RememberedMachines } from "./fixture";
import { group, network, sound } from "./sample";
import { StateFile, UnreadableState } from "./state-file";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

it("is the same cloud to a process that comes later", async () => {
  const { cloud, args } = newCloud();
  await build(cloud);
  const machines = new RememberedMachines();

  const later = new Cloud({ ...args, machines });
  await later.resume();

  for (const [id] of Object.values(sound)) expect(later.peek(id)).toEqual(cloud.peek(id));
  expect(machines.told).toEqual(["resume cp-1"]);
  expect(await refusedBy(later.delete(sound.subnet[0]))).toMatch(/^InUseSubnetCannotBeDeleted/);
});

it("has on the disk what it has answered", async () => {
  const { cloud, args } = newCloud();
  const ids = Array.from({ length: 20 }, (_, number) => network(`routeTables/rt-${number}`));
  await build(cloud, "group");

  await Promise.all(
    ids.map(async (id) => {
      await cloud.put(id, { location: "westeurope" });
      expect(new Cloud(args).peek(id)).toBeDefined();
    }),
  );
});

it.each([
  ["cut off", (text: string) => text.slice(0, -5), /no JSON/],
  ["of another format", () => '{"format":0,"resources":[]}', /format 0/],
  ["without resources", () => '{"format":1}', /no list of resources/],
])("says what to do about a state file that is %s, and leaves it", async (_, damage, says) => {
  const { cloud, args } = newCloud();
  await build(cloud, "vnet");
  const damaged = damage(readFileSync(args.stateFile, "utf8"));
  writeFileSync(args.stateFile, damaged);

  const open = () => new Cloud(args);

  expect(open).toThrow(UnreadableState);
  expect(open).toThrow(says);
  expect(open).toThrow(/npm stop/);
  expect(readFileSync(args.stateFile, "utf8")).toBe(damaged);
});

it("writes once for many changes that come together", async () => {
  const { args } = newCloud();
  let looks = 0;
  const file = new StateFile(args.stateFile, () => (looks++, []));

  await Promise.all(Array.from({ length: 50 }, () => file.save()));

  expect(looks).toBeLessThanOrEqual(2);
});

it("takes everything along with a group, machines told first", async () => {
  const { cloud, machines } = newCloud();
  await build(cloud);

  await cloud.delete(group);

  expect(cloud.isEmpty).toBe(true);
  expect(machines.told.at(-1)).toBe("remove cp-1");
});

it("finds a resource however its id is written, and keeps how it was first written", async () => {
  const { cloud } = newCloud();
  await build(cloud, "vnet");
  const [id, body] = sound.vnet;

  await cloud.put(id.toUpperCase(), body);

  expect(cloud.peek(id.toLowerCase())).toMatchObject({ id });
  expect(cloud.list(group, ["microsoft.network/virtualnetworks"])).toHaveLength(1);
});

it("logs every request, refused ones with their code, in the order of the answers", async () => {
  const { cloud } = newCloud();
  await build(cloud, "vnet");
  await refusedBy(cloud.put(sound.nic[0], sound.nic[1]));
  await cloud.get(group);
  await cloud.delete(sound.vnet[0]);
  await cloud.delete(sound.vnet[0]);

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

it("fails what it was ordered to, the so-manieth time", async () => {
  const faults = new Faults([
    { method: "PUT", id: "/publicIPAddresses/api$", nth: 2, code: "TooManyRequests", status: 429 },
  ]);
  const { cloud } = newCloud({ faults });
  await build(cloud, "apiIp");

  expect(await refusedBy(cloud.put(...sound.apiIp))).toMatch(/^TooManyRequests/);
  expect(await refusedBy(cloud.put(...sound.apiIp))).toBe("not refused");
});

it("takes a step that was running when the process ended for failed, so that nobody trusts it", async () => {
  const { cloud, machines, args } = newCloud();
  await build(cloud, "machine");
  machines.outcome = () => new Promise(() => undefined);
  void cloud.put(...sound.extension);
  while (!machines.told.some((one) => one.startsWith("run"))) await nextTurn();

  const later = new Cloud({ ...args, machines: new RememberedMachines() });
  await later.resume();

  expect(later.peek(sound.extension[0])).toMatchObject({ provisioningState: "Failed" });
  expect(await refusedBy(later.put(...sound.extension))).toMatch(
    /^VMExtensionProvisioningError: [^]*was stopped/,
  );
});
