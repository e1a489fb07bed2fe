import { Properties } from "../../../plugins/protocol/values";
import {
  checkConfig,
  checked,
  diffConfig,
  difference,
  mutableKinds,
  pruned,
} from "../../../plugins/kubernetes/check";

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
  ...["core/v1:Service", "apps/v1:Deployment", "apps/v1:DaemonSet", "apps/v1:DaemonSetPatch"].map(
    (type) => ({
      problem: `a type that it would have to wait for, ${type}`,
      type: `kubernetes:${type}`,
      news: { metadata: { name: "a" } },
      says: expect.stringMatching(
        /^only the official plugin knows when a (Service|Deployment|DaemonSet) is ready: .*skipAwait/,
      ),
    }),
  ),
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
    /^only the official plugin knows the kind \w+ of \S+: add it to .*objects\.ts$/,
  );
});

const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

const object = (apiVersion: string, kind: string, rest: Properties = {}): Properties => ({
  apiVersion,
  kind,
  metadata: { name: "it", namespace: "here" },
  ...rest,
});

const compare = (
  olds: Properties,
  news: Properties,
  more: object = {},
  mutable: readonly string[] = [],
) =>
  difference(
    {
      ...{ urn: "urn", id: "here/it", signal: new AbortController().signal },
      ...{ type: "kubernetes:v1:It", olds, news, state: olds, ...more },
    },
    mutable,
  );

const replacing = (
  olds: Properties,
  news: Properties,
  more?: object,
  mutable?: readonly string[],
) =>
  compare(olds, news, more, mutable)
    .changes.filter(({ replaces }) => replaces)
    .map(({ path }) => path);

const workload = (kind: string, app: string, image = "a") =>
  object("apps/v1", kind, {
    spec: { selector: { matchLabels: { app } }, template: { containers: [{ image }] } },
  });

const storage = "storage.k8s.io/v1";
const rbac = "rbac.authorization.k8s.io/v1";
const there = { metadata: { name: "it", namespace: "there" } };

it.each<[apiVersion: string, kind: string, before: Properties, after: Properties, path: string]>([
  [storage, "StorageClass", { provisioner: "a" }, { provisioner: "b" }, "provisioner"],
  [storage, "StorageClass", { parameters: { a: "1" } }, { parameters: { a: "2" } }, "parameters.a"],
  [rbac, "RoleBinding", { roleRef: { name: "a" } }, { roleRef: { name: "b" } }, "roleRef.name"],
  [rbac, "ClusterRoleBinding", { roleRef: { a: "1" } }, { roleRef: { a: "2" } }, "roleRef.a"],
  ["v1", "ConfigMap", { binaryData: { a: "YQ==" } }, { binaryData: { a: "Yg==" } }, "binaryData.a"],
  ["v1", "ConfigMap", { data: { "a.b": "1" } }, { data: { "a.b": "2" } }, 'data["a.b"]'],
  ["v1", "Secret", { data: { key: "YQ==" } }, { data: { key: "Yg==" } }, "data.key"],
  ["v1", "Secret", { type: "Opaque" }, { type: "kubernetes.io/tls" }, "type"],
  ["v1", "ServiceAccount", {}, there, "metadata.namespace"],
])(
  "replaces an object of %s, a %s with %j, by one with %j",
  (apiVersion, kind, olds, news, path) => {
    expect(replacing(object(apiVersion, kind, olds), object(apiVersion, kind, news))).toEqual([
      path,
    ]);
  },
);

const both = { enableConfigMapMutable: "true", enableSecretMutable: "true" };
const [one, other] = [{ data: { a: "MQ==" } }, { data: { a: "Mg==" } }];
const fixed = { immutable: true };

it.each<
  [kind: string, before: Properties, after: Properties, config: Properties, replaced: string[]]
>([
  ["ConfigMap", one, other, both, []],
  ["ConfigMap", { binaryData: one.data }, { binaryData: other.data }, both, []],
  ["ConfigMap", { ...one, ...fixed }, { ...other, ...fixed }, both, ["data.a"]],
  ["ConfigMap", one, { ...other, ...fixed }, both, ["data.a"]],
  ["ConfigMap", one, other, { enableSecretMutable: "true" }, ["data.a"]],
  ["ConfigMap", one, other, { ...both, enableConfigMapMutable: "false" }, ["data.a"]],
  ["Secret", one, other, both, []],
  ["Secret", { ...one, ...fixed }, { ...other, ...fixed }, both, ["data.a"]],
  ["Secret", { type: "Opaque" }, { type: "kubernetes.io/tls" }, both, ["type"]],
  ["Secret", one, other, { enableConfigMapMutable: "true" }, ["data.a"]],
  ["ConfigMap", one, { ...other, ...there }, both, ["metadata.namespace"]],
])(
  "has a %s with %j become one with %j, by a provider with %j, and replaces it for %j",
  (kind, before, after, config, replaced) => {
    const [olds, news] = [object("v1", kind, before), object("v1", kind, after)];

    expect(replacing(olds, news, {}, mutableKinds(config))).toEqual(replaced);
  },
);

it.each(["Deployment", "DaemonSet"])("replaces a %s whose selector changes alone", (kind) => {
  const before = workload(kind, "a");

  expect(replacing(before, workload(kind, "b"))).toEqual(["spec.selector.matchLabels.app"]);
  expect(replacing(before, workload(kind, "a", "b"))).toEqual([]);
  expect(compare(before, workload(kind, "a", "b")).changes).toHaveLength(1);
});

it("changes labels in place", () => {
  const labelled = object("v1", "ConfigMap", {
    metadata: { name: "it", namespace: "here", labels: {} },
  });

  expect(replacing(object("v1", "ConfigMap"), labelled)).toEqual([]);
  expect(compare(object("v1", "ConfigMap"), labelled).changes).toHaveLength(1);
});

it.each([
  {
    what: "somebody's change that a refresh has seen",
    live: { replicas: 1 },
    changes: ["spec.replicas"],
  },
  { what: "what the server filled in", live: { replicas: 2, paused: false }, changes: [] },
])("compares with the object as it was seen last: $what", ({ live, changes }) => {
  const inputs = object("apps/v1", "Deployment", { spec: { replicas: 2 } });
  const state = object("apps/v1", "Deployment", { spec: live });

  expect(compare(inputs, inputs, { state }).changes.map(({ path }) => path)).toEqual(changes);
});

it("patches in place what would replace an object of its own", () => {
  const olds = workload("DaemonSet", "a");

  expect(
    replacing(olds, workload("DaemonSet", "b"), { type: "kubernetes:apps/v1:DaemonSetPatch" }),
  ).toEqual([]);
});

it("counts what is not known yet as changed", () => {
  const news = object("v1", "ConfigMap", { data: unknown });

  expect(compare(object("v1", "ConfigMap", { data: { a: "1" } }), news).changes).toEqual([
    { path: "data", kind: "update", replaces: true },
  ]);
});

it("deletes first only where the new object would have the name of the old one", () => {
  const named = (name: string, value: string) =>
    object("v1", "ConfigMap", { metadata: { name, namespace: "here" }, data: { a: value } });

  expect(compare(named("x", "1"), named("x", "2")).deleteBeforeReplace).toBe(true);
  expect(compare(named("x", "1"), named("y", "2")).deleteBeforeReplace).toBe(false);
});

const container = (name: string, more = {}) => ({ name, image: name, ...more });
const [main, side] = [container("main"), container("side")];
const filledIn = { containers: [container("main", { imagePullPolicy: "Always" })], status: "x" };
const empty = { a: {}, b: [], c: "", d: false, e: 0 };
const own = { containers: [main] };

it.each<[what: string, inputs: Properties, live: Properties, seen: Properties]>([
  ["nothing that the server fills in", own, filledIn, own],
  ["what is empty, which the server leaves out", empty, {}, empty],
  ["a quantity as the server writes it", { cpu: "0.5" }, { cpu: "500m" }, { cpu: "500m" }],
  ["no field that somebody added", { a: "1" }, { a: "1", b: "2" }, { a: "1" }],
  [
    "that somebody removed a value",
    { x: { a: "1", b: "2" } },
    { x: { a: "1" } },
    { x: { a: "1" } },
  ],
  ["no container behind its own", own, { containers: [main, side] }, own],
  ["one before its own in its place", own, { containers: [side, main] }, { containers: [side] }],
  ["a changed argument", { args: ["a", "b"] }, { args: ["a", "c"] }, { args: ["a", "c"] }],
  ["that an argument went", { args: ["a", "b"] }, { args: ["b"] }, { args: ["b"] }],
])("sees of an object %s", (_, inputs, live, seen) => {
  expect(pruned(live, inputs)).toEqual(seen);
});

it("replaces the provider of another cluster, and not one whose kubeconfig changes", () => {
  const { changes } = diffConfig(
    { kubeconfig: "one", clusterIdentifier: "a" },
    { kubeconfig: "two", clusterIdentifier: "b" },
  );

  expect(changes).toEqual([
    { path: "kubeconfig", kind: "update", replaces: false },
    { path: "clusterIdentifier", kind: "update", replaces: true },
  ]);
});

it.each([
  ["renderYamlToDirectory", "out"],
  ["enableServerSideApply", "false"],
  ["namespace", "here"],
  ["skipUpdateUnreachable", "true"],
  ["upsertExistingObjects", "false"],
  ["enablePatchForce", undefined],
  ["deleteUnreachable", "true"],
  ["clusterIdentifier", undefined],
  ["clusterIdentifier", "04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
])("refuses what only the official plugin can do: %s: %s", (property, value) => {
  const { failures } = checkConfig({
    ...{ upsertExistingObjects: "true", enablePatchForce: "true", enableServerSideApply: "true" },
    ...{ skipUpdateUnreachable: "false", clusterIdentifier: "a", [property]: value },
  });

  expect(failures?.map((failure) => failure.property)).toEqual([property]);
});
