import { hardwareOf } from "../../../components/azure/hardware";
import { regionProblems } from "../../../components/azure/offers";
import { Sku, skuProblems } from "../../../components/azure/size-offers";
import { MachinePlan } from "../../../components/settings/topology";
import { machine } from "../../support/sample";

/** A size as Azure lists it when nothing is wrong with it. */
const good: Sku = {
  resourceType: "virtualMachines",
  name: "Standard_D2s_v5",
  locationInfo: [{ location: "westeurope", zones: ["3", "1", "2"] }],
  capabilities: [
    { name: "vCPUs", value: "2" },
    { name: "CpuArchitectureType", value: "x64" },
    { name: "PremiumIO", value: "True" },
  ],
  restrictions: [],
};

/** The one that is left when the wanted size cannot be had. */
const sibling: Sku = { ...good, name: "Standard_D2s_v6" };

/** Azure's own form: `values` is the region, and the zones are elsewhere. */
const restriction = (type: string, zones?: string[]) => ({
  type,
  reasonCode: "NotAvailableForSubscription",
  restrictionInfo: { locations: ["westeurope"], zones },
  values: ["westeurope"],
});

const capabilities = (name: string, value: string) => [
  ...good.capabilities!.filter((one) => one.name !== name),
  { name, value },
];

const check = (
  skus: readonly Sku[],
  change: Partial<Parameters<typeof skuProblems>[2]> = {},
  plan: Partial<MachinePlan> = {},
) =>
  skuProblems([{ ...machine, ...plan }], skus, {
    location: "westeurope",
    encryptionAtHost: false,
    command: ({ role }) => `pulumi config set ${role}Size`,
    ...change,
  });

it.each([
  { sku: "has all zones", change: {} },
  {
    sku: "is barred from other zones",
    change: { restrictions: [restriction("Zone", ["1", "3"])] },
  },
  { sku: "does not tell its restrictions", change: { restrictions: undefined } },
  { sku: "does not tell its capabilities", change: { capabilities: undefined } },
  { sku: "is written otherwise", change: { name: "standard_d2S_V5" } },
  {
    sku: "has a region in capitals",
    change: { locationInfo: [{ location: "WestEurope", zones: ["2"] }] },
  },
])("accepts a size that $sku", ({ change }) => {
  expect(check([{ ...good, ...change }])).toEqual([]);
});

it("names machine, size, region and the command for a size that Azure does not offer", () => {
  const [problem, ...more] = check([sibling]);

  expect(more).toEqual([]);
  expect(problem).toBe(
    "zoned-test-cp-1: size Standard_D2s_v5 is not offered in westeurope; list what is: az vm list-skus -l westeurope " +
      "(pulumi config set control-planeSize Standard_D2s_v6)",
  );
});

it("does not take a disk for a machine of the same name", () => {
  expect(check([{ ...good, resourceType: "disks" }, sibling])).toEqual([
    expect.stringContaining("size Standard_D2s_v5 is not offered"),
  ]);
});

it("names the zones that are left, and the command, for a size that is barred from the machine's zone", () => {
  const [problem, ...more] = check([
    { ...good, restrictions: [restriction("Zone", ["2"])] },
    sibling,
  ]);

  expect(more).toEqual([]);
  expect(problem).toBe(
    "zoned-test-cp-1: size Standard_D2s_v5 is not available in zone 2 of westeurope for this subscription " +
      "(NotAvailableForSubscription), only in zone 1, 3 (pulumi config set control-planeSize Standard_D2s_v6)",
  );
});

it.each([
  {
    sku: "in the whole region",
    change: { restrictions: [restriction("Location")] },
    says: "in no zone",
  },
  {
    sku: "in every zone",
    change: { restrictions: [restriction("Zone", ["1", "2", "3"])] },
    says: "in no zone",
  },
  {
    sku: "in zones where the region has it, but not here",
    change: { locationInfo: [{ location: "westeurope", zones: ["1"] }] },
    says: "only in zone 1",
  },
  {
    sku: "only in another region's zones",
    change: { locationInfo: [{ location: "northeurope", zones: ["1", "2"] }] },
    says: "in no zone",
  },
])("refuses a size that is barred $sku", ({ change, says }) => {
  expect(check([{ ...good, ...change }, sibling])).toEqual([expect.stringContaining(says)]);
});

it.each([
  ["does not exist", [], "where Azure offers this subscription no machines at all"],
  [
    "has disks only",
    [{ ...good, resourceType: "disks" }],
    "where Azure offers this subscription no machines at all",
  ],
  [
    "has no zones",
    [{ ...good, locationInfo: [{ location: "westeurope", zones: [] }] }],
    "which has no availability zones",
  ],
  ["tells no zones", [{ ...good, locationInfo: undefined }], "which has no availability zones"],
])("refuses a region that %s", (_, skus, says) => {
  const [problem, ...more] = regionProblems("westeurope", skus);

  expect(more).toEqual([]);
  expect(problem).toContain(`location is "westeurope", ${says}, expected`);
  expect(problem).toContain("az rest --method get");
  expect(problem).toMatch(/\(pulumi config set location REGION\)$/);
});

it.each([
  ["of generation 1", "HyperVGenerations", "V1", "generation 2"],
  ["without Trusted Launch", "TrustedLaunchDisabled", "True", "Trusted Launch"],
  ["for confidential machines alone", "ConfidentialComputingType", "SNP", "Trusted Launch"],
  ["of 1 GB", "MemoryGB", "1", "has 1 GB of memory, and a control plane needs 2"],
  ["of 1 processor", "vCPUs", "1", "has 1 processor"],
  ["with 1 usable processor", "vCPUsAvailable", "1", "has 1 processor"],
])("refuses a size %s, and does not propose it", (_, name, value, says) => {
  const flawed = { ...good, capabilities: capabilities(name, value) };
  const alike = { ...flawed, name: "Standard_D2s_v5x" };

  const [problem, ...more] = check([flawed, alike, sibling]);

  expect(more).toEqual([]);
  expect(problem).toContain(says);
  expect(problem).toMatch(/Standard_D2s_v6\)$/);
});

it("says once of a size of generation 1 that it will not do", () => {
  const old = [
    ...capabilities("HyperVGenerations", "V1"),
    { name: "TrustedLaunchDisabled", value: "True" },
  ];

  expect(check([{ ...good, capabilities: old }, sibling])).toHaveLength(1);
});

it("lets a worker have one processor, and not one gigabyte", () => {
  const worker = { ...machine, role: "worker" as const };
  const offers = (name: string, value: string) =>
    skuProblems([worker], [{ ...good, capabilities: capabilities(name, value) }], {
      location: "westeurope",
      encryptionAtHost: false,
      command: () => "",
    });

  expect(offers("vCPUs", "1")).toEqual([]);
  expect(offers("MemoryGB", "1")).toEqual([expect.stringContaining("a worker needs 2")]);
});

it("takes an Arm size, and refuses one without Trusted Launch, for which it proposes another one on Arm", () => {
  const arm = capabilities("CpuArchitectureType", "Arm64");
  const old = [...arm, { name: "TrustedLaunchDisabled", value: "True" }];
  const newer = { ...good, name: "Standard_D2ps_v6", capabilities: arm };

  expect(check([{ ...good, capabilities: arm }])).toEqual([]);
  expect(check([{ ...good, capabilities: old }, newer, sibling])).toEqual([
    expect.stringMatching(/has no Trusted Launch.*Standard_D2ps_v6\)$/),
  ]);
});

it("refuses a size that is never spot only where machines are to be", () => {
  const plan = { spot: { evictionPolicy: "Delete" as const } };
  const never = { ...good, capabilities: capabilities("LowPriorityCapable", "False") };

  expect(check([never], {}, plan)).toEqual([expect.stringContaining("not to be had as a spot")]);
  expect(check([never])).toEqual([]);
  // Where Azure does not say, it is not known.
  expect(check([good], {}, plan)).toEqual([]);
});

describe("an OS disk of the host's own", () => {
  const local = (values: Record<string, string>): Sku => ({
    ...good,
    capabilities: [
      ...good.capabilities!,
      ...Object.entries(values).map(([name, value]) => ({ name, value })),
    ],
  });
  const both = local({
    SupportedEphemeralOSDiskPlacements: "ResourceDisk,CacheDisk",
    MaxResourceVolumeMB: String(75 * 1024),
    CachedDiskBytes: String(50 * 1024 ** 3),
    NvmeDiskSizeInMiB: "0",
  });
  const nvme = local({
    SupportedEphemeralOSDiskPlacements: "NvmeDisk",
    NvmeDiskSizeInMiB: String(110 * 1024),
  });

  const large = local({
    SupportedEphemeralOSDiskPlacements: "NvmeDisk",
    NvmeDiskSizeInMiB: String(3600 * 1024),
  });

  it.each<[string, Sku, MachinePlan["ephemeralOsDisk"], number, RegExp | undefined]>([
    ["that fits beside Trusted Launch's GiB", both, "ResourceDisk", 74, undefined],
    ["that does not", both, "ResourceDisk", 75, /has 74 GiB of ResourceDisk for an OS disk of 75/],
    ["of the cache", both, "CacheDisk", 49, undefined],
    ["of a larger cache", both, "CacheDisk", 64, /has 49 GiB .*, but ResourceDisk of 74 GiB \(pul/],
    ["of NVMe where there is none", both, "NvmeDisk", 30, /has no NvmeDisk .* but CacheDisk of 49/],
    ["of NVMe", nvme, "NvmeDisk", 109, undefined],
    ["as large as Azure takes one", large, "NvmeDisk", 2040, undefined],
    ["larger than Azure takes one", large, "NvmeDisk", 2041, /has 2040 GiB of NvmeDisk for an OS/],
    ["of a size without", good, "ResourceDisk", 30, /has no ResourceDisk for an OS disk \(ephem/],
    ["in Azure's storage", good, undefined, 4095, undefined],
  ])("%s", (_, sku, ephemeralOsDisk, osDiskSizeGb, says) => {
    const plan = { ephemeralOsDisk, osDiskSizeGb };

    expect(check([sku], {}, plan)).toEqual(says ? [expect.stringMatching(says)] : []);
  });
});

it("refuses a size without Premium disks only where the disks are to be Premium", () => {
  const plain = { ...good, capabilities: capabilities("PremiumIO", "False") };

  expect(check([plain])).toEqual([expect.stringContaining("osDiskSku is Premium_LRS")]);
  expect(check([plain], {}, { osDiskSku: "StandardSSD_LRS" })).toEqual([]);
});

it("refuses a size whose hosts do not encrypt only where they are to, also where Azure does not say", () => {
  const with_ = (value: string) => ({
    ...good,
    capabilities: capabilities("EncryptionAtHostSupported", value),
  });
  const [problem, ...more] = check(
    [
      with_("False"),
      { ...with_("False"), name: "Standard_D2s_v5x" },
      { ...with_("True"), name: "Standard_D2s_v6" },
    ],
    { encryptionAtHost: true },
  );

  expect(more).toEqual([]);
  expect(problem).toMatch(
    /^zoned-test-cp-1: size Standard_D2s_v5 has no encryption at host, and encryptionAtHost is true \(.*Standard_D2s_v6\)$/,
  );
  expect(check([good], { encryptionAtHost: true })).toHaveLength(1);
  expect(check([with_("True")], { encryptionAtHost: true })).toEqual([]);
  expect(check([with_("False")])).toEqual([]);
});

it("proposes the size that is named most alike among those that would do", () => {
  const named = (name: string, change: Partial<Sku> = {}) => ({ ...good, name, ...change });
  const [problem] = check([
    named("Standard_A2_v2"),
    named("Standard_D2s_v3", { restrictions: [restriction("Zone", ["2"])] }),
    named("Standard_D2s_v4", { capabilities: capabilities("PremiumIO", "False") }),
    named("Standard_D2s_v6", { capabilities: capabilities("CpuArchitectureType", "Arm64") }),
    named("Standard_D2as_v5"),
  ]);

  expect(problem).toMatch(/control-planeSize Standard_D2as_v5\)$/);
});

it("names every machine that cannot be had", () => {
  const machines = ["1", "2", "3"].map((zone) => ({ ...machine, zone, name: `machine-${zone}` }));
  const found = skuProblems(
    machines,
    [{ ...good, restrictions: [restriction("Zone", ["1", "3"])] }],
    {
      location: "westeurope",
      encryptionAtHost: false,
      command: () => "pulumi config set controlPlaneSize",
    },
  );

  expect(found.map((problem) => problem.split(":")[0])).toEqual(["machine-1", "machine-3"]);
  // Nothing would do there, so nothing is proposed.
  expect(found[0]).toMatch(/controlPlaneSize SIZE\)$/);
});

it.each([
  ["what Azure lists", [good], "arm64", "x64"],
  ["what it was made with, where Azure lists its size no more", [], "arm64", "arm64"],
  ["plain hardware, where nobody knows more", [], undefined, "x64"],
] as const)("a machine has %s", (_, skus, architecture, expected) => {
  const before = architecture && { [machine.name]: { replacementInputs: { architecture } } };

  expect(hardwareOf([machine], { skus }, before).get(machine.name)).toMatchObject({
    architecture: expected,
  });
});
