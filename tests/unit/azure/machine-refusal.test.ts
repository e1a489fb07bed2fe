import { explained } from "../../../components/azure/refusals";
import { machinesOf } from "../../../components/settings/topology";
import { validSettings } from "../../support/sample";

const machines = machinesOf(validSettings);
const controlPlane = machines[1]!;
const worker = machines.find(({ role }) => role === "worker")!;

/** As azure-native hands on what Azure says, at once or at the end of an operation. */
const atOnce = (code: string, message: string) => `Status=409 Code="${code}" Message="${message}"`;
const later = (code: string, message: string) =>
  `RESPONSE 200: 200 OK\nERROR CODE: ${code}\n${JSON.stringify({ error: { code, message } }, null, 2)}`;

it.each([
  ["ZonalAllocationFailed", "at the moment"],
  ["AllocationFailed", "at the moment"],
  ["OverconstrainedZonalAllocationRequest", "at the moment"],
  ["OverconstrainedAllocationRequest", "at the moment"],
  ["SkuNotAvailable", "this subscription cannot have size Standard_D2s_v5"],
  ["QuotaExceeded", "az vm list-usage -l westeurope"],
])("says of %s which size and zone it is about, and what to set", (code, says) => {
  for (const error of [atOnce(code, "…"), later(code, "…")]) {
    const text = explained(controlPlane, validSettings, [error]);

    expect(text).toMatch(/^zoned-test-cp-2: /);
    expect(text).toContain(says);
    expect(text).toMatch(/Standard_D2s_v5 in zone 2/);
    expect(text).toContain("westeurope");
    expect(text).toContain("pulumi config set controlPlaneSize SIZE");
    expect(text).toContain("run pulumi up again");
  }
});

it("names the pool's setting for a worker", () => {
  expect(explained(worker, validSettings, [atOnce("SkuNotAvailable", "…")])).toContain(
    "pulumi config set --path 'workerPools[0].size' SIZE",
  );
});

describe("of a spot machine", () => {
  const spot = { ...worker, spot: { evictionPolicy: "Delete" as const, maxPrice: 0.01 } };
  const price =
    "Unable to perform operation 'Create VM' since the provided max price '0.01 USD' is lower than the current spot price '0.02 USD'";

  it.each([
    [
      "SkuNotAvailable",
      "…",
      /no capacity to spare .*run pulumi up again.*\[0\]\.size' SIZE.*\[0\]\.spot'/s,
    ],
    ["ZonalAllocationFailed", "…", /no capacity to spare/],
    [
      "OperationNotAllowed",
      price,
      /costs more than its pool's maxPrice now.*\[0\]\.spot\.maxPrice'/s,
    ],
  ])("%s says what it means, and the ways on", (code, message, says) => {
    expect(explained(spot, validSettings, [atOnce(code, message)])).toMatch(says);
    expect(explained(worker, validSettings, [atOnce(code, message)]) ?? "").not.toMatch(says);
  });
});

it("takes OperationNotAllowed for a quota only where Azure speaks of one", () => {
  const quota =
    "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.";

  for (const error of [atOnce, later].map((one) => one("OperationNotAllowed", quota)))
    expect(explained(controlPlane, validSettings, [error])).toContain("vCPU quota");
  expect(
    explained(controlPlane, validSettings, [
      atOnce("OperationNotAllowed", "The disk is being used."),
    ]),
  ).toBeUndefined();
});

it("leaves everything else to Azure's own words", () => {
  expect(explained(controlPlane, validSettings, [atOnce("InvalidParameter", "…")])).toBeUndefined();
});
