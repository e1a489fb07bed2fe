import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";

import {
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

interface Exported {
  deployment: { resources: { type: string; inputs?: Record<string, any> }[] };
}

/** An HTTP proxy in the API's network, which nobody outside knows another way to. */
class Proxy {
  readonly asked: string[] = [];
  private readonly tunnels = new Set<Duplex>();
  private readonly server = createServer().on("connect", ({ url = "" }, from: Duplex) => {
    this.asked.push(url);
    void this.connect(url, from);
  });

  constructor(private readonly addressOf: LocalCloud["stack"]["apiAddress"]) {}

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  open = (port = 0): Promise<void> =>
    new Promise((opened) => this.server.listen(port, "127.0.0.1", opened));

  close(): void {
    this.server.close();
    for (const tunnel of this.tunnels) tunnel.destroy();
  }

  private async connect(url: string, from: Duplex): Promise<void> {
    this.keep(from);
    const address = await this.addressOf(url.split(":")[0]!);
    if (address === undefined) return void from.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const to = connect(address, () => from.write("HTTP/1.1 200 OK\r\n\r\n"));
    this.keep(to);
    from.pipe(to).pipe(from);
    from.once("close", () => to.destroy());
    to.once("close", () => from.destroy());
  }

  private keep(end: Duplex): void {
    this.tunnels.add(end);
    end.on("error", () => end.destroy()).once("close", () => this.tunnels.delete(end));
  }
}

const pool = { name: "workers", count: 1, size: "Standard_B2s" };

/** No public address anywhere: an API of the network's own by a proxy, and routes that somebody else makes. */
describe("a cluster in a private network", () => {
  const ofNetwork = {
    ...fewAddOns,
    controlPlaneCount: 3,
    workerPools: [pool],
    apiAccess: "private",
    apiAccessCidrs: ["10.1.0.0/16"],
    egress: "none",
  };
  const proxy = new Proxy((name) => cloud.stack.apiAddress(name));
  let settings: Record<string, unknown>;
  let cloud: LocalCloud;
  beforeAll(async () => {
    await proxy.open();
    settings = { ...ofNetwork, apiProxy: `http://127.0.0.1:${proxy.port}` };
    cloud = await LocalCloud.start("dev", settings);
  });
  afterAll(async () => {
    proxy.close();
    await cloud?.stop();
  });

  /** How often the proxy is asked meanwhile. */
  async function asking(work: () => Promise<unknown>): Promise<number> {
    const before = proxy.asked.length;
    await work();
    return proxy.asked.length - before;
  }

  const list = async (path: string) =>
    ((await cloud.inGroup("GET", `/providers/Microsoft.Network/${path}`)) as { value: any[] })
      .value;

  it("comes up, and says before it begins who has to reach what", async () => {
    const run = succeeded(await cloud.stack.up());

    const said = `${run.stdout}${run.diagnostics.join("\n")}`;
    expect(said).toMatch(
      new RegExp(
        `the API will answer at 172\\.16\\.0\\.4 port 6443 alone, and this update asks it through ${settings["apiProxy"]} once`,
      ),
    );
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

  it("is asked by its proxy, and by nobody otherwise: plans, the Kubernetes provider, kubectl, the doctor", async () => {
    const { apiAddress } = (await cloud.stack.outputs()) as { apiAddress: string };
    const doctor = async () =>
      expect((await cloud.doctor()).stdout).toContain(
        `(by the proxy 127.0.0.1:${proxy.port}) is ready`,
      );

    expect([...new Set(proxy.asked)]).toEqual([apiAddress.replace("https://", "")]);
    expect(await asking(() => cloud.kubectl("get", "--raw", "/readyz"))).toBe(1);
    expect(await asking(async () => succeeded(await cloud.stack.preview()))).toBeGreaterThan(0);
    expect(await asking(async () => succeeded(await cloud.stack.refresh()))).toBeGreaterThan(0);
    expect(await asking(doctor)).toBeGreaterThan(0);
  });

  it("is out of reach while its proxy is, and each of these says so", async () => {
    const { port } = proxy;
    const silence = new RegExp(
      `the API at \\S+ does not answer from here by the proxy 127\\.0\\.0\\.1:${port} \\(ECONNREFUSED\\).* apiProxy`,
    );
    proxy.close();
    try {
      const preview = await cloud.stack.preview();

      expect([preview.code, preview.diagnostics.join("\n")]).toEqual([
        0,
        expect.stringMatching(silence),
      ]);
      expect(refused(await cloud.stack.refresh())).toMatch(/cannot be reached|unreachable cluster/);
      await expect(cloud.doctor()).rejects.toThrow(silence);
      await expect(cloud.kubectl("get", "--raw", "/readyz")).rejects.toThrow(/was refused/);
    } finally {
      await proxy.open(port);
    }
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
