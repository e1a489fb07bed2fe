import { serveApiProxy } from "../../../daemon/api-proxy";
import { Client, Refused, Unreachable } from "../../../plugins/kubernetes/api";
import { KubernetesProvider } from "../../../plugins/kubernetes/provider";
import type { Properties } from "../../../plugins/protocol/values";
import { FakeApi } from "../../support/plugins/fake-api";

const { signal } = new AbortController();
let api: FakeApi;
let client: Client;
async function start(certifiedHost?: string): Promise<void> {
  api = await FakeApi.start(certifiedHost);
  client = new Client(api.access, api.redirect);
}
afterEach(async () => {
  client.close();
  await api.stop();
});

describe("a client", () => {
  it("connects to where a name leads here, and checks the certificate against the name", async () => {
    await start();

    expect(await client.get("/version")).toEqual({});
  });

  it("does not trust a certificate of another name", async () => {
    await start("elsewhere.example.com");

    await expect(client.get("/version")).rejects.toThrow(
      /^the Kubernetes API at https:\/\/zoned\..*:6443 cannot be reached: Hostname\/IP does not /,
    );
  });

  it("names the address and the cause when nothing answers", async () => {
    await start();
    await api.stop();

    const failure = client.get("/version");

    await expect(failure).rejects.toBeInstanceOf(Unreachable);
    await expect(failure).rejects.toThrow(
      /^the Kubernetes API at https:\/\/zoned\..*:6443 cannot be reached: connect ECONNREFUSED/,
    );
  });

  it("goes by the kubeconfig's proxy alone, and checks the certificate all the same", async () => {
    await start();
    client.close();
    let asked = 0;
    const proxy = await serveApiProxy((name) => (asked++, api.redirect(name, 6443)), 0, 0);
    const through = () => new Client({ ...api.access, proxy: `http://127.0.0.1:${proxy.port}` });
    try {
      expect(await (client = through()).get("/version")).toEqual({});

      expect(asked).toBe(1);
      client.close();
      await api.stop();
      await expect((client = through()).get("/version")).rejects.toThrow(
        /:6443 cannot be reached: the proxy http:\/\/127\.0\.0\.1:\d+ answers 502 Bad Gateway$/,
      );
      client.close();
      await proxy.close();
      await expect((client = through()).get("/version")).rejects.toThrow(
        /:6443 cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:/,
      );
    } finally {
      await proxy.close();
    }
  });

  it("reports what the server says when it refuses", async () => {
    await start();
    api.answer = () => [403, { reason: "Forbidden", message: "nodes is forbidden" }];

    const failure = client.get("/api/v1/nodes");

    await expect(failure).rejects.toBeInstanceOf(Refused);
    await expect(failure).rejects.toThrow("nodes is forbidden");
  });

  it.each([429, 503, 504])("asks again when the server is too busy (%s)", async (code) => {
    await start();
    let asked = 0;
    api.answer = () => (asked++ === 0 ? [code, { message: "not now" }] : undefined);

    expect(await client.get("/version")).toEqual({});
    expect(asked).toBe(2);
  });

  it.each([
    [409, 1],
    [500, 1],
    [503, 4],
  ])("lets an answer of %s be, when it has asked %s times", async (code, times) => {
    await start();
    let asked = 0;
    api.answer = () => (asked++, [code, { message: "no" }]);

    await expect(client.get("/version")).rejects.toMatchObject({ code });
    expect(asked).toBe(times);
  });

  it("ends a request that is interrupted", async () => {
    await start();
    const interruption = new AbortController();

    const failure = client.get("/version", interruption.signal);
    interruption.abort(new Error("the run was interrupted"));

    await expect(failure).rejects.toThrow("the run was interrupted");
  });
});

describe("a provider", () => {
  beforeEach(() => start());

  async function configured(settings: Properties = {}): Promise<KubernetesProvider> {
    const engine = { progress: () => undefined, warn: () => undefined };
    const provider = new KubernetesProvider(engine, api.redirect);
    await provider.configure({ kubeconfig: api.kubeconfig, ...settings });
    return provider;
  }

  const object = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "it", namespace: "here" },
  };
  const subject = { urn: "urn:it", type: "kubernetes:core/v1:ConfigMap", signal };
  const recorded = { ...subject, id: "here/it", state: object, inputs: object };
  const creating = { ...subject, inputs: object, timeoutSeconds: 1 };
  const updating = { ...subject, id: "here/it", state: object, olds: object, news: object };

  /** What the API answers to the question for its OpenAPI documents. */
  const refusing = (code: number) => () => [code, { message: `code ${code}` }] as const;

  describe.each([
    ["refuses the credentials", 401],
    ["refuses the right", 403],
    ["is broken", 500],
    ["is not ready", 503],
  ])("an API that %s", (_, code) => {
    it("is unreachable: nothing is forgotten, made or changed, and previews go by", async () => {
      api.answer = refusing(code);
      const provider = await configured();
      // Asked once: that it would answer by now changes nothing.
      api.answer = () => undefined;

      const said = new RegExp(`cannot be used: code ${code} \\(${code}\\)`);
      await expect(provider.read(recorded)).rejects.toThrow(said);
      await expect(provider.delete({ ...recorded, timeoutSeconds: 1 })).rejects.toThrow(said);
      await expect(provider.create({ ...creating, preview: false })).rejects.toThrow(said);
      await expect(
        provider.update({ ...updating, preview: false, timeoutSeconds: 1 }),
      ).rejects.toThrow(said);
      expect((await provider.create({ ...creating, preview: true })).state).toEqual(object);
      expect(await provider.update({ ...updating, preview: true, timeoutSeconds: 1 })).toEqual(
        object,
      );
      expect(api.seen.map(({ path }) => path)).toEqual(expect.arrayContaining(["/openapi/v3"]));
      expect(api.seen.filter(({ path }) => path !== "/openapi/v3")).toEqual([]);
    });
  });

  it.each([
    ["true", false],
    ["false", true],
  ])("with enableConfigMapMutable %s replaces a ConfigMap of other data: %s", async (set, is) => {
    const provider = await configured({ enableConfigMapMutable: set });

    const { changes } = provider.diff({ ...updating, news: { ...object, data: { a: "1" } } });

    expect(changes.map(({ replaces }) => replaces)).toEqual([is]);
  });

  it("takes a kubeconfig that cannot be read for a cluster that cannot be reached", async () => {
    const provider = await configured({ kubeconfig: "clusters: [hush" });

    await expect(provider.read(recorded)).rejects.toThrow(
      /^the kubeconfig of this provider cannot be read: expected [^[]*. Nothing was forgotten/,
    );
  });

  it("refuses to import an object", async () => {
    const provider = await configured();

    await expect(provider.read({ ...recorded, state: {}, inputs: {} })).rejects.toThrow(
      "only the official plugin imports an object: make a resource of here/it, which takes it over",
    );
  });
});
