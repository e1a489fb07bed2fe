import { checked } from "../../../../plugins/kubernetes/operations/check";
import { Properties } from "../../../../plugins/protocol/values";

const check = (type: string, news: Properties) =>
  checked({
    ...{ urn: "urn", type, news, olds: {} },
    signal: new AbortController().signal,
  });

const metadataOf = (type: string, news: Properties) =>
  check(type, news).inputs.metadata as Properties;

const configMap = "kubernetes:core/v1:ConfigMap";

it("takes kind and version from the type where the inputs leave them out", () => {
  const { inputs } = check("kubernetes:apps/v1:DaemonSetPatch", { metadata: { name: "a" } });

  expect(inputs).toMatchObject({ apiVersion: "apps/v1", kind: "DaemonSet" });
});

it.each([
  { what: "an object that names none", type: configMap, given: undefined, namespace: "default" },
  { what: "one that names its own", type: configMap, given: "mine", namespace: "mine" },
  {
    what: "one of a kind without namespaces",
    type: "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
    given: "mine",
    namespace: undefined,
  },
])("gives $what the namespace $namespace", ({ type, given, namespace }) => {
  const metadata = metadataOf(type, { metadata: { name: "a", namespace: given } });

  expect(metadata.namespace).toBe(namespace);
});

it("encodes and hides what a Secret contains", () => {
  const { inputs } = check("kubernetes:core/v1:Secret", {
    metadata: { name: "a" },
    stringData: { key: "a" },
  });

  expect(inputs.stringData).toBeUndefined();
  expect(inputs.data).toEqual({
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    value: { key: "YQ==" },
  });
});

it("leaves out what is null", () => {
  const metadata = { name: "a", creationTimestamp: null, labels: null };

  expect(metadataOf(configMap, { metadata })).toEqual({ name: "a", namespace: "default" });
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
    problem: "a Service that it would have to wait for",
    type: "kubernetes:core/v1:Service",
    news: { metadata: { name: "a" } },
    says: "only the official plugin knows when a Service is ready",
  },
  {
    problem: "an annotation that it does not know",
    type: configMap,
    news: { metadata: { name: "a", annotations: { "pulumi.com/waitFor": "condition=Ready" } } },
    says: "only the official plugin knows the annotation pulumi.com/waitFor",
  },
])("refuses $problem", ({ type, news, says }) => {
  const { failures } = check(type, news);

  expect(failures?.map(({ reason }) => reason)).toEqual([says]);
});

it.each(["kubernetes:batch/v1:Job", "kubernetes:core/v1:ConfigMapList"])("refuses a %s", (type) => {
  expect(() => check(type, { metadata: { name: "a" }, items: [] })).toThrow(
    /^only the official plugin knows the kind \w+ of \S+: add it to .*kinds\.ts$/,
  );
});
