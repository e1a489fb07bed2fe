import { AzureConnection } from "../../../components/azure/resource-manager";
import { type Hardware, hardwareOf } from "../../../components/azure/hardware";
import { getOffers, offerProblems } from "../../../components/azure/offers";
import { getDeallocations, resizeProblems, Sku } from "../../../components/azure/size-offers";
import { shownAs } from "../../../components/azure/shown";
import { replacementInputsOf } from "../../../components/machine/generation";
import { createdMachines, PreviousOutputs } from "../../../components/plan/machine-changes";
import { Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { skusIn } from "../../../tools/local-azure/arm/subscription/offers";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { order } from "../../support/machines";
import { machine, validSettings } from "../../support/sample";

describe("offers", () => {
  interface Scene {
    readonly settings?: Partial<Settings>;
    readonly quotas?: Record<string, number>;
    /** Generations of the existing machines. */
    readonly existing?: Record<string, string | undefined>;
    /** Sizes of the existing machines that are not Standard_D2s_v5. */
    readonly sizes?: Record<string, string>;
    /** What the stack's outputs say of machines. */
    readonly machines?: PreviousOutputs["machines"];
  }

  /**
   * What is said of a stack by what the local Azure offers; every machine wants to be of generation
   * "now".
   */
  async function problemsOf({
    settings,
    quotas = {},
    existing = {},
    sizes = {},
    machines,
  }: Scene): Promise<string[]> {
    const azure = newArm().arm;
    azure.quotas.set(quotas);
    const connection = await connectionTo(azure);
    const wanted = { ...validSettings, ...settings };
    const offers = await getOffers(wanted, connection);
    const planned = machinesOf(wanted);
    const state = new Map(
      Object.entries(existing).map(([name, generation]) => [
        name,
        { size: sizes[name] ?? "Standard_D2s_v5", generation },
      ]),
    );
    const created = createdMachines(
      "1-then",
      planned.map((plan) => ({
        plan,
        generation: "now",
        replacementInputs: {},
        imageVersion: wanted.imageVersion,
        kubernetesVersion: wanted.kubernetesVersion,
        configuration: "now",
      })),
      { machines: state },
      machines && ({ machines } as PreviousOutputs),
    );
    const found = { machines: state, shown: new Map() };
    return offerProblems(planned, created, found, offers, wanted, connection);
  }

  const all = Object.fromEntries(machinesOf(validSettings).map(({ name }) => [name, "now"]));

  it("has nothing to say about a stack that can be had", async () => {
    expect(await problemsOf({})).toEqual([]);
  });

  it.each([
    ["northcentralus", "has no availability zones"],
    ["westeuropa", "no machines at all"],
  ])("says of region %s alone what it is, and asks no more of it", async (location, says) => {
    expect(await problemsOf({ settings: { location } })).toEqual([expect.stringContaining(says)]);
  });

  it("tells a size, a quota and an image that cannot be had all at once", async () => {
    const problems = await problemsOf({
      settings: { controlPlaneSize: "Standard_A2_v2", imageVersion: "24.04.202001010" },
      quotas: { cores: 4, standardDSv5Family: 4, PublicIPAddresses: 0 },
    });

    expect(problems.map((problem) => problem.slice(0, 30))).toEqual([
      ...["1", "2", "3"].flatMap((number) => [
        `zoned-test-cp-${number}: size Standard`,
        `zoned-test-cp-${number}: size Standard`,
      ]),
      expect.stringContaining("quota Total Regional vCPUs"),
      expect.stringContaining("quota Standard DSv5 Family"),
      expect.stringContaining("quota Public IP Addresses"),
      expect.stringContaining('imageVersion is "24.04.2020010'),
    ]);
  });

  it("asks for room for what is new only", async () => {
    const quotas = { standardDSv5Family: 2 };
    const { "zoned-test-workers-3": _, ...others } = all;

    expect(await problemsOf({ quotas, existing: others })).toEqual([]);
    expect(await problemsOf({ quotas, existing: { "zoned-test-cp-1": "now" } })).toEqual([
      expect.stringContaining("needs 10"),
    ]);
  });

  it("lets a withdrawn image be while no machine is made of it", async () => {
    const settings = { imageVersion: "24.04.202001010" };
    const cp = "zoned-test-cp-1";

    expect(await problemsOf({ settings, existing: all })).toEqual([]);
    // Somebody may have taken a tag away: that replaces nothing.
    expect(await problemsOf({ settings, existing: { ...all, [cp]: undefined } })).toEqual([]);
    expect(await problemsOf({ settings, existing: { ...all, [cp]: "before" } })).toEqual([
      expect.stringContaining(`${cp} would be made of it`),
    ]);
  });

  it("lets the size of a living machine be that is no longer offered, and refuses it for another", async () => {
    const controlPlaneSize = "Standard_A2_v2";
    const cps = Object.keys(all).filter((name) => name.includes("-cp-"));
    const sizes = Object.fromEntries(cps.map((name) => [name, controlPlaneSize]));
    const scene = { settings: { controlPlaneSize }, existing: all };

    expect(await problemsOf({ ...scene, sizes })).toEqual([]);
    const [first] = cps;
    for (const changed of [
      { existing: { ...all, [first!]: "before" }, sizes },
      { existing: all, sizes: { ...sizes, [first!]: "Standard_D2s_v5" } },
    ]) {
      const problems = await problemsOf({ ...scene, ...changed });

      expect(problems).toContainEqual(
        expect.stringMatching(
          new RegExp(`^${first}: size ${controlPlaneSize} takes no Premium disks`),
        ),
      );
      expect(problems.filter((problem) => !problem.startsWith(first!))).toEqual([]);
    }
  });

  it("reads a generation from the outputs where the machine has lost its tag", async () => {
    const settings = { imageVersion: "24.04.202001010" };
    const cp = "zoned-test-cp-1";
    const existing = { ...all, [cp]: undefined };
    const machines = {
      [cp]: { ...order, generation: "before" },
    };

    expect(await problemsOf({ settings, existing, machines })).toEqual([
      expect.stringContaining(`${cp} would be made of it`),
    ]);
  });

  it("knows by Azure's list what hardware a size has, in any case", () => {
    const [machine] = machinesOf({ ...validSettings, controlPlaneSize: "standard_d2S_v5" });
    const of = (capabilities: Record<string, string>) =>
      hardwareOf([machine!], {
        skus: [
          {
            resourceType: "virtualMachines",
            name: "Standard_D2s_v5",
            capabilities: Object.entries(capabilities).map(([name, value]) => ({ name, value })),
          },
        ],
      }).get(machine!.name);
    const plain = { architecture: "x64", hasAcceleratedNetworking: false, isNvmeOnly: false };

    expect(of({})).toEqual(plain);
    expect(hardwareOf([machine!], { skus: [] }).get(machine!.name)).toEqual(plain);
    expect(of({ AcceleratedNetworkingEnabled: "True" })?.hasAcceleratedNetworking).toBe(true);
    expect(of({ CpuArchitectureType: "Arm64" })?.architecture).toBe("arm64");
    expect(of({ DiskControllerTypes: "NVMe" })?.isNvmeOnly).toBe(true);
    expect(of({ DiskControllerTypes: "SCSI, NVMe" })?.isNvmeOnly).toBe(false);
  });

  it("knows the processor of a machine whose size is no longer listed, which else would be made anew", () => {
    const machines = machinesOf(validSettings);
    const { name } = machines[0]!;
    const listed = new Map([[name, { architecture: "arm64" as const }]]);
    const inputsBy = (hardware: ReadonlyMap<string, Pick<Hardware, "architecture">>) =>
      Object.fromEntries(
        machines.map((one) => [
          one.name,
          { replacementInputs: replacementInputsOf(one, validSettings, hardware.get(one.name)) },
        ]),
      );
    const before = inputsBy(listed);

    expect(inputsBy(hardwareOf(machines, { skus: [] }, before))).toEqual(before);
  });

  it("asks for the image of each architecture that a pool's size has, and for no other", async () => {
    const [pool] = validSettings.workerPools;
    const arm = { ...pool!, name: "arm", size: "Standard_D2ps_v6" };
    const imageVersion = "24.04.202001010";

    const problems = await problemsOf({
      settings: { imageVersion, workerPools: [arm] },
      existing: {},
    });

    expect(problems).toEqual([
      expect.stringMatching(
        /zoned-test-cp-1, .*cp-3 would be made .*ubuntu-24_04-lts:server that it/,
      ),
      expect.stringMatching(/zoned-test-arm-1, .*arm-3 would be made .*:server-arm64 that it/),
    ]);
    expect(await problemsOf({ settings: { workerPools: [arm] } })).toEqual([]);
  });
});

describe("resize offers", () => {
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
    diskController?: string,
    isAccelerated = before === "fast",
  ) => {
    const resized = { ...machine, size };
    const name = `${machine.name}-nic`;
    const nic = { name, properties: { enableAcceleratedNetworking: isAccelerated } };
    return resizeProblems([resized], {
      skus: listed,
      created: isCreated ? [resized] : [],
      existing: new Map(
        before === undefined ? [] : [[machine.name, { size: before, diskController }]],
      ),
      shown: new Map([[shownAs("azure-native:network:NetworkInterface", name), nic]]),
      command: () => "pulumi config set controlPlaneSize",
    });
  };

  it.each([
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
    ["plain", "temporary"],
    ["temporary", "plain"],
    ["nvme", "both"],
    ["nvme", "other nvme"],
    ["unknown", "temporary"],
    [undefined, "nvme"],
  ])("has nothing against %s becoming %s", (before, size) => {
    expect(check(before, size)).toEqual([]);
  });

  it.each([
    ["both", "nvme", "NVMe", undefined],
    ["both", "plain", "NVMe", "has SCSI disk controllers only"],
    ["both", "plain", "SCSI", undefined],
    ["both", "nvme", "SCSI", "has NVMe disk controllers only"],
  ])(
    "goes from %s to %s by the controller that a machine was made with, %s",
    (before, size, made, says) => {
      const problems = check(before, size, false, skus, made);
      expect(problems).toEqual(says === undefined ? [] : [expect.stringContaining(says)]);
    },
  );

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

  it("minds by Azure's interface whether it has accelerated networking, also where its VM is gone", () => {
    const made = (isAccelerated: boolean, before?: string, size = "plain") =>
      check(before, size, true, skus, undefined, isAccelerated);

    expect(made(true)).toEqual([
      expect.stringMatching(
        /size plain has no accelerated networking.*\(pulumi config set controlPlaneSize SIZE\)$/,
      ),
    ]);
    expect(made(true, undefined, "fast")).toEqual([]);
    expect(made(false)).toEqual([]);
    expect(made(false, "fast")).toEqual([]);
  });

  describe("a machine that gets another size", () => {
    const power = (state: string, size: string) =>
      new Map([[machine.name, { size, power: state }]]);
    const ask = async (sizes: string[] | Error, state = "running", before = "before") => {
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
      const listed = [...skus, sku("Standard_B2s")];
      const machines = power(state, before);
      const names = await getDeallocations(resized, machines, listed, validSettings, connection);
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

    it("is deallocated where its temporary disk goes, whatever its hardware has", async () => {
      expect(await ask(["Standard_B2s"], "running", "temporary")).toMatchObject({
        isDeallocated: true,
      });
      expect(await ask(["Standard_B2s"], "deallocated", "temporary")).toMatchObject({
        isDeallocated: false,
      });
    });
  });
});
