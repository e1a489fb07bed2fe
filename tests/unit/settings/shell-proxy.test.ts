import { tmpdir } from "node:os";
import { join } from "node:path";

import { serve, serveRefusingProxy } from "../../support/listen";
import { access, complaints } from "../../support/stack";

const environment = { ...process.env };
let address: string;
let asked: string[];
let own: string;
beforeAll(async () => {
  ({ address, asked } = await serveRefusingProxy());
  own = await serve((_, response) => response.end('{"name":"here"}'));
});
beforeEach(() => {
  asked.length = 0;
  jest.resetModules();
});
afterEach(() => void (process.env = { ...environment }));

/** The shell's variables of a proxy, all of them. */
function given(variables: Record<string, string>): void {
  for (const name of Object.keys(process.env)) if (/proxy$/i.test(name)) delete process.env[name];
  Object.assign(process.env, variables);
}

const never = new AbortController().signal;
const step = { update: () => undefined, done: () => undefined };
const host = "https://name.invalid";

const requests: Readonly<Record<string, () => Promise<unknown>>> = {
  async "a question to Azure"() {
    const { ArmClient } =
      require("../../../components/azure/resource-manager") as typeof import("../../../components/azure/resource-manager");
    return new ArmClient(host, "token", async () => undefined).get("/thing", {}, {});
  },
  async "a manifest"() {
    const { download } =
      require("../../../components/add-ons/manifests/manifests") as typeof import("../../../components/add-ons/manifests/manifests");
    return download(host);
  },
  async "a program"() {
    const { save } =
      require("../../../tools/programs/downloads") as typeof import("../../../tools/programs/downloads");
    return save(host, join(tmpdir(), "zoned-never-saved"), step, never);
  },
  async "a source of the mirror"() {
    const { Sources } =
      require("../../../tools/mirror/sources") as typeof import("../../../tools/mirror/sources");
    return new Sources(never).answers(host);
  },
};

it.each(Object.keys(requests))("%s is asked for by HTTPS_PROXY", async (what) => {
  given({ HTTPS_PROXY: address });

  await requests[what]!().catch(() => undefined);

  expect(new Set(asked)).toEqual(new Set(["name.invalid:443"]));
});

it("goes by no proxy to what NO_PROXY names", async () => {
  for (const NO_PROXY of ["example.org,.invalid", "*"]) {
    given({ HTTPS_PROXY: address, NO_PROXY });

    await expect(requests["a question to Azure"]!()).rejects.toThrow("fetch failed");
  }

  expect(asked).toEqual([]);
});

const apiAt = (cluster: object) => {
  const { KubernetesApi } =
    require("../../../components/cluster/kubernetes-api") as typeof import("../../../components/cluster/kubernetes-api");
  return new KubernetesApi(
    JSON.stringify({
      clusters: [{ cluster: { server: host, ...cluster } }],
      users: [{ user: {} }],
    }),
  );
};

it("goes by the proxy that a kubeconfig names, whatever NO_PROXY names", async () => {
  given({ NO_PROXY: "*" });
  const api = apiAt({ "proxy-url": address });

  await expect(api.get("/readyz")).rejects.toThrow();

  await api.close();
  expect(new Set(asked)).toEqual(new Set(["name.invalid:443"]));
});

it("goes to https by no proxy that is for http alone, as curl and Go do", async () => {
  given({ HTTP_PROXY: address });
  const api = apiAt({});

  await expect(requests["a question to Azure"]!()).rejects.toThrow("fetch failed");
  await expect(api.get("/readyz")).rejects.toThrow("does not answer from here");

  await api.close();
  expect(asked).toEqual([]);
});

it("reaches this host without a proxy", async () => {
  given({ HTTPS_PROXY: address, HTTP_PROXY: address, NO_PROXY: "example.org" });
  const { ArmClient } =
    require("../../../components/azure/resource-manager") as typeof import("../../../components/azure/resource-manager");

  const arm = new ArmClient(own, "token");

  expect(await arm.get("/thing", {}, { name: "" })).toEqual({ name: "here" });
  expect(asked).toEqual([]);
});

it("goes by the user's own proxy in a rehearsal, whose HTTPS_PROXY knows its clusters alone", async () => {
  given({ HTTPS_PROXY: "http://127.0.0.1:9", ZONED_OUTER_PROXY: address });
  await requests["a manifest"]!().catch(() => undefined);
  expect(new Set(asked)).toEqual(new Set(["name.invalid:443"]));

  asked.length = 0;
  jest.resetModules();
  given({ HTTPS_PROXY: address, ZONED_OUTER_PROXY: "" });
  await expect(requests["a question to Azure"]!()).rejects.toThrow("fetch failed");
  expect(asked).toEqual([]);
});

const stack = { location: "westeurope", ...access };

it.each([
  [
    "10.0.0.4:3128",
    /^HTTPS_PROXY of this shell is 10\.0\.0\.4:3128, expected .* scheme.*http:\/\/10/,
  ],
  ["proxy.example:3128", /\(export HTTPS_PROXY=http:\/\/proxy\.example:3128 /],
  ["me:hush@proxy.example:3128", /is proxy\.example:3128, /],
  ["me:p@hush@proxy.example:3128", /is proxy\.example:3128, /],
  ["socks5://me:hush@proxy.example:1080", /is socks5:\/\/proxy\.example:1080, /],
])("says what is wrong with the proxy %s", (HTTPS_PROXY, says) => {
  given({ HTTPS_PROXY });

  const problems = complaints(stack);

  expect(problems).toEqual([expect.stringMatching(says)]);
  expect(problems.join("")).not.toContain("hush");
});

it("finds nothing wrong with proxies that are addresses, or none", () => {
  const lower = { HTTPS_PROXY: "10.0.0.4:3128", https_proxy: address };
  for (const variables of [{ HTTPS_PROXY: address }, lower, { https_proxy: "" }, {}]) {
    given(variables as Record<string, string>);

    expect(complaints(stack)).toEqual([]);
  }
});
