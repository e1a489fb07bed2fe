import { AzureConnection } from "../../../components/azure/connection";
import { getDeallocations, resizeProblems } from "../../../components/azure/resize-offers";
import { Sku } from "../../../components/azure/size-offers";
import { skusIn } from "../../../tools/local-azure/arm/subscription/offers";
import { machine, validSettings } from "../../support/sample";

const sku = (name: string, capabilities: Record<string, string> = {}): Sku => ({
  resourceType: "virtualMachines",
  name,
  capabilities: Object.entries(capabilities).map(([name, value]) => ({ name, value })),
});
const skus = [
  sku("plain", { MaxResourceVolumeMB: "0", DiskControllerTypes: "SCSI" }),
  sku("older", { MaxResourceVolumeMB: "0" }),
  sku("both", { MaxResourceVolumeMB: "0", DiskControllerTypes: "SCSI, NVMe" }),
  sku("nvme", { MaxResourceVolumeMB: "0", DiskControllerTypes: "NVMe" }),
  sku("other nvme", { MaxResourceVolumeMB: "0", DiskControllerTypes: "NVMe" }),
  sku("fast", { MaxResourceVolumeMB: "0", AcceleratedNetworkingEnabled: "True" }),
  sku("temporary", { MaxResourceVolumeMB: "8192", DiskControllerTypes: "SCSI" }),
];

const check = (
  before: string | undefined,
  size: string,
  isCreated = false,
  listed: readonly Sku[] = skus,
) => {
  const resized = { ...machine, size };
  return resizeProblems([resized], {
    skus: listed,
    created: isCreated ? [resized] : [],
    sizesNow: new Map(before === undefined ? [] : [[machine.name, before]]),
    command: () => "pulumi config set controlPlaneSize",
  });
};

it.each([
  ["plain", "temporary", "has a temporary disk and plain has none"],
  ["temporary", "plain", "has no temporary disk and temporary has one"],
  ["plain", "nvme", "has NVMe disk controllers only"],
  ["both", "nvme", "has NVMe disk controllers only"],
  ["nvme", "plain", "has SCSI disk controllers only"],
  ["nvme", "older", "has SCSI disk controllers only"],
  ["fast", "plain", "has no accelerated networking"],
])("refuses to resize from %s to %s, and says how to keep it", (before, size, says) => {
  expect(check(before, size)).toEqual([
    expect.stringContaining(`zoned-test-cp-1: size ${size} ${says}`),
  ]);
  expect(check(before, size)[0]).toMatch(
    new RegExp(`\\(pulumi config set controlPlaneSize ${before}\\)$`),
  );
});

it.each([
  ["PLAIN", "plain"],
  ["plain", "fast"],
  ["plain", "older"],
  ["plain", "both"],
  ["nvme", "both"],
  ["nvme", "other nvme"],
  ["unknown", "temporary"],
  [undefined, "nvme"],
])("has nothing against %s becoming %s", (before, size) => {
  expect(check(before, size)).toEqual([]);
});

it("reads that a size has no NVMe from what Azure lists, which of older sizes is nothing", () => {
  const listed = skusIn("westeurope") as Sku[];
  const older = listed.find(({ name }) => name === "Standard_D2s_v5")!;

  expect(older.capabilities!.map(({ name }) => name)).not.toContain("DiskControllerTypes");
  expect(check("Standard_D2s_v6", "Standard_D2s_v5", false, listed)).toEqual([
    expect.stringContaining("has SCSI disk controllers only"),
  ]);
});

it("minds of a machine that is made anew only what its interface cannot have", () => {
  expect(check("plain", "temporary", true)).toEqual([]);
  expect(check("plain", "nvme", true)).toEqual([]);
  expect(check("fast", "plain", true)).toHaveLength(1);
});

describe("a machine that gets another size", () => {
  const power = (state: string) => new Map([[machine.name, { size: "before", power: state }]]);
  const ask = async (sizes: string[] | Error, state = "running") => {
    const asked: string[] = [];
    const arm = {
      list: async (path: string) => {
        asked.push(path);
        if (sizes instanceof Error) throw sizes;
        return sizes.map((name) => ({ name }));
      },
    } as unknown as AzureConnection["arm"];
    const connection = { arm, subscriptionId: "s", tenantId: "t" };
    const resized = [{ ...machine, size: "Standard_B2s" }];
    const names = await getDeallocations(resized, power(state), validSettings, connection);
    return { asked, isDeallocated: names.has(machine.name) };
  };

  it.each([
    ["keeps running where its hardware has the size, in any case", ["STANDARD_B2S"], false],
    ["is deallocated where its hardware has not", ["Standard_D2s_v5"], true],
    ["is deallocated where Azure does not say", new Error("502"), true],
  ])("%s", async (_, sizes, isDeallocated) => {
    const found = await ask(sizes);

    expect(found.isDeallocated).toBe(isDeallocated);
    expect(found.asked).toEqual([
      `/subscriptions/s/resourceGroups/zoned-test/providers/Microsoft.Compute/virtualMachines/${machine.name}/vmSizes`,
    ]);
  });

  it("is asked about while it is stopped, and not while it is deallocated", async () => {
    expect(await ask([], "stopped")).toMatchObject({ isDeallocated: true });
    expect(await ask([], "deallocated")).toEqual({ asked: [], isDeallocated: false });
  });
});
