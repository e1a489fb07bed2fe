import { resizeProblems } from "../../../../../components/plan/azure/resize-offers";
import { Sku } from "../../../../../components/plan/azure/size-offers";
import { machine } from "../../../../support/sample";

const sku = (name: string, capabilities: Record<string, string> = {}): Sku => ({
  resourceType: "virtualMachines",
  name,
  capabilities: Object.entries(capabilities).map(([name, value]) => ({ name, value })),
});
const skus = [
  sku("plain", { MaxResourceVolumeMB: "0", DiskControllerTypes: "SCSI" }),
  sku("silent"),
  sku("both", { MaxResourceVolumeMB: "0", DiskControllerTypes: "SCSI, NVMe" }),
  sku("nvme", { MaxResourceVolumeMB: "0", DiskControllerTypes: "NVMe" }),
  sku("fast", { MaxResourceVolumeMB: "0", AcceleratedNetworkingEnabled: "True" }),
  sku("temporary", { MaxResourceVolumeMB: "8192", DiskControllerTypes: "SCSI" }),
];

const check = (before: string | undefined, size: string) =>
  resizeProblems([{ ...machine, size }], {
    skus,
    sizesNow: new Map(before === undefined ? [] : [[machine.name, before]]),
    command: () => "pulumi config set controlPlaneSize",
  });

it.each([
  ["plain", "temporary", "has a temporary disk and plain has none"],
  ["temporary", "plain", "has no temporary disk and temporary has one"],
  ["plain", "nvme", "has NVMe disk controllers only"],
  ["both", "nvme", "has NVMe disk controllers only"],
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
  ["plain", "silent"],
  ["plain", "both"],
  ["nvme", "both"],
  ["unknown", "temporary"],
  [undefined, "nvme"],
])("has nothing against %s becoming %s", (before, size) => {
  expect(check(before, size)).toEqual([]);
});
