import { ownRoutesWarnings } from "../../../components/plan/own-routes";
import type { ExistingNetwork } from "../../../components/azure/existing-network";
import type { Settings } from "../../../components/settings/settings";
import { validSettings } from "../../support/sample";

const created = [{ zone: "1" }, { zone: "2" }];

const settings = { ...validSettings, egress: "none" } as const;

it("says where routes have to lead the machines that an update makes, and how one is made", () => {
  const [warning, ...more] = ownRoutesWarnings(settings, created);

  expect(more).toEqual([]);
  for (const host of ["management.azure.com", "login.microsoftonline.com", "registry.k8s.io"]) {
    expect(warning).toContain(host);
  }
  expect(warning).toContain("--route-table-name zoned-test-rt");
});

it("has the group's name as a shell takes it, with the parentheses that Azure admits", () => {
  const [warning] = ownRoutesWarnings({ ...settings, resourceGroup: "platform(weu)" }, created);

  expect(warning).toContain("az network route-table route create -g 'platform(weu)' --route-table");
});

it("names the hosts of the cloud that the cluster is in", () => {
  const resourceManagerEndpoint = "https://management.usgovcloudapi.net/";
  const [warning] = ownRoutesWarnings({ ...settings, resourceManagerEndpoint }, created);

  expect(warning).toContain("management.usgovcloudapi.net, login.microsoftonline.us,");
  expect(warning).not.toContain("login.microsoftonline.com");
});

it.each<[string, Partial<Settings>, string]>([
  ["cri-dockerd", { containerRuntime: "cri-dockerd" }, "github.com"],
  ["registries", { registries: ["/a/registry"] }, "packages.aks.azure.com"],
])("names where %s comes from, where that is set", (_, change, host) => {
  const hosts = (one: Settings) => ownRoutesWarnings(one, created)[0]!.split(/[ ,;]+/);

  expect(hosts(settings)).not.toContain(host);
  expect(hosts({ ...settings, ...change })).toContain(host);
});

it("names registries beside a mirror too, which has no images of theirs", () => {
  const mirror = "https://mirror.example/k8s";
  const [warning] = ownRoutesWarnings({ ...settings, mirror, registries: ["/a/Ours"] }, created);

  expect(warning).toContain("mirror.example, the servers of registries;");
});

it("names a mirror alone where packages and images come from it", () => {
  const [warning] = ownRoutesWarnings(
    { ...settings, mirror: "https://mirror.example/k8s" },
    created,
  );

  expect(warning).toContain("mirror.example;");
  expect(warning).not.toContain("registry.k8s.io");
});

it("names a proxy alone, which machines ask for all else", () => {
  const https = "http://proxy.example:3128";
  const httpProxy = { http: https, https, noProxy: [], ca: "" };
  const [warning] = ownRoutesWarnings({ ...settings, httpProxy }, created);

  expect(warning).toContain(`must lead them to ${https};`);
  expect(warning).not.toContain("management.azure.com");
});

it("names a proxy without its password", () => {
  const https = "http://me:hush@proxy.example:3128";
  const httpProxy = { http: "", https, noProxy: [], ca: "" };
  const [warning] = ownRoutesWarnings({ ...settings, httpProxy }, created);

  expect(warning).toContain("must lead them to http://proxy.example:3128;");
});

it("says nothing where no machine is made, or this program makes the way out", () => {
  expect(ownRoutesWarnings(settings, [])).toEqual([]);
  expect(ownRoutesWarnings(validSettings, created)).toEqual([]);
});

describe("in subnets of others", () => {
  const [a, b] = ["a", "b"].map((name) => `/networks/spoke/subnets/${name}`) as [string, string];
  const given = { ...validSettings, zones: ["1", "2"], nodeSubnets: [a, b] };
  const route = (
    nextHopType: string,
    nextHopIpAddress?: string,
    [name, addressPrefix] = ["out", "0.0.0.0/0"],
  ) => ({ name, properties: { addressPrefix, nextHopType, nextHopIpAddress } });
  const subnet = (id: string, routeTable: string | undefined, gateway?: string) => ({
    ...{ id, name: id.at(-1)!, ranges: [`10.1.${id === a ? 1 : 2}.0/24`] },
    ...{ delegations: [], free: 100 },
    ...{ routeTable, gateway, permissions: [] },
  });
  const network = (...subnets: ReturnType<typeof subnet>[]): ExistingNetwork => ({
    ...{ id: "/networks/spoke", location: "westeurope", ranges: ["10.1.0.0/16"], dnsServers: [] },
    subnets: new Map(subnets.map((one) => [one.id, one])),
    ...{ rules: new Map(), groupTags: new Map() },
    routes: new Map([
      ["/firewall", [route("VirtualAppliance", "10.0.1.4")]],
      ["/internet", [route("Internet")]],
      [
        "/halves",
        [
          route("VirtualAppliance", "10.0.1.4", ["low", "0.0.0.0/1"]),
          route("VirtualNetworkGateway", undefined, ["high", "128.0.0.0/1"]),
        ],
      ],
      [
        "/segmented",
        [
          route("VirtualAppliance", "10.0.1.4", ["own", "10.1.0.0/16"]),
          route("VnetLocal", undefined, ["kept", "10.1.1.0/24"]),
        ],
      ],
    ]),
    permissions: [],
    egress: new Map(),
    unreadable: [],
  });
  const said = (apiAccess: "public" | "private", ...subnets: ReturnType<typeof subnet>[]) =>
    ownRoutesWarnings({ ...given, apiAccess }, created, network(...subnets));

  it("says what the firewall has to let out, once for all of them", () => {
    expect(said("private", subnet(a, "/firewall"), subnet(b, "/firewall", "/nat"))).toEqual([
      expect.stringMatching(
        /^machines in a, b leave by the route out to VirtualAppliance 10\.0\.1\.4: .*let them out to .*registry\.k8s\.io.*docs\/firewall\.md/,
      ),
    ]);
  });

  it("knows a default route in two halves", () => {
    expect(said("private", subnet(a, "/halves"), subnet(b, undefined, "/nat"))).toEqual([
      expect.stringMatching(
        /^machines in a leave by the route low to VirtualAppliance 10\.0\.1\.4 and the route high to VirtualNetworkGateway: /,
      ),
    ]);
  });

  it.each(["public", "private"] as const)(
    "says what a firewall between machines has to let pass beside a %s API",
    (apiAccess) => {
      const both = [subnet(a, "/segmented", "/nat"), subnet(b, "/segmented", "/nat")];
      const cut = said(apiAccess, ...both);

      expect(cut).toEqual([
        expect.stringMatching(
          /^machines in a, b reach machines in 10\.1\.2\.0\/24 by the route own to VirtualAppliance 10\.0\.1\.4: .*TCP 6443, TCP 2379, TCP 2380, TCP 10250, UDP 8472 pass/,
        ),
      ]);
    },
  );

  it("says which of them have no way out that is to be seen", () => {
    expect(said("private", subnet(a, "/internet"), subnet(b, undefined, "/nat"))).toEqual([
      expect.stringMatching(/^machines in a have no NAT gateway and no route of 0\.0\.0\.0\/0/),
    ]);
  });

  it("leaves it to what is refused beside a public API", () => {
    expect(said("public", subnet(a, "/firewall"), subnet(b, undefined))).toEqual([]);
  });
});
