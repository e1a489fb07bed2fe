import { privateApiWarnings } from "../../../components/plan/private-api";
import { validSettings } from "../../support/sample";
import { serveKubernetesApi } from "../../support/kubernetes-api";

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
    expect(await said({ HTTPS_PROXY, NO_PROXY: ".internal.example,internal:443" })).toHaveLength(1);
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
  const api = await serveKubernetesApi((_, response) => response.end("ok"));
  const { kubeconfig } = api;
  const ask = () => privateApiWarnings({ settings, apiName, address, kubeconfig });
  expect(await ask()).toEqual([]);
  api.close();

  const [warning] = await ask();

  expect(warning).toMatch(/does not answer from here \(ECONNREFUSED\)/);
  expectWays(warning);
});

it("is content with any answer, as of an API that is not ready", async () => {
  const { kubeconfig, close } = await serveKubernetesApi((_, response) =>
    response.writeHead(500).end("[-]etcd failed"),
  );

  expect(await privateApiWarnings({ settings, apiName, address, kubeconfig })).toEqual([]);
  close();
});
