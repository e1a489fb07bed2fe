import { difference, pruned } from "../../../../plugins/kubernetes/operations/diff";
import { Properties } from "../../../../plugins/protocol/values";

const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

const object = (apiVersion: string, kind: string, rest: Properties = {}): Properties => ({
  apiVersion,
  kind,
  metadata: { name: "it", namespace: "here" },
  ...rest,
});

const compare = (olds: Properties, news: Properties, more: object = {}) =>
  difference({ olds, news, state: olds, isPatch: false, ...more });

const replacing = (olds: Properties, news: Properties, more?: object) =>
  compare(olds, news, more)
    .changes.filter(({ replaces }) => replaces)
    .map(({ path }) => path);

const workload = (kind: string, app: string, image = "a") =>
  object("apps/v1", kind, {
    spec: { selector: { matchLabels: { app } }, template: { containers: [{ image }] } },
  });

it.each([
  {
    what: "a Deployment's selector",
    olds: workload("Deployment", "a"),
    news: workload("Deployment", "b"),
    replaces: ["spec.selector.matchLabels.app"],
  },
  {
    what: "a DaemonSet's selector",
    olds: workload("DaemonSet", "a"),
    news: workload("DaemonSet", "b"),
    replaces: ["spec.selector.matchLabels.app"],
  },
  {
    what: "a Deployment's image",
    olds: workload("Deployment", "a", "a"),
    news: workload("Deployment", "a", "b"),
    replaces: [],
  },
  {
    what: "a StorageClass's provisioner",
    olds: object("storage.k8s.io/v1", "StorageClass", { provisioner: "a" }),
    news: object("storage.k8s.io/v1", "StorageClass", { provisioner: "b" }),
    replaces: ["provisioner"],
  },
  {
    what: "a binding's role",
    olds: object("rbac.authorization.k8s.io/v1", "RoleBinding", { roleRef: { name: "a" } }),
    news: object("rbac.authorization.k8s.io/v1", "RoleBinding", { roleRef: { name: "b" } }),
    replaces: ["roleRef.name"],
  },
  {
    what: "a StorageClass's parameters",
    olds: object("storage.k8s.io/v1", "StorageClass", { parameters: { skuName: "a" } }),
    news: object("storage.k8s.io/v1", "StorageClass", { parameters: { skuName: "b" } }),
    replaces: ["parameters.skuName"],
  },
  {
    what: "a cluster binding's role",
    olds: object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", { roleRef: { name: "a" } }),
    news: object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", { roleRef: { name: "b" } }),
    replaces: ["roleRef.name"],
  },
  {
    what: "a ConfigMap's binary data",
    olds: object("v1", "ConfigMap", { binaryData: { a: "YQ==" } }),
    news: object("v1", "ConfigMap", { binaryData: { a: "Yg==" } }),
    replaces: ["binaryData.a"],
  },
  {
    what: "a Secret's type",
    olds: object("v1", "Secret", { type: "Opaque" }),
    news: object("v1", "Secret", { type: "kubernetes.io/tls" }),
    replaces: ["type"],
  },
  {
    what: "a ConfigMap's data",
    olds: object("v1", "ConfigMap", { data: { "a.b": "1" } }),
    news: object("v1", "ConfigMap", { data: { "a.b": "2" } }),
    replaces: ['data["a.b"]'],
  },
  {
    what: "a Secret's data",
    olds: object("v1", "Secret", { data: { key: "YQ==" } }),
    news: object("v1", "Secret", { data: { key: "Yg==" } }),
    replaces: ["data.key"],
  },
  {
    what: "a label",
    olds: object("v1", "ConfigMap"),
    news: object("v1", "ConfigMap", { metadata: { name: "it", namespace: "here", labels: {} } }),
    replaces: [],
  },
  {
    what: "a namespace",
    olds: object("v1", "ServiceAccount"),
    news: object("v1", "ServiceAccount", { metadata: { name: "it", namespace: "there" } }),
    replaces: ["metadata.namespace"],
  },
])("for $what replaces $replaces", ({ olds, news, replaces }) => {
  expect(replacing(olds, news)).toEqual(replaces);
  expect(compare(olds, news).changes).not.toEqual([]);
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

it("takes stringData and data for two ways to write one thing", () => {
  const data = object("v1", "Secret", { data: { key: "YQ==" } });
  const stringData = object("v1", "Secret", { stringData: { key: "a" } });

  expect(compare(data, stringData).changes).toEqual([]);
});

it("patches in place what would replace an object of its own", () => {
  const olds = workload("DaemonSet", "a");

  expect(replacing(olds, workload("DaemonSet", "b"), { isPatch: true })).toEqual([]);
});

it("counts what is not known yet as changed", () => {
  const news = object("v1", "ConfigMap", { data: unknown });

  expect(compare(object("v1", "ConfigMap", { data: { a: "1" } }), news).changes).toEqual([
    { path: "data", kind: "update", replaces: true },
  ]);
});

it("does not miss a namespace that the inputs left to the provider", () => {
  const nameless = object("example.com/v1", "Thing", { metadata: { name: "it" } });
  const state = object("example.com/v1", "Thing");

  expect(compare(nameless, state, { state }).changes).toEqual([]);
  expect(compare(state, nameless, { state }).changes).toEqual([]);
});

it("deletes first only where the new object would have the name of the old one", () => {
  const named = (name: string, value: string) =>
    object("v1", "ConfigMap", { metadata: { name, namespace: "here" }, data: { a: value } });

  expect(compare(named("x", "1"), named("x", "2")).deleteBeforeReplace).toBe(true);
  expect(compare(named("x", "1"), named("y", "2")).deleteBeforeReplace).toBe(false);
});

const container = (name: string, more = {}) => ({ name, image: name, ...more });

it.each([
  {
    what: "what the server fills in",
    inputs: { containers: [container("main")] },
    live: { containers: [container("main", { imagePullPolicy: "Always" })], status: "x" },
    seen: { containers: [container("main")] },
  },
  {
    what: "what is empty and left out by the server",
    inputs: { a: {}, b: [], c: "", d: false, e: 0, f: "1" },
    live: { f: "1" },
    seen: { a: {}, b: [], c: "", d: false, e: 0, f: "1" },
  },
  {
    what: "a quantity as the server writes it",
    inputs: { cpu: "0.5" },
    live: { cpu: "500m" },
    seen: { cpu: "500m" },
  },
  {
    what: "a field that somebody added",
    inputs: { a: "1" },
    live: { a: "1", b: "2" },
    seen: { a: "1" },
  },
  {
    what: "a value that somebody changed",
    inputs: { a: "1" },
    live: { a: "2" },
    seen: { a: "2" },
  },
  {
    what: "a value that somebody removed",
    inputs: { labels: { a: "1", b: "2" } },
    live: { labels: { a: "1" } },
    seen: { labels: { a: "1" } },
  },
  {
    what: "a container that was added behind its own",
    inputs: { containers: [container("main")] },
    live: { containers: [container("main"), container("side")] },
    seen: { containers: [container("main")] },
  },
  {
    what: "a container that was put before its own",
    inputs: { containers: [container("main")] },
    live: { containers: [container("side"), container("main")] },
    seen: { containers: [container("side")] },
  },
  {
    what: "arguments of which one was changed",
    inputs: { args: ["a", "b"] },
    live: { args: ["a", "c"] },
    seen: { args: ["a", "c"] },
  },
  {
    what: "arguments of which one was removed",
    inputs: { args: ["a", "b"] },
    live: { args: ["b"] },
    seen: { args: ["b"] },
  },
  {
    what: "arguments to which one was added",
    inputs: { args: ["a", "b"] },
    live: { args: ["a", "b", "c"] },
    seen: { args: ["a", "b"] },
  },
])("sees $what", ({ inputs, live, seen }) => {
  expect(pruned(live, inputs)).toEqual(seen);
});
