import { Quota, quotaProblems } from "../../../components/azure/quotas";
import { Sku } from "../../../components/azure/size-offers";
import { MachinePlan } from "../../../components/settings/topology";
import { machine } from "../../support/sample";

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

const named = (name: string, size = "Standard_D2s_v5"): MachinePlan => ({ ...machine, name, size });
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
  expect(check([named("a", "Standard_B2s")], [quota("standardBSFamily", 0, 1)], now)).toHaveLength(
    1,
  );
});

describe("spot machines", () => {
  const spot = three.map((one) => ({ ...one, spot: { evictionPolicy: "Delete" as const } }));
  const regular = [quota("cores", 0, 0), quota("standardDSv5Family", 0, 0)];
  const own = quota("lowPriorityCores", 1, 6);

  it("count against a quota of their own alone, which is named as Azure's command wants it", () => {
    const [problem, ...more] = check(spot, [...regular, own]);

    expect(more).toEqual([]);
    expect(problem).toContain("needs 6 (a Standard_D2s_v5, b Standard_D2s_v5, c Standard_D2s_v5)");
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
