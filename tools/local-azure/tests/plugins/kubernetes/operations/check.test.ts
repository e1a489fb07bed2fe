import { checked } from "../../../../plugins/kubernetes/operations/check";
import { Properties } from "../../../../plugins/protocol/values";

const around = (namespaced?: boolean) => ({
  definedKinds: new Map<string, boolean>(),
  discovery: async () => ({
    find: async () => {
      if (namespaced === undefined) {
        throw new Error("no such kind");
      }
      return { plural: "things", namespaced };
    },
  }),
});

const check = (type: string, news: Properties, more: object = {}, namespaced?: boolean) =>
  checked(
    {
      urn: "urn",
      name: "Web",
      type,
      news,
      olds: {},
      seed: Buffer.from("seed"),
      signal: new AbortController().signal,
      ...more,
    },
    around(namespaced),
  );

const metadataOf = async (...args: Parameters<typeof check>) =>
  (await check(...args)).inputs.metadata as Properties;

const configMap = "kubernetes:core/v1:ConfigMap";
const custom = "kubernetes:example.com/v1:Thing";

it("takes kind and version from the type where the inputs leave them out", async () => {
  const { inputs } = await check("kubernetes:apps/v1:DaemonSetPatch", { metadata: { name: "a" } });

  expect(inputs).toMatchObject({ apiVersion: "apps/v1", kind: "DaemonSet" });
});

it.each([
  { what: "a built-in kind", type: configMap, given: undefined, namespace: "default" },
  { what: "one that names its own", type: configMap, given: "mine", namespace: "mine" },
  {
    what: "a kind without namespaces",
    type: "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
    given: "mine",
    namespace: undefined,
  },
  { what: "a kind that is not known yet", type: custom, given: undefined, namespace: "default" },
])("gives $what the namespace $namespace", async ({ type, given, namespace }) => {
  const metadata = await metadataOf(type, { metadata: { name: "a", namespace: given } });

  expect(metadata.namespace).toBe(namespace);
});

it("asks the cluster about namespaces of a custom kind", async () => {
  const news = { metadata: { name: "a" } };

  expect((await metadataOf(custom, news, {}, true)).namespace).toBe("default");
  expect((await metadataOf(custom, news, {}, false)).namespace).toBeUndefined();
});

it("learns from a CustomResourceDefinition of the program that its kind has no namespaces", async () => {
  const surroundings = around();
  const request = (type: string, news: Properties) => ({
    urn: "urn",
    name: "it",
    type,
    news,
    olds: {},
    seed: Buffer.from("seed"),
    signal: new AbortController().signal,
  });
  const spec = { group: "example.com", names: { kind: "Thing" }, scope: "Cluster" };
  const definition = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition";

  await checked(request(definition, { metadata: { name: "things" }, spec }), surroundings);
  const { inputs } = await checked(request(custom, { metadata: { name: "it" } }), surroundings);

  expect(inputs.metadata).toEqual({ name: "it" });
});

it("encodes and hides what a Secret contains", async () => {
  const { inputs } = await check("kubernetes:core/v1:Secret", {
    metadata: { name: "a" },
    stringData: { key: "a" },
  });

  expect(inputs.stringData).toBeUndefined();
  expect(inputs.data).toEqual({
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    value: { key: "YQ==" },
  });
});

it("drops what an exported manifest carries along", async () => {
  const metadata = { name: "a", creationTimestamp: null, resourceVersion: "1", labels: null };

  expect(await metadataOf(configMap, { metadata })).toEqual({ name: "a", namespace: "default" });
});

it.each([
  {
    problem: "a patch of nothing",
    type: "kubernetes:core/v1:NodePatch",
    news: {},
    says: "a Patch resource must name the object that it changes in metadata.name",
  },
  {
    problem: "an object without a name",
    type: configMap,
    news: { metadata: { generateName: "a-" } },
    says: "only the official plugin makes up a name: give metadata.name",
  },
  {
    problem: "a list",
    type: "kubernetes:core/v1:ConfigMapList",
    news: { metadata: { name: "a" }, items: [] },
    says: "a ConfigMapList is no object: make a resource of each of its items",
  },
  {
    problem: "a kind whose readiness it does not know",
    type: "kubernetes:batch/v1:Job",
    news: { metadata: { name: "a" } },
    says: "only the official plugin knows when a Job is ready",
  },
  {
    problem: "an annotation that it does not know",
    type: configMap,
    news: { metadata: { name: "a", annotations: { "pulumi.com/waitFor": "condition=Ready" } } },
    says: "only the official plugin knows the annotation pulumi.com/waitFor",
  },
])("refuses $problem", async ({ type, news, says }) => {
  const { failures } = await check(type, news);

  expect(failures?.map(({ reason }) => reason)).toEqual([says]);
});
