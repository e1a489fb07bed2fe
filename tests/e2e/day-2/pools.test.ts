import type { Clients } from "../../../tools/local-azure/tests/support/arm/clients";
import { asPlanned, fewAddOns, LocalCloud, unchanged } from "../../../tools/lab/local-cloud";

jest.setTimeout(900_000);

const arm = { name: "arm", count: 1, size: "Standard_D2ps_v6", osDiskSizeGb: 128, maxPods: 30 };
const batch = {
  name: "batch",
  count: 2,
  size: "Standard_D2ds_v6",
  ephemeralOsDisk: "NvmeDisk",
  spot: { evictionPolicy: "Delete" },
};
const settings = { ...fewAddOns, controlPlaneCount: 1, workerPools: [arm, batch] };
const spotKey = "kubernetes.azure.com/scalesetpriority";

interface Node {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly taints?: readonly object[] };
}

/** A pool on Arm and one of spot machines with their hosts' own disks, beside a control plane of neither kind. */
describe("a cluster of unlike pools", () => {
  let cloud: LocalCloud;
  let clients: Clients;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    clients = cloud.sdks();
    asPlanned(await cloud.stack.up());
  });
  afterAll(() => cloud?.stop());

  const machine = (name: string) =>
    clients.compute.virtualMachines.get("zoned-local", `zoned-local-${name}`);
  const nodes = async () =>
    new Map((await cloud.get<Node>("nodes")).map((node) => [node.metadata.name, node]));

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

    expect(all.get("zoned-local-arm-1")?.metadata.labels["kubernetes.io/arch"]).toBe("arm64");
    for (const name of ["zoned-local-batch-1", "zoned-local-batch-2"]) {
      expect(all.get(name)?.metadata.labels).toMatchObject({ [spotKey]: "spot" });
      expect(all.get(name)?.spec.taints).toContainEqual(
        expect.objectContaining({ key: spotKey, value: "spot", effect: "NoSchedule" }),
      );
    }
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("gets a spot machine again that Azure has taken back, and no other machine anew", async () => {
    const before = await Promise.all(["arm-1", "batch-1", "batch-2"].map(machine));
    await clients.compute.virtualMachines.simulateEviction("zoned-local", "zoned-local-batch-1");

    asPlanned(await cloud.stack.up());

    const after = await Promise.all(["arm-1", "batch-1", "batch-2"].map(machine));
    expect(after.map(({ vmId }, index) => vmId === before[index]!.vmId)).toEqual([
      true,
      false,
      true,
    ]);
    expect((await nodes()).get("zoned-local-batch-1")?.metadata.labels).toMatchObject({
      [spotKey]: "spot",
    });
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("replaces the machines of the pool alone that is to take another number of pods", async () => {
    const before = await Promise.all(["arm-1", "batch-2"].map(machine));
    await cloud.stack.configure({ ...settings, workerPools: [{ ...arm, maxPods: 50 }, batch] });

    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).toContain("this change would replace zoned-local-arm-1: maxPods 30 -> 50");
    const after = await Promise.all(["arm-1", "batch-2"].map(machine));
    expect(after.map(({ vmId }, index) => vmId === before[index]!.vmId)).toEqual([false, true]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
