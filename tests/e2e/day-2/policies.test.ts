import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

const assignment = (name: string) =>
  `${subscriptionPath}/providers/Microsoft.Authorization/policyAssignments/${name}`;

const pool = { name: "workers", count: 1, size: "Standard_B2s" };
const settings = { ...fewAddOns, workerPools: [pool] };

/** The policies of a landing zone, from the first preview to an update under them. */
describe("a cluster where Azure Policy demands a tag and allows no public address and no IP forwarding", () => {
  let cloud: LocalCloud;
  let said: string;

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    await cloud.assign(assignment("tagged"), "871b6d14-10aa-478d-b590-94f262ecfa99", {
      tagName: "costCenter",
    });
    await cloud.assign(assignment("tagged-groups"), "96670d01-0a4d-4649-9c89-2d3abc0a5025", {
      tagName: "costCenter",
    });
    await cloud.assign(assignment("closed"), "6c112d4e-5bc7-47ae-a041-ea2d9dccd749", {
      listOfResourceTypesNotAllowed: ["Microsoft.Network/publicIPAddresses"],
    });
    await cloud.assign(assignment("no-forwarding"), "88c0b9da-ce96-4b03-9635-f29a937e2900", {});
  });
  afterAll(() => cloud?.stop());

  it("is refused in the first preview by each of them, with what would satisfy it, and nothing is made", async () => {
    said = refused(await cloud.stack.preview());

    const [ofTag, ofGroup, ofAddress] = ["tagged", "tagged-groups", "closed"].map((name) =>
      said.split("\n").find((line) => line.includes(`See policy ${name}:`)),
    );
    expect(ofTag).toMatch(
      /does not allow Microsoft\.Network\/virtualNetworks, .*Microsoft\.Compute\/virtualMachines, .*tags\[costCenter\], which is missing/,
    );
    expect(ofGroup).toMatch(
      /does not allow Microsoft\.Resources\/subscriptions\/resourceGroups: .*pulumi config set --path tags\.costCenter/,
    );
    expect(ofAddress).toMatch(/does not allow Microsoft\.Network\/publicIPAddresses: /);
    const made = (await cloud.requests()).filter(
      ({ method, type }) => method === "PUT" && !type.startsWith("Microsoft.Authorization/"),
    );
    expect(made).toEqual([]);
  });

  it("is made with the settings that the preview has named", async () => {
    for (const command of [
      /config set --path tags\.costCenter VALUE/,
      /config set apiAccess private/,
      /config set egress none/,
    ]) {
      await cloud.runSuggested(said, command);
    }

    asPlanned(await cloud.stack.up());

    expect(await cloud.get("nodes")).toHaveLength(2);
  });

  it("changes nothing by a second update", async () => {
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is refused a size that another policy does not allow, before a machine is drained for it", async () => {
    await cloud.assign(assignment("sizes"), "cccc23c7-8427-4f53-ad12-b6a63eb452b3", {
      listOfAllowedSKUs: [pool.size],
    });
    await cloud.stack.configure({
      ...settings,
      ...{ tags: { costCenter: "VALUE" }, apiAccess: "private", egress: "none" },
      workerPools: [{ ...pool, size: "Standard_B2ms" }],
    });

    const text = refused(await cloud.stack.preview());

    expect(text).toMatch(
      /does not allow Microsoft\.Compute\/virtualMachines: .*"Standard_B2ms".*Set controlPlaneSize or workerPools/,
    );
  });

  it("may have that size once the cluster's group is exempt from the policy", async () => {
    await cloud.inGroup("PUT", "/providers/Microsoft.Authorization/policyExemptions/ours", {
      properties: { policyAssignmentId: assignment("sizes"), exemptionCategory: "Waiver" },
    });

    expect(succeeded(await cloud.stack.preview()).stdout).toContain("zoned-local-workers-1");
  });

  it("is taken away under its policies", async () => {
    succeeded(await cloud.stack.destroy());
  });
});
