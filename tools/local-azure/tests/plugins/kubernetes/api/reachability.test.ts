import { KubernetesProvider } from "../../../../plugins/kubernetes/provider";
import { Properties } from "../../../../plugins/protocol/values";
import { FakeApi } from "../../../support/plugins/fake-api";

let api: FakeApi;
const signal = new AbortController().signal;

beforeEach(async () => {
  api = await FakeApi.start();
});
afterEach(() => api.stop());

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
