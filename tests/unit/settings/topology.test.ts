import { Address4 } from "ip-address";

import {
  isControlPlaneName,
  MachinePlan,
  machinesOf,
  poolRoom,
  zoneCidr,
} from "../../../components/settings/topology";
import { pool, validSettings } from "../../support/sample";

const names = (machines: readonly MachinePlan[]): string[] => machines.map(({ name }) => name);
const zonesOf = (machines: readonly MachinePlan[]): string[] => machines.map(({ zone }) => zone);
const workers = (machines: readonly MachinePlan[]): MachinePlan[] =>
  machines.filter(({ role }) => role === "worker");

/**
 * As many of everything as the settings admit, in the widest, the usual and the narrowest network.
 */
const shapes = ["10.0.0.0/8", "172.16.0.0/16", "172.16.0.0/19"].flatMap((networkCidr) => {
  const room = networkCidr.endsWith("/19") ? 2 : 30;
  return [["1", "2", "3"], ["3", "1"], ["2"]].map((zones) => ({
    ...validSettings,
    networkCidr,
    zones,
    controlPlaneCount: 5,
    workerPools: Array.from({ length: 8 }, (_, position) => ({
      ...pool,
      name: `pool-${position}`,
      count: (position === 7 ? room - 1 : room) * zones.length,
      zones,
    })),
  }));
});

it("makes of the smallest cluster one machine a zone", () => {
  const machines = machinesOf({
    ...validSettings,
    controlPlaneCount: 1,
    workerPools: [{ ...pool, count: 2 }],
  });
  expect(machines.map(({ name, zone, address }) => [name, zone, address])).toEqual([
    ["zoned-test-cp-1", "1", "172.16.1.4"],
    ["zoned-test-workers-1", "2", "172.16.2.16"],
    ["zoned-test-workers-2", "3", "172.16.3.16"],
  ]);
});

it("tells roles, pools, sizes, disks, labels, taints and numbers of pods apart", () => {
  const gpu = {
    ...pool,
    name: "gpu",
    count: 1,
    size: "Standard_NC6s_v3",
    labels: { team: "a" },
    taints: [{ key: "gpu", effect: "NoSchedule" as const }],
    osDiskSku: "StandardSSD_LRS" as const,
    osDiskSizeGb: 256,
    maxPods: 30,
  };
  const [controlPlane, worker] = machinesOf({
    ...validSettings,
    controlPlaneCount: 1,
    workerPools: [gpu],
  });
  expect(controlPlane).toEqual({
    name: "zoned-test-cp-1",
    role: "control-plane",
    zone: "1",
    subnetCidr: "172.16.1.0/24",
    address: "172.16.1.4",
    size: "Standard_D2s_v5",
    labels: {},
    taints: [],
    osDiskSku: "Premium_LRS",
    osDiskSizeGb: 64,
  });
  expect(worker).toEqual({
    name: "zoned-test-gpu-1",
    role: "worker",
    pool: "gpu",
    zone: "2",
    subnetCidr: "172.16.2.0/24",
    address: "172.16.2.16",
    size: "Standard_NC6s_v3",
    labels: { team: "a" },
    taints: [{ key: "gpu", effect: "NoSchedule" }],
    osDiskSku: "StandardSSD_LRS",
    osDiskSizeGb: 256,
    maxPods: 30,
  });
});

it("marks spot machines as AKS does, so that only pods that bear their end run there", () => {
  const spot = { evictionPolicy: "Delete" as const };
  const [worker] = workers(
    machinesOf({ ...validSettings, workerPools: [{ ...pool, labels: { team: "a" }, spot }] }),
  );

  expect(worker).toMatchObject({
    spot,
    labels: { team: "a", "kubernetes.azure.com/scalesetpriority": "spot" },
    taints: [{ key: "kubernetes.azure.com/scalesetpriority", value: "spot", effect: "NoSchedule" }],
  });
});

it("keeps ordinary pods from control planes that take none", () => {
  const [machine] = machinesOf({ ...validSettings, schedulableControlPlanes: false });
  expect(machine?.taints).toEqual([
    { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" },
  ]);
});

it("knows a control plane by its name alone, and by all of it", () => {
  const isOne = (name: string) => isControlPlaneName(validSettings, name);

  expect(isOne("zoned-test-cp-12")).toBe(true);
  for (const name of [
    "zoned-test-cp-",
    "zoned-test-cp-a-1",
    "zoned-test-workers-1",
    "zoned-cp-1",
  ]) {
    expect(isOne(name)).toBe(false);
  }
});

it("has room for 30 machines of each pool in a zone, and one less where Azure's last address is", () => {
  expect(Array.from({ length: 8 }, (_, at) => poolRoom("172.16.0.0/16", at))).toEqual([
    ...Array(7).fill(30),
    29,
  ]);
});

it.each([
  { networkCidr: "172.16.0.0/16", zone: "2", subnet: "172.16.2.0/24" },
  { networkCidr: "10.0.0.0/8", zone: "3", subnet: "10.3.0.0/16" },
  { networkCidr: "192.168.16.0/20", zone: "1", subnet: "192.168.16.16/28" },
])("gives zone $zone of $networkCidr the subnet $subnet", ({ networkCidr, zone, subnet }) => {
  expect(zoneCidr(networkCidr, zone)).toBe(subnet);
});

describe.each(shapes)("$networkCidr over zones $zones", (shape) => {
  const machines = machinesOf(shape);

  it("gives every machine a name and an address of its own", () => {
    expect(new Set(names(machines)).size).toBe(machines.length);
    expect(new Set(machines.map(({ address }) => address)).size).toBe(machines.length);
  });

  it("keeps every address in its zone's subnet, and off those that Azure reserves", () => {
    for (const { address, subnetCidr, zone } of machines) {
      const subnet = new Address4(subnetCidr);
      const offset = new Address4(address).bigInt() - subnet.startAddress().bigInt();
      expect(subnetCidr).toBe(zoneCidr(shape.networkCidr, zone));
      expect(offset).toBeGreaterThanOrEqual(4n);
      expect(offset).toBeLessThan(2n ** BigInt(32 - subnet.subnetMask) - 1n);
    }
  });

  it("spreads every pool and the control plane evenly", () => {
    for (const group of ["cp", ...shape.workerPools.map(({ name }) => name)]) {
      const zones = zonesOf(machines.filter(({ name }) => name.startsWith(`zoned-test-${group}-`)));
      const counts = shape.zones.map((zone) => zones.filter((other) => other === zone).length);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }
  });
});

describe("what does not move a machine", () => {
  const before = {
    ...validSettings,
    workerPools: [pool, { ...pool, name: "spare", zones: ["2"] }],
  };
  const machines = machinesOf(before);

  it("is a pool that grows", () => {
    const grown = { ...pool, count: 40 };
    const after = machinesOf({ ...before, workerPools: [grown, before.workerPools[1]!] });
    expect(after).toHaveLength(machines.length + 37);
    expect(after).toEqual(expect.arrayContaining(machines));
  });

  it("is a pool that shrinks to nothing", () => {
    const after = machinesOf({
      ...before,
      workerPools: [{ ...pool, count: 0 }, before.workerPools[1]!],
    });
    expect(after).toEqual(machines.filter((machine) => machine.pool !== "workers"));
  });

  it("is a pool after all others", () => {
    const after = machinesOf({
      ...before,
      workerPools: [...before.workerPools, { ...pool, name: "new" }],
    });
    expect(after.slice(0, machines.length)).toEqual(machines);
  });

  it.each([1, 5])("is a control plane of %d", (controlPlaneCount) => {
    const after = machinesOf({ ...before, controlPlaneCount });
    expect(workers(after)).toEqual(workers(machines));
    const [fewer, more] = [machines, after].sort((a, b) => a.length - b.length);
    expect(more).toEqual(expect.arrayContaining(fewer!));
  });
});
