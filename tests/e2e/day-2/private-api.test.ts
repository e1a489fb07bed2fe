import {
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(600_000);

interface Exported {
  deployment: { resources: { type: string; inputs?: Record<string, any> }[] };
}

const pool = { name: "workers", count: 1, size: "Standard_B2s" };

/** No public address anywhere: an API of the network's own, and routes that somebody else makes. */
describe("a cluster in a private network", () => {
  const settings = {
    ...fewAddOns,
    controlPlaneCount: 3,
    workerPools: [pool],
    apiAccess: "private",
    apiAccessCidrs: ["10.1.0.0/16"],
    egress: "none",
  };
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", settings);
  });
  afterAll(() => cloud?.stop());

  const list = async (path: string) =>
    ((await cloud.inGroup("GET", `/providers/Microsoft.Network/${path}`)) as { value: any[] })
      .value;

  it("comes up, and says before it begins who has to reach what", async () => {
    const run = succeeded(await cloud.stack.up());

    const said = `${run.stdout}${run.diagnostics.join("\n")}`;
    expect(said).toMatch(/the API will answer at 172\.16\.0\.4 port 6443 alone/);
    expect(said).toMatch(/routes in zoned-dev-rt .*must lead them to .*registry\.k8s\.io/);
    const nodes = await cloud.get<{ metadata: { name: string } }>("nodes");
    expect(nodes.map(({ metadata }) => metadata.name).sort()).toEqual([
      ...["zoned-dev-cp-1", "zoned-dev-cp-2", "zoned-dev-cp-3"],
      "zoned-dev-workers-1",
    ]);
  });

  it("has no public address, in Azure or in the state, and a name that its network resolves", async () => {
    const { deployment } = (await cloud.stack.stackExport()) as Exported;
    const types = deployment.resources.map(({ type }) => type);
    const [zone] = await list("privateDnsZones");
    const [record] = await list(`privateDnsZones/${zone.name}/A`);
    const { apiAddress } = (await cloud.stack.outputs()) as { apiAddress: string };

    expect(types.filter((type) => /PublicIPAddress|NatGateway/.test(type))).toEqual([]);
    expect(await list("publicIPAddresses")).toEqual([]);
    expect(record.properties).toMatchObject({ aRecords: [{ ipv4Address: "172.16.0.4" }] });
    expect(`https://${record.properties.fqdn}:6443`.replace(".:", ":")).toBe(apiAddress);
  });

  it("is left alone by a second update, with routes and tags of others", async () => {
    await cloud.inGroup(
      "PUT",
      "/providers/Microsoft.Network/routeTables/zoned-dev-rt/routes/default",
      {
        properties: {
          addressPrefix: "0.0.0.0/0",
          nextHopType: "VirtualAppliance",
          nextHopIpAddress: "10.1.0.4",
        },
      },
    );
    const [zone] = await list("privateDnsZones");
    const path = `/providers/Microsoft.Network/privateDnsZones/${zone.name}`;
    await cloud.inGroup("PATCH", path, { tags: { owner: "firm" } });
    succeeded(await cloud.stack.refresh());

    unchanged(await cloud.stack.up("--skip-preview"));

    expect((await list("routeTables"))[0].properties.routes).toHaveLength(1);
    expect((await list("privateDnsZones"))[0].tags).toEqual({ owner: "firm" });
  });

  it("does not become public, since its name is everywhere", async () => {
    await cloud.stack.configure({ ...settings, apiAccess: "public", egress: "single" });

    expect(refused(await cloud.stack.up())).toMatch(
      /apiAccess is public, and this stack's cluster was made with private: certificates and kubeconfigs name/,
    );
  });

  it("leaves nothing when it is destroyed", async () => {
    await cloud.stack.configure(settings);

    succeeded(await cloud.stack.destroy());

    expect(await cloud.isEmpty()).toBe(true);
  });
});
