import type { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import type { Clients } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  unchanged,
} from "../../../tools/lab/local-cloud";

const arm = { name: "arm", count: 1, size: "Standard_D2ps_v6", osDiskSizeGb: 128, maxPods: 30 };
const batch = {
  name: "batch",
  count: 2,
  size: "Standard_D2ds_v6",
  ephemeralOsDisk: "NvmeDisk",
};
const evicted = { evictionPolicy: "Delete" };
const disk = {
  ...{ name: "disk", count: 1, size: "Standard_D2ds_v5" },
  ...{ osDiskSku: "Premium_LRS", osDiskSizeGb: 32 },
};
const local = {
  ...{ name: "local", count: 1, size: "Standard_D2ds_v5" },
  ...{ osDiskSizeGb: 64, ephemeralOsDisk: "ResourceDisk" },
};
const plain = { name: "plain", count: 1, size: "Standard_D2s_v5" };
const tainted = { name: "tainted", count: 1, size: "Standard_D2s_v5" };
const regular = { name: "regular", count: 1, size: "Standard_D2s_v5" };
const settings = {
  ...fewAddOns,
  controlPlaneCount: 1,
  workerPools: [arm, { ...batch, spot: evicted }, disk, local, plain, tainted, regular],
};
const spotKey = "kubernetes.azure.com/scalesetpriority";
const spotTaint = { key: spotKey, value: "spot", effect: "NoSchedule" };

interface Node {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly taints?: readonly object[]; readonly unschedulable?: boolean };
}

/** What was asked of each machine and its step, in its order. */
function writesOf(requests: readonly LoggedRequest[]): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const { method, id } of requests) {
    const [, name, step] = /\/virtualMachines\/zoned-local-([a-z0-9-]+)(\/.*)?$/.exec(id) ?? [];
    if (name === undefined || !["PUT", "POST", "DELETE"].includes(method)) continue;
    (all[name] ??= []).push(step === undefined ? method : `${method} step`);
  }
  return all;
}
const made = ["PUT", "PUT step"];
const resized = made;
const replaced = ["DELETE", ...made];
const removed = ["DELETE"];

/** Pools of all kinds, beside a control plane of none. */
describe("a cluster of unlike pools", () => {
  let cloud: LocalCloud;
  let clients: Clients;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    clients = cloud.sdks();
  });
  afterAll(() => cloud?.stop());

  const machine = (name: string) =>
    clients.compute.virtualMachines.get("zoned-local", `zoned-local-${name}`);
  const nodes = async () =>
    new Map(
      (await cloud.get<Node>("nodes")).map((node) => [
        node.metadata.name.replace("zoned-local-", ""),
        node,
      ]),
    );
  const written = async (action: () => Promise<unknown>) => {
    const before = (await cloud.requests()).length;
    await action();
    return writesOf((await cloud.requests()).slice(before));
  };
  /** Machines that take no pods at some time. */
  const cordoned = async (action: () => Promise<unknown>) => {
    const names = new Set<string>();
    const { end } = await cloud.watch("/api/v1/nodes", ({ object: { metadata, spec } }) => {
      if (spec.unschedulable) names.add(metadata.name.replace("zoned-local-", ""));
    });
    await action();
    end();
    return [...names].sort();
  };

  it("is made but for spot machines that Azure has no capacity for, by an update that continues on errors", async () => {
    const never = { method: "PUT", times: 99 } as const;
    const [atOnce, later] = ["batch-1$", "batch-2$"];
    await cloud.fault({ ...never, id: atOnce, status: 409, code: "SkuNotAvailable" });
    await cloud.fault({ ...never, id: later, accepted: true, code: "ZonalAllocationFailed" });

    const run = await cloud.stack.up("--continue-on-error");

    const said = refused(run);
    expect(said).toMatch(/zoned-local-batch-1-vm[^]*SkuNotAvailable/);
    expect(said).toMatch(/zoned-local-batch-2-vm[^]*ZonalAllocationFailed/);
    expect(run.steps).toContain("create roll-out");
    expect([...(await nodes()).keys()].sort()).toEqual(
      ["arm-1", "cp-1", "disk-1", "local-1", "plain-1", "regular-1", "tainted-1"].sort(),
    );
    expect((await cloud.stack.outputs())["cluster"]).toMatchObject({ controlPlanes: 1 });
  });

  it("gets these machines, and no other anew, by an update when there is capacity", async () => {
    await cloud.clearFaults();

    const requests = await written(async () => asPlanned(await cloud.stack.up()));

    expect(requests).toEqual({ "batch-1": made, "batch-2": made });
  });

  it("has machines of each as its pool says, which Azure takes together", async () => {
    expect((await machine("cp-1")).storageProfile).toMatchObject({
      imageReference: { sku: "server" },
      osDisk: { caching: "ReadWrite" },
    });
    expect((await machine("arm-1")).storageProfile).toMatchObject({
      imageReference: { sku: "server-arm64" },
      diskControllerType: "NVMe",
      osDisk: { diskSizeGB: 128 },
    });
    expect(await machine("batch-1")).toMatchObject({
      priority: "Spot",
      evictionPolicy: "Delete",
      billingProfile: { maxPrice: -1 },
      storageProfile: {
        osDisk: { diffDiskSettings: { option: "Local", placement: "NvmeDisk" } },
      },
    });
  });

  it("has Nodes that tell pods what they are", async () => {
    const all = await nodes();

    expect(all.get("arm-1")?.metadata.labels["kubernetes.io/arch"]).toBe("arm64");
    for (const name of ["batch-1", "batch-2"]) {
      expect(all.get(name)?.metadata.labels).toMatchObject({ [spotKey]: "spot" });
      expect(all.get(name)?.spec.taints).toContainEqual(expect.objectContaining(spotTaint));
    }
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("gets a spot machine again that Azure has taken back, and no other machine anew", async () => {
    await clients.compute.virtualMachines.simulateEviction("zoned-local", "zoned-local-batch-1");

    const requests = await written(async () => asPlanned(await cloud.stack.up()));

    expect(requests).toEqual({ "batch-1": replaced });
    expect((await nodes()).get("batch-1")?.metadata.labels).toMatchObject({ [spotKey]: "spot" });
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  const gpu = { key: "gpu", value: "yes", effect: "NoSchedule" };
  const late = { name: "late", count: 1, size: "Standard_D2s_v5" };
  const changed = [
    { ...arm, maxPods: 50 },
    batch,
    { ...disk, osDiskSku: "StandardSSD_LRS", osDiskSizeGb: 64 },
    { ...local, size: "Standard_D4ds_v5" },
    { ...plain, size: "Standard_D4s_v5", labels: { tier: "web" }, count: 2 },
    { ...tainted, taints: [gpu] },
    { ...regular, spot: { evictionPolicy: "Deallocate" } },
    late,
  ];

  it("replaces, resizes and makes machines by one update of every pool, each as its option asks for", async () => {
    await cloud.stack.configure({ ...settings, workerPools: changed });
    let said = "";
    let requests: Record<string, string[]> = {};

    const drained = await cordoned(async () => {
      requests = await written(async () => {
        said = asPlanned(await cloud.stack.up()).stdout;
      });
    });

    expect(requests).toEqual({
      ...{ "arm-1": replaced, "batch-1": replaced, "batch-2": replaced, "disk-1": replaced },
      ...{ "local-1": replaced, "tainted-1": replaced, "regular-1": replaced },
      ...{ "plain-1": resized, "plain-2": made, "late-1": made },
    });
    expect(drained).toEqual(
      Object.keys(requests)
        .filter((name) => !["plain-2", "late-1"].includes(name))
        .sort(),
    );
    for (const change of [
      "replace zoned-local-arm-1: maxPods 30 -> 50",
      "replace zoned-local-disk-1: osDiskSizeGb 32 -> 64, osDiskSku Premium_LRS -> StandardSSD_LRS",
      "replace zoned-local-local-1: size Standard_D2ds_v5 -> Standard_D4ds_v5",
      "resize zoned-local-plain-1: Standard_D2s_v5 -> Standard_D4s_v5",
      "replace zoned-local-tainted-1: taints not set -> gpu=yes:NoSchedule",
    ]) {
      expect(said).toContain(`this change would ${change}`);
    }
    for (const name of ["batch-1", "batch-2"]) {
      expect((await machine(name)).priority).toBeUndefined();
    }
    expect((await machine("disk-1")).storageProfile?.osDisk).toMatchObject({
      ...{ diskSizeGB: 64, managedDisk: { storageAccountType: "StandardSSD_LRS" } },
    });
    expect(await machine("regular-1")).toMatchObject({
      ...{ priority: "Spot", evictionPolicy: "Deallocate" },
    });
    const all = await nodes();
    expect(all.get("batch-1")?.spec.taints).not.toContainEqual(expect.objectContaining(spotTaint));
    expect(all.get("batch-1")?.metadata.labels).not.toHaveProperty(spotKey);
    expect(all.get("tainted-1")?.spec.taints).toContainEqual(gpu);
    expect(all.get("regular-1")?.spec.taints).toContainEqual(spotTaint);
    for (const name of ["plain-1", "plain-2"]) {
      expect(all.get(name)?.metadata.labels).toMatchObject({ tier: "web" });
    }
    expect([...all.values()].filter(({ spec }) => spec.unschedulable)).toEqual([]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("replaces machines for another architecture, disk and price, removes some, and touches none for labels and turns", async () => {
    const [, , onDisk, onLocal, wide, marked] = changed;
    const workerPools = [
      { ...arm, maxPods: 50, size: "Standard_D2s_v6" },
      batch,
      { ...onDisk, ephemeralOsDisk: "ResourceDisk" },
      onLocal,
      { ...wide, labels: {}, count: 1, maxUnavailable: 2 },
      marked,
      { ...regular, spot: { ...evicted, maxPrice: 0.05 } },
      { ...late, count: 0 },
    ];
    await cloud.stack.configure({ ...settings, workerPools });

    const requests = await written(async () => asPlanned(await cloud.stack.up()));

    expect(requests).toEqual({
      ...{ "arm-1": replaced, "disk-1": replaced, "regular-1": replaced },
      ...{ "plain-2": removed, "late-1": removed },
    });
    expect(await machine("regular-1")).toMatchObject({
      ...{ evictionPolicy: "Delete", billingProfile: { maxPrice: 0.05 } },
    });
    const all = await nodes();
    expect(all.get("arm-1")?.metadata.labels["kubernetes.io/arch"]).toBe("amd64");
    expect(all.get("plain-1")?.metadata.labels).not.toHaveProperty("tier");
    expect([all.has("plain-2"), all.has("late-1")]).toEqual([false, false]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
