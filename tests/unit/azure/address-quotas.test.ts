import { addressQuotaProblems, getAddressQuotas } from "../../../components/azure/quotas";
import { ArmClient } from "../../../components/azure/resource-manager";
import { Settings } from "../../../components/settings/settings";
import { account } from "../../../tools/local-azure/arm/resources/ids";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { validSettings } from "../../support/sample";

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
  const rest = await serveRest(azure, 0);
  const arm = new ArmClient(`http://127.0.0.1:${rest.port}`, "local");
  try {
    const offers = await getAddressQuotas(arm, account.subscriptionId, settings);
    return addressQuotaProblems(settings, offers, account.subscriptionId);
  } finally {
    await rest.close();
  }
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
