import {
  addressQuotaProblems,
  getAddressQuotas,
  Quota,
  quotaProblems,
} from "../../../components/azure/quotas";
import { Sku } from "../../../components/azure/size-offers";
import { Settings } from "../../../components/settings/settings";
import { MachinePlan } from "../../../components/settings/topology";
import { account } from "../../../tools/local-azure/arm/resources/resource";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { machine, validSettings } from "../../support/sample";

describe("quotas", () => {
  const sku = (name: string, family: string, vCPUs: number): Sku => ({
    resourceType: "virtualMachines",
    name,
    family,
    capabilities: [{ name: "vCPUs", value: String(vCPUs) }],
  });
  const skus = [
    sku("Standard_D2s_v5", "standardDSv5Family", 2),
    sku("Standard_D4s_v5", "standardDSv5Family", 4),
    sku("Standard_B2s", "standardBSFamily", 2),
  ];

  const quota = (value: string, currentValue: number, limit: number): Quota => ({
    name: { value, localizedValue: `${value}, as people call it` },
    currentValue,
    limit,
  });

  const named = (name: string, size = "Standard_D2s_v5"): MachinePlan => ({
    ...machine,
    name,
    size,
  });
  const three = [named("a"), named("b"), named("c")];

  const check = (
    machines: MachinePlan[],
    quotas: Quota[],
    now: Record<string, string> = {},
    isSpot = false,
  ) =>
    quotaProblems(machines, quotas, {
      subscriptionId: "the-subscription",
      location: "westeurope",
      skus,
      existing: new Map(Object.entries(now).map(([name, size]) => [name, { size, isSpot }])),
      command: ({ name }) => `pulumi config set ${name}Size`,
    });

  it("names quota, need, limit, use and the way on where machines do not fit their family", () => {
    const problems = check(three, [quota("standardDSv5Family", 1, 4), quota("cores", 1, 100)]);

    expect(problems).toHaveLength(1);
    for (const text of [
      "standardDSv5Family, as people call it (standardDSv5Family) in westeurope has room for 3 more",
      "1 of 4 being used",
      "needs 6 (a Standard_D2s_v5, b Standard_D2s_v5, c Standard_D2s_v5)",
      "az vm list-usage -l westeurope",
      "az quota update --resource-name standardDSv5Family --resource-type dedicated --limit-object value=7 " +
        "--scope /subscriptions/the-subscription/providers/Microsoft.Compute/locations/westeurope",
      "(pulumi config set aSize SIZE)",
    ]) {
      expect(problems[0]).toContain(text);
    }
  });

  it("counts machines of all families against the region's quota, and each against its own", () => {
    const mixed = [named("a"), named("b", "Standard_B2s"), named("c", "standard_b2S")];
    const families = [quota("STANDARDDSV5FAMILY", 0, 2), quota("standardBSFamily", 0, 4)];

    expect(check(mixed, [...families, quota("cores", 0, 6)])).toEqual([]);
    expect(check(mixed, [...families, quota("cores", 0, 5)])).toEqual([
      expect.stringMatching(/needs 6 .*smaller machines/),
    ]);
    expect(check(mixed, [quota("standardBSFamily", 0, 3)])).toEqual([
      expect.stringContaining("needs 4 (b Standard_B2s, c standard_b2S)"),
    ]);
  });

  it("counts no machine twice that Azure has already, whether it stays or is replaced", () => {
    const now = { a: "Standard_D2s_v5", b: "standard_d2s_V5" };

    expect(check(three, [quota("standardDSv5Family", 4, 6)], now)).toEqual([]);
    expect(check(three, [quota("standardDSv5Family", 4, 5)], now)).toEqual([
      expect.stringContaining("needs 2 (c Standard_D2s_v5)"),
    ]);
    expect(check(three.slice(0, 2), [quota("standardDSv5Family", 4, 1)], now)).toEqual([]);
  });

  it("counts what a resize adds, in its own family or in another one", () => {
    const now = { a: "Standard_D2s_v5" };
    const family = quota("standardDSv5Family", 2, 3);

    expect(check([named("a", "Standard_D4s_v5")], [family], now)).toHaveLength(1);
    expect(check([named("a", "Standard_D4s_v5")], [{ ...family, limit: 4 }], now)).toEqual([]);
    expect(check([named("a", "Standard_B2s")], [family], now)).toEqual([]);
    expect(
      check([named("a", "Standard_B2s")], [quota("standardBSFamily", 0, 1)], now),
    ).toHaveLength(1);
  });

  describe("spot machines", () => {
    const spot = three.map((one) => ({ ...one, spot: { evictionPolicy: "Delete" as const } }));
    const regular = [quota("cores", 0, 0), quota("standardDSv5Family", 0, 0)];
    const own = quota("lowPriorityCores", 1, 6);

    it("count against a quota of their own alone, which is named as Azure's command wants it", () => {
      const [problem, ...more] = check(spot, [...regular, own]);

      expect(more).toEqual([]);
      expect(problem).toContain(
        "needs 6 (a Standard_D2s_v5, b Standard_D2s_v5, c Standard_D2s_v5)",
      );
      expect(problem).toContain("--resource-name lowPriorityCores --resource-type lowPriority ");
      expect(problem).toContain("take fewer or smaller machines");
      expect(check(spot, [...regular, { ...own, limit: 7 }])).toEqual([]);
    });

    it("that take the place of regular ones leave those their quota, and the other way round", () => {
      const sizes = { a: "Standard_D2s_v5", b: "Standard_D2s_v5", c: "Standard_D2s_v5" };
      const none = quota("lowPriorityCores", 0, 0);

      expect(check(spot, [...regular, none], sizes)).toHaveLength(1);
      expect(check(spot, [...regular, none], sizes, true)).toEqual([]);
      expect(check(three, [...regular, none], sizes, true)).toHaveLength(2);
    });
  });

  it("minds no quota without a limit", () => {
    expect(check(three, [quota("cores", 9, -1)])).toEqual([]);
  });

  it("minds no quota that is exceeded already, as long as nothing is added", () => {
    expect(check([], [quota("cores", 9, 4)])).toEqual([]);
    expect(check([named("a")], [quota("cores", 9, 4)], { a: "Standard_D4s_v5" })).toEqual([]);
  });
});

describe("address quotas", () => {
  interface Scene {
    readonly egress?: Settings["egress"];
    readonly apiAccess?: Settings["apiAccess"];
    /** Names of addresses that the cluster has. */
    readonly existing?: readonly string[];
    /** How many more the region has room for. */
    readonly free?: number;
    readonly quota?: string;
  }

  /** What is said of a cluster's addresses by what the local Azure says of them. */
  async function problemsOf({
    egress = "zonal",
    apiAccess = "public",
    existing = [],
    free = 0,
    quota = "PublicIPAddresses",
  }: Scene) {
    const azure = newArm().arm;
    const settings = { ...validSettings, apiAccess, egress };
    const { location, clusterName } = settings;
    const group = `/subscriptions/${account.subscriptionId}/resourceGroups/${clusterName}`;
    if (existing.length > 0) await azure.put(group, { location });
    for (const name of existing) {
      await azure.put(`${group}/providers/Microsoft.Network/publicIPAddresses/${name}`, {
        location,
        sku: { name: "Standard" },
        publicIPAllocationMethod: "Static",
      });
    }
    azure.quotas.set({ [quota]: existing.length + free });
    const { arm } = await connectionTo(azure);
    const offers = await getAddressQuotas(arm, account.subscriptionId, settings);
    return addressQuotaProblems(settings, offers, account.subscriptionId);
  }

  const zonal = ["api", "egress-1", "egress-2", "egress-3"].map((name) => `zoned-test-${name}`);

  it("names quota, need, limit, use and the way on where a region has no room for public addresses", async () => {
    const [problem, ...more] = await problemsOf({ free: 3 });

    expect(more).toEqual([]);
    for (const text of [
      "the quota Public IP Addresses (PublicIPAddresses) in westeurope has room for 3 more",
      "0 of 3 being used",
      `needs 4 (${zonal.join(", ")})`,
      "az network list-usages -l westeurope",
      "az quota update --resource-name PublicIPAddresses --resource-type PublicIpAddresses --limit-object value=4 ",
      "pulumi config set egress single",
    ]) {
      expect(problem).toContain(text);
    }
  });

  it.each<[what: string, scene: Scene, needs: string | undefined]>([
    ["a first cluster that fits", { free: 4 }, undefined],
    ["one gateway for all zones", { egress: "single", free: 2 }, undefined],
    [
      "the quota of Standard addresses",
      { free: 3, quota: "IPv4StandardSkuPublicIpAddresses" },
      "needs 4",
    ],
    ["a cluster that has them all", { existing: zonal }, undefined],
    ["one that is half made", { existing: zonal.slice(0, 2), free: 1 }, "needs 2"],
    [
      "a change of the egress, during which the old addresses stay",
      { egress: "single", existing: zonal },
      "needs 1 (zoned-test-egress)",
    ],
  ])("counts what is to be made of %s", async (_, scene, needs) => {
    expect(await problemsOf(scene)).toEqual(needs ? [expect.stringContaining(needs)] : []);
  });

  it("has room for any number where Azure knows no limit, which it shows as -1", () => {
    const quotas = [{ name: { value: "PublicIPAddresses" }, currentValue: 9, limit: -1 }];
    const problems = addressQuotaProblems(
      validSettings,
      { quotas, existing: [] },
      account.subscriptionId,
    );

    expect(problems).toEqual([]);
  });

  it("needs no public address at all for a private API whose network leads out by itself", async () => {
    expect(await problemsOf({ apiAccess: "private", egress: "none" })).toEqual([]);

    const [problem] = await problemsOf({ apiAccess: "private", egress: "single" });
    expect(problem).toContain("needs 1 (zoned-test-egress)");
  });
});
