import {
  Context,
  created,
  deleted,
  explained,
  previewed,
  relinquished,
  updated,
} from "../../../plugins/kubernetes/apply";
import { DynamicClient, Refused } from "../../../plugins/kubernetes/api";
import { Properties } from "../../../plugins/protocol/values";
import { FakeApi } from "../../support/plugins/fake-api";

let api: FakeApi;
let context: Context;
const signal = new AbortController().signal;
const path = "/api/v1/namespaces/here/configmaps/it";

beforeEach(async () => {
  api = await FakeApi.start();
  context = {
    cluster: await DynamicClient.reached(api.access, api.redirect),
    engine: { progress: () => undefined, warn: () => undefined },
  };
});

afterEach(async () => {
  context.cluster.client.close();
  await api.stop();
});

const subject = (type: string) => ({ urn: `urn:${type}`, type, signal });

const creating = (type: string, inputs: Properties) => ({
  ...subject(type),
  inputs,
  preview: false,
  timeoutSeconds: 1,
});

const configMap = (more: Properties = {}): Properties => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "it", namespace: "here" },
  ...more,
});

const updating = (state: Properties, news: Properties, preview = false) => ({
  ...subject("kubernetes:core/v1:ConfigMap"),
  id: "here/it",
  state,
  olds: {},
  news,
  preview,
  timeoutSeconds: 1,
});

const applied = () => api.seen.filter(({ method }) => method === "PATCH");

it("takes over by force an object that is there, each time as another field manager", async () => {
  api.objects.set(path, configMap());
  const again = () =>
    created(context, creating("kubernetes:core/v1:ConfigMap", configMap({ data: { a: "1" } })));

  const made = [await again(), await again()];

  const managers = made.map(({ state }) => state.__fieldManager);
  expect(new Set(managers).size).toBe(2);
  expect(managers[0]).toMatch(/^pulumi-kubernetes-[0-9a-f]{8}$/);
  expect(applied().map(({ query }) => query)).toEqual(
    managers.map((fieldManager) => ({ fieldManager, force: "true" })),
  );
});

it.each(["pulumi-kubernetes", "kubectl", "kubectl-edit", "kubectl-client-side-apply"])(
  "owns on an update what %s has set",
  async (manager) => {
    const others = [
      { manager: "kubelet", operation: "Update" },
      { manager, operation: "Update", subresource: "scale" },
    ];
    const set = { manager, operation: "Update", fieldsV1: { "f:data": { "f:a": {} } } };
    const appliedBefore = {
      manager: "pulumi-kubernetes-mine",
      operation: "Apply",
      fieldsV1: { "f:data": { "f:b": {} } },
    };
    const managedFields = [set, ...others, appliedBefore];
    const metadata = { name: "it", namespace: "here", managedFields };
    api.objects.set(path, configMap({ metadata: { ...metadata, resourceVersion: "7" } }));
    const state = configMap({ __fieldManager: "pulumi-kubernetes-mine" });

    await updated(context, updating(state, configMap({ data: { a: "2" } })));

    const own = { ...appliedBefore, fieldsV1: { "f:data": { "f:b": {}, "f:a": {} } } };
    expect(applied()[0]?.body).toEqual([
      { op: "replace", path: "/metadata/managedFields", value: [...others, own] },
      { op: "replace", path: "/metadata/resourceVersion", value: "7" },
    ]);
  },
);

const node = (annotations: Record<string, string> = {}): Properties => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "it", labels: { a: "1" }, annotations },
});

it("patches what is there, and sends the annotations of the plugin along", async () => {
  api.objects.set("/api/v1/nodes/it", node());
  const inputs = node({ "pulumi.com/patchForce": "true" });

  const { id } = await created(context, creating("kubernetes:core/v1:NodePatch", inputs));

  expect(id).toBe("it");
  const [patch] = applied();
  expect(patch?.query.force).toBe("true");
  expect(patch?.body).toEqual(inputs);
});

it("creates with a Patch what does not exist", async () => {
  await created(context, creating("kubernetes:core/v1:NodePatch", node()));

  expect(api.objects.has("/api/v1/nodes/it")).toBe(true);
});

it("relinquishes a Patch by applying nothing under its field manager, without a look at the object", async () => {
  await relinquished(context.cluster, node(), "manager");

  expect(api.seen.filter(({ path: asked }) => asked === "/api/v1/nodes/it")).toEqual([
    expect.objectContaining({
      method: "PATCH",
      query: { fieldManager: "manager", force: "false" },
      body: { apiVersion: "v1", kind: "Node", metadata: { name: "it" } },
    }),
  ]);
});

it("replaces a CustomResourceDefinition as a whole", async () => {
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "it", resourceVersion: "7" },
  };
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/it";
  api.objects.set(definitions, definition);
  const news = { ...definition, metadata: { name: "it" }, spec: { group: "b" } };

  await updated(context, updating({ ...definition, __fieldManager: "mine" }, news));

  expect(api.seen.filter(({ method }) => method !== "GET")).toEqual([
    expect.objectContaining({
      method: "PUT",
      path: definitions,
      query: { fieldManager: "mine" },
      body: { ...news, metadata: definition.metadata },
    }),
  ]);
});

it("keeps the new inputs of an update that the server refuses, and the object as it is", async () => {
  api.objects.set(path, configMap({ data: { a: "1" } }));
  api.answer = ({ method }) =>
    method === "PATCH" ? [422, { reason: "Invalid", message: "no" }] : undefined;
  const news = configMap({ data: { a: "2" } });

  await expect(updated(context, updating(configMap(), news))).rejects.toMatchObject({
    id: "here/it",
    state: { data: { a: "1" } },
    inputs: news,
    reasons: ["ConfigMap here/it could not be updated: no (Invalid)"],
  });
});

const secretHere = (name = "it"): Properties => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace: "here" },
});

it.each([
  { what: "forbids the dry run", code: 403, reason: "Forbidden" },
  { what: "lacks the namespace", code: 404, reason: "NotFound" },
])("previews the inputs where the server $what", async ({ code, reason }) => {
  api.answer = ({ method }) => (method === "PATCH" ? [code, { reason }] : undefined);

  const state = await previewed(context, creating("kubernetes:core/v1:Secret", secretHere()));

  expect(state).toEqual(secretHere());
});

it("fails a preview with what the server refuses", async () => {
  api.answer = ({ method }) =>
    method === "PATCH" ? [422, { reason: "Invalid", message: "no" }] : undefined;

  const preview = previewed(context, creating("kubernetes:core/v1:Secret", secretHere()));

  await expect(preview).rejects.toThrow("Secret here/it could not be created: no (Invalid)");
});

it("previews the replacement of an object with fixed fields under another name", async () => {
  api.answer = ({ method, path: asked }) =>
    method === "PATCH" && asked.endsWith("/it")
      ? [422, { reason: "Invalid", message: "roleRef: field is immutable" }]
      : undefined;

  await previewed(context, creating("kubernetes:core/v1:Secret", secretHere()));

  const [refused, accepted] = applied();
  expect(refused?.query).toMatchObject({ dryRun: "All", force: "true" });
  expect(accepted?.path).toMatch(/\/secrets\/it-[0-9a-f]{6}$/);
});

it("says how to go on when an object to be updated is gone", async () => {
  await expect(updated(context, updating(configMap(), configMap()))).rejects.toThrow(
    'ConfigMap here/it does not exist in the cluster any more; run "pulumi up --refresh" to create it again',
  );
});

it("updates by force under the field manager of the state, and changes nothing in a preview", async () => {
  api.objects.set(path, configMap());
  const state = configMap({ __fieldManager: "mine" });
  const update = (preview: boolean) =>
    updated(context, updating(state, configMap({ data: { a: "2" } }), preview));

  await update(false);
  await update(true);
  await previewed(context, creating("kubernetes:core/v1:Secret", secretHere()));

  expect(applied().map(({ query }) => query)).toMatchObject([
    { fieldManager: "mine", force: "true" },
    { force: "true", dryRun: "All" },
    { dryRun: "All" },
  ]);
});

it("waits for a kind whose definition is not served yet", async () => {
  const path = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/it";
  let asked = 0;
  api.answer = () => (asked++ === 0 ? [404, { message: "could not find it" }] : undefined);
  const type = "kubernetes:snapshot.storage.k8s.io/v1:VolumeSnapshotClass";
  const inputs = {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshotClass",
    metadata: { name: "it" },
  };

  const { id } = await created(context, creating(type, inputs));

  expect(id).toBe("it");
  expect(api.objects.has(path)).toBe(true);
});

const withMetadata = (more: Properties): Properties =>
  configMap({ metadata: { name: "it", namespace: "here", ...more } });
const deleting = {
  signal,
  timeoutSeconds: 0.05,
  progress: () => undefined,
};

it("deletes after what the object owns, and is content when it is gone", async () => {
  api.objects.set(path, configMap());

  await deleted(context.cluster, configMap(), configMap(), deleting);
  await deleted(context.cluster, configMap(), configMap(), deleting);

  expect(api.seen.find(({ method }) => method === "DELETE")?.query).toEqual({
    propagationPolicy: "Foreground",
  });
  expect(api.objects.size).toBe(0);
});

it("takes one that was made anew under the same name for another", async () => {
  const [before, anew] = [withMetadata({ uid: "1" }), withMetadata({ uid: "2" })];
  api.objects.set(path, before);
  api.answer = ({ method }) => {
    if (method !== "DELETE") return undefined;
    let asked = 0;
    api.answer = () => [200, asked++ === 0 ? before : anew];
    return [200, before];
  };

  await deleted(context.cluster, configMap(), configMap(), { ...deleting, timeoutSeconds: 10 });
});

it("reports what holds back an object that is not deleted", async () => {
  const held = withMetadata({ finalizers: ["a/b"] });
  api.objects.set(path, held);
  api.answer = ({ method }) => (method === "DELETE" ? [200, held] : undefined);

  await expect(deleted(context.cluster, held, held, deleting)).rejects.toThrow(
    /^ConfigMap here\/it is being deleted, but not gone: it is still there; finalizers a\/b after /,
  );
});

const object = (kind: string, data = {}) => ({
  apiVersion: "v1",
  kind,
  metadata: { name: "it", namespace: "here" },
  data,
});

const secretKey = Buffer.from("hush-hush").toString("base64");
const causes = [{ reason: "FieldValueRequired", field: "spec.selector" }];
it.each<
  [what: string, of: Properties, refusal: Refused, verb: "created" | "relinquished", says: RegExp]
>([
  [
    "all but what the server quotes of a Secret",
    object("Secret", { key: secretKey }),
    new Refused(400, {
      ...{
        reason: "BadRequest",
        message: `illegal hush-hush or ${secretKey}, found in ...|"hush"|...`,
      },
    }),
    "created",
    /^Secret here\/it could not be created: illegal \[secret\] or \[secret\], found in +\(BadR/,
  ],
  [
    "what the server says of anything else",
    object("ConfigMap"),
    new Refused(422, { reason: "Invalid", message: 'a: Invalid value: "b"' }),
    "created",
    /^ConfigMap here\/it could not be created: a: Invalid value: "b" \(Invalid\)$/,
  ],
  [
    "how to let go of a Patch whose field the object must have",
    object("ConfigMap"),
    new Refused(422, { reason: "Invalid", details: { causes } }),
    "relinquished",
    /^this Patch of ConfigMap here\/it manages a field that the object must have: spec\.selector\. Set .* retainOnDelete/,
  ],
])("says of a refusal %s", (_, of, refusal, verb, says) => {
  expect((explained(refusal, of, verb) as Error).message).toMatch(says);
});
