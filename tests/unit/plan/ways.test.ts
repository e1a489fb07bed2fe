import type { ExistingNetwork } from "../../../components/azure/existing-network";
import { interfaceAddresses } from "../../../components/azure/free-addresses";
import { type Shown, shownAs, type ShownResource } from "../../../components/azure/shown";
import { stackName } from "../../../components/azure/stack-tag";
import { addressProblems, subnetProblems } from "../../../components/plan/addresses";
import { ownRoutesWarnings, privateApiWarnings } from "../../../components/plan/ways";
import { Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { freePort } from "../../support/listen";
import { Recorder } from "../../support/record";
import { pool, validSettings } from "../../support/sample";

describe("own routes", () => {
  const created = [{ zone: "1" }, { zone: "2" }];

  const settings = { ...validSettings, egress: "none" } as const;

  it("says where routes have to lead the machines that an update makes, and how one is made", () => {
    const [warning, ...more] = ownRoutesWarnings(settings, created, false);

    expect(more).toEqual([]);
    for (const host of ["management.azure.com", "login.microsoftonline.com", "registry.k8s.io"]) {
      expect(warning).toContain(host);
    }
    expect(warning).toContain("--route-table-name zoned-test-rt");
  });

  const https = "http://proxy.example:3128";
  const mirror = "https://mirror.example/k8s";
  const behind = (http: string, https: string) => ({
    httpProxy: { ...{ http, https }, noProxy: [], ca: "" },
  });
  const withCredentials = (...servers: readonly string[]) => ({
    registryCredentials: Object.fromEntries(
      servers.map((server) => [server, { username: "me", password: "hush" }]),
    ),
  });

  it.each<[string, Partial<Settings>, says: string, not?: string]>([
    [
      "the group's name as a shell takes it, with the parentheses that Azure admits",
      { resourceGroup: "platform(weu)" },
      "az network route-table route create -g 'platform(weu)' --route-table",
    ],
    [
      "the hosts of the cloud that the cluster is in",
      { resourceManagerEndpoint: "https://management.usgovcloudapi.net/" },
      "management.usgovcloudapi.net, login.microsoftonline.us,",
      "login.microsoftonline.com",
    ],
    ["where cri-dockerd comes from", { containerRuntime: "cri-dockerd" }, " github.com,"],
    [
      "where kubelets' credential provider comes from",
      { registries: ["/a/registry"] },
      " packages.aks.azure.com,",
    ],
    [
      "registries beside a mirror too, which is not asked for their images",
      { mirror, registries: ["/a/Ours"] },
      "mirror.example, the servers of registries;",
    ],
    [
      "those of registryCredentials as well",
      { mirror, ...withCredentials("docker.io", "index.docker.io/team", "ghcr.io/a", "ghcr.io/b") },
      "mirror.example, registry-1.docker.io, ghcr.io;",
    ],
    [
      "a mirror alone where packages and images come from it",
      { mirror },
      "mirror.example;",
      "registry.k8s.io",
    ],
    [
      "a proxy alone, which machines ask for all else",
      behind(https, https),
      `must lead them to ${https};`,
      "management.azure.com",
    ],
    [
      "a proxy without its password",
      behind("", "http://me:hush@proxy.example:3128"),
      `must lead them to ${https};`,
    ],
  ])("names %s", (_, change, says, not = "hush") => {
    const [plain = ""] = ownRoutesWarnings(settings, created, false);
    const [warning] = ownRoutesWarnings({ ...settings, ...change }, created, false);

    expect(plain).not.toContain(says);
    expect(warning).toContain(says);
    expect(warning).not.toContain(not);
  });

  it("names where Ubuntu's packages for Arm come from, where there are such machines", () => {
    for (const hasArm of [true, false])
      expect(ownRoutesWarnings(settings, created, hasArm)[0]!.includes(", ports.ubuntu.com")).toBe(
        hasArm,
      );
  });

  it("says nothing where no machine is made, or this program makes the way out", () => {
    expect(ownRoutesWarnings(settings, [], false)).toEqual([]);
    expect(ownRoutesWarnings(validSettings, created, false)).toEqual([]);
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
      ownRoutesWarnings({ ...given, apiAccess }, created, false, network(...subnets));

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
});

describe("private api", () => {
  const apiName = "api.zoned-test-e708c06c.internal";
  const address = "172.16.0.4";
  const settings = { ...validSettings, apiAccess: "private" } as const;

  const ways = ["CI runner", "VPN", "pulumi config set apiProxy http://", `172.16.0.4 ${apiName}`];

  const environment = { ...process.env };
  beforeEach(() => {
    for (const name of Object.keys(process.env)) if (/proxy$/i.test(name)) delete process.env[name];
  });
  afterEach(() => void (process.env = { ...environment }));

  const expectWays = (warning: string | undefined): void => {
    for (const way of ways) expect(warning).toContain(way);
  };

  it("says nothing of a public API", async () => {
    const args = { settings: validSettings, apiName, address: undefined, kubeconfig: undefined };

    expect(await privateApiWarnings(args)).toEqual([]);
  });

  it("says where a new cluster's API will answer, and the three ways there", async () => {
    const [warning, ...more] = await privateApiWarnings({
      ...{ settings, apiName, address },
      kubeconfig: undefined,
    });

    expect(more).toEqual([]);
    expect(warning).toMatch(/^the API will answer at 172\.16\.0\.4 port 6443 alone/);
    expectWays(warning);
  });

  it("says which record a name needs that somebody else keeps", async () => {
    const own = { ...settings, apiName: "api.zoned.example" };
    const args = { settings: own, apiName: own.apiName, address, kubeconfig: undefined };

    expect((await privateApiWarnings(args))[0]).toContain("api.zoned.example. A 172.16.0.4");
  });

  it.each([
    ["has DNS servers of its own", ["10.0.0.4"], "", 1],
    ["has Azure's DNS", [], "", 0],
    ["names Azure's DNS", ["168.63.129.16"], "", 0],
    ["has DNS servers that keep the name", ["10.0.0.4"], "api.zoned.example", 0],
  ])(
    "says of a network that %s who has to know the private zone",
    async (_, dnsServers, own, times) => {
      const warnings = await privateApiWarnings({
        ...{ settings: { ...settings, apiName: own }, apiName: own || apiName, address },
        network: { id: "/networks/spoke", dnsServers },
        kubeconfig: undefined,
      });

      const said = warnings.filter((one) =>
        one.includes("/networks/spoke has DNS servers of its own"),
      );
      expect(said).toHaveLength(times);
      expect(said.join()).toMatch(
        times === 0 ? /^$/ : /forward zoned-test-e708c06c\.internal to 168\.63\.129\.16/,
      );
    },
  );

  describe("in a shell with a proxy", () => {
    const HTTPS_PROXY = "http://me:hush@proxy.example:3128";
    const said = async (
      variables: Record<string, string>,
      of: Partial<typeof validSettings> = {},
    ) => {
      Object.assign(process.env, variables);
      const warnings = await privateApiWarnings({
        ...{ settings: { ...settings, ...of }, apiName, address },
        kubeconfig: undefined,
      });
      return warnings.filter((one) => one.includes("HTTPS_PROXY"));
    };

    it("says that the API is asked by it, without its password", async () => {
      expect(await said({ HTTPS_PROXY })).toEqual([
        expect.stringMatching(
          RegExp(
            `by HTTPS_PROXY of this shell, http://proxy\\.example:3128, .*does not name ${apiName}`,
          ),
        ),
      ]);
      expect(await said({ HTTPS_PROXY, NO_PROXY: ".internal.example,internal:443" })).toHaveLength(
        1,
      );
    });

    it.each<[string, Record<string, string>, Partial<typeof validSettings>]>([
      ["NO_PROXY names its domain", { HTTPS_PROXY, NO_PROXY: "a.example, .internal" }, {}],
      ["NO_PROXY names it with its port", { HTTPS_PROXY, no_proxy: `${apiName}:6443` }, {}],
      ["NO_PROXY is for all", { HTTPS_PROXY, NO_PROXY: "*" }, {}],
      ["apiProxy goes before it", { HTTPS_PROXY }, { apiProxy: "http://proxy.example:3128" }],
      ["it is a rehearsal's", { HTTPS_PROXY, ZONED_OUTER_PROXY: "" }, {}],
      ["there is none", {}, {}],
    ])("does not where %s", async (_, variables, of) => {
      expect(await said(variables, of)).toEqual([]);
    });
  });

  it("says that a living cluster's API is out of reach, why, and the three ways there", async () => {
    const living = await serveKubernetesApi((_, response) => response.end("ok"));
    const gone = living.replace(/localhost:\d+/, `localhost:${await freePort()}`);
    const ask = (kubeconfig: string) =>
      privateApiWarnings({ settings, apiName, address, kubeconfig });
    expect(await ask(living)).toEqual([]);

    const [warning] = await ask(gone);

    expect(warning).toMatch(/does not answer from here \(ECONNREFUSED\)/);
    expectWays(warning);
  });

  it("is content with any answer, as of an API that is not ready", async () => {
    const kubeconfig = await serveKubernetesApi((_, response) =>
      response.writeHead(500).end("[-]etcd failed"),
    );

    expect(await privateApiWarnings({ settings, apiName, address, kubeconfig })).toEqual([]);
  });
});

const inSubnet = (id: string) => [{ properties: { subnet: { id }, privateIPAddress: "10.1.1.4" } }];
const shownIn = (token: string, name: string, properties: object): [string, ShownResource] => [
  shownAs(`azure-native:network:${token}`, name),
  { name, properties: { ...properties } },
];

describe("addresses", () => {
  const two = [
    { ...pool, name: "one", count: 2 },
    { ...pool, name: "two", count: 2 },
  ];
  const settings = { ...validSettings, workerPools: two };
  const labelled = machinesOf(settings).map((one) => ({ ...one, zone: `westeurope-${one.zone}` }));
  const problem = (change: Partial<Settings>) => {
    const changed = { ...settings, ...change };
    return addressProblems(machinesOf(changed), [], labelled, changed).join();
  };

  it.each<[string, Partial<Settings>]>([
    ["other counts", { controlPlaneCount: 5, workerPools: [{ ...two[0]!, count: 3 }, two[1]!] }],
    ["fewer", { controlPlaneCount: 1, workerPools: [{ ...two[0]!, count: 0 }, two[1]!] }],
    ["a pool at the end", { workerPools: [...two, { ...pool, name: "three" }] }],
    ["without the last pool", { workerPools: two.slice(0, 1) }],
  ])("lets machines be where they are: %s", (_, change) => {
    expect(problem(change)).toBe("");
  });

  it.each<[string, Partial<Settings>, RegExp[]]>([
    [
      "control planes to other zones, whose etcd would be elsewhere at once",
      { zones: ["2", "1", "3"], workerPools: [] },
      [/test-cp-1 would move from 172\.16\.1\.4 to 172\.16\.2\.4/, /test-cp-2 would move from/],
    ],
    [
      "workers to other zones of their pool",
      { workerPools: [{ ...two[0]!, zones: ["1", "3", "2"] }, two[1]!] },
      [/test-one-1 would move from 172\.16\.2\.16 to 172\.16\.3\.16/],
    ],
    [
      "the workers of a pool in whose place another one is removed",
      { workerPools: two.slice(1) },
      [/test-two-1 would move from .* keeps its place, with a count of 0\./],
    ],
    [
      "a renamed pool's workers to addresses that are taken until the end",
      { workerPools: [{ ...two[0]!, name: "other" }, two[1]!] },
      [/test-other-1 would get 172\.16\.2\.16, which zoned-test-one-1 has/],
    ],
  ])("moves no machine: refuses %s", (_, change, says) => {
    for (const text of says) expect(problem(change)).toMatch(text);
  });

  it.each<[string, Partial<Settings>, string[]]>([
    [
      "a renamed one",
      { workerPools: [two[0]!, { ...two[1]!, name: "other" }] },
      ["[1].name' two", "[1].count' 0"],
    ],
    ["none where one is gone from the list", { workerPools: two.slice(1) }, []],
    ["none where one is before it", { workerPools: [{ ...pool, name: "new" }, ...two] }, []],
    ["none where control planes move", { zones: ["2", "1", "3"] }, []],
  ])(
    "says how to put a pool back and empty it where it is known which one: %s",
    (_, change, says) => {
      const commands = problem(change).matchAll(/pulumi config set --path 'workerPools(.*?)\)/g);

      expect([...commands].map(([, command]) => command)).toEqual(says);
    },
  );

  it("knows no address of a living cluster twice, and lets machines move while there is none", () => {
    const [machine] = machinesOf(settings);
    const elsewhere = [{ name: machine!.name, address: "172.16.1.99" }];
    const where = { name: machine!.name, address: machine!.address };

    expect(addressProblems([machine!], elsewhere, [where], settings)).toEqual([]);
    expect(addressProblems([machine!], elsewhere, undefined, settings)).toEqual([]);
    expect(addressProblems([machine!], elsewhere, [], settings).join()).toMatch(/would move from/);
  });

  const network = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks";
  const [a, b] = ["a", "b"].map((name) => `${network}/spoke/subnets/${name}`) as [string, string];
  it.each<[what: string, change: Partial<Settings>, is: string, moves: boolean]>([
    ["stays", { nodeSubnets: [a] }, a.toUpperCase(), false],
    ["would get another one", { nodeSubnets: [b] }, a, true],
    ["would get that of another zone", { zones: ["2", "1", "3"], nodeSubnets: [a, b, b] }, a, true],
    ["would get one of the cluster's own", {}, a, true],
    ["stays in the cluster's own network", {}, `${network}/zoned-test-vnet/subnets/nodes-2`, false],
    [
      "would leave the cluster's own network",
      { nodeSubnets: [a] },
      `${network}/zoned-test-vnet/subnets/nodes-1`,
      true,
    ],
  ])("moves nothing that Azure has out of its subnet: one that %s", (_, change, is, moves) => {
    const all: Settings = { ...settings, apiAccess: "private", ...change };
    const [machine] = machinesOf(settings);
    const [balancer] = all.nodeSubnets;
    const shown: Shown = new Map([
      shownIn("NetworkInterface", `${machine!.name}-nic`, { ipConfigurations: inSubnet(is) }),
      ...(balancer === undefined
        ? []
        : [shownIn("LoadBalancer", "zoned-test-api", { frontendIPConfigurations: inSubnet(b) })]),
    ]);

    const problem = subnetProblems([machine!], shown, all).join();

    expect(problem.includes(`${machine!.name} is in ${is}`)).toBe(moves);
    expect(problem.includes(`the API's balancer is in ${b}`)).toBe(balancer === a);
    expect(subnetProblems([machine!], new Map(), all)).toEqual([]);
  });

  it("moves no machine whose address stays to another zone, as in subnets of others", () => {
    const [machine] = machinesOf(settings).map((one) => ({ ...one, address: "10.1.1.14" }));
    const before = { name: machine!.name, address: "10.1.1.14" };
    const problemIn = (zone?: string) =>
      addressProblems([machine!], [], [{ ...before, zone }], settings).join();

    expect(problemIn(`westeurope-${machine!.zone}`)).toBe("");
    expect(problemIn()).toBe("");
    expect(problemIn("westeurope-3")).toMatch(
      /^.*test-cp-1, which is at 10\.1\.1\.14, would move from westeurope-3 to westeurope-1/,
    );
  });

  it("leaves interfaces of others alone that lie in the same group", async () => {
    await Recorder.start();
    const interfaceOf = (stack: string, machine: string) => ({
      ...{ name: `zoned-test-${machine}-nic`, tags: { "zoned-stack": stack } },
      properties: { ipConfigurations: [{ properties: { privateIPAddress: "172.16.1.4" } }] },
    });
    const shown = new Map(
      [interfaceOf(stackName(), "one-1"), interfaceOf("organization/others/prod", "two-1")].map(
        (one) => [shownAs("azure-native:network:NetworkInterface", one.name), one],
      ),
    );
    const namesIn = (resourceGroup: string) =>
      interfaceAddresses(shown, { clusterName: "zoned-test", resourceGroup }).map(
        ({ name }) => name,
      );

    expect(namesIn("shared")).toEqual(["zoned-test-one-1"]);
    expect(namesIn("")).toEqual(["zoned-test-one-1", "zoned-test-two-1"]);
  });
});
