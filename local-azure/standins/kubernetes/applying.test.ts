import { Connection } from "../protocol/connections";
import { Properties } from "../protocol/values";
import { Context, created, rehearsed, updated } from "./applying";
import { Cluster } from "./cluster";
import { settingsFrom } from "./config";
import { FakeApi } from "./fake-api";

let api: FakeApi;
let context: Context;
const signal = new AbortController().signal;
const path = "/api/v1/namespaces/here/configmaps/it";

beforeEach(async () => {
  api = await FakeApi.start();
  const connection = { progress: () => undefined } as unknown as Connection;
  context = {
    cluster: await Cluster.reached(api.access, "here", api.redirect),
    settings: settingsFrom({}, {}),
    connection,
  };
});

afterEach(async () => {
  context.cluster.client.close();
  await api.stop();
});

const subject = (type: string) => ({ urn: `urn:${type}`, type, name: "it", signal });

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

const upserting = () => ({
  ...context,
  settings: settingsFrom({ upsertExistingObjects: "true" }, {}),
});

it("makes a new object by POST, and remembers a field manager of its own for what comes after", async () => {
  const inputs = configMap({ data: { a: "1" } });

  const { id, state } = await created(context, creating("kubernetes:core/v1:ConfigMap", inputs));

  expect(id).toBe("here/it");
  expect(api.seen.filter(({ method }) => method === "POST")).toEqual([
    expect.objectContaining({
      path: "/api/v1/namespaces/here/configmaps",
      body: inputs,
      query: { fieldManager: "pulumi-kubernetes" },
    }),
  ]);
  expect(applied()).toEqual([]);
  expect(state.__fieldManager).toMatch(/^pulumi-kubernetes-[0-9a-f]{8}$/);
});

it("refuses to take over an object that is there", async () => {
  api.objects.set(path, configMap());

  const creation = created(context, creating("kubernetes:core/v1:ConfigMap", configMap()));

  await expect(creation).rejects.toThrow(/^ConfigMap here\/it exists already/);
  expect(applied()).toEqual([]);
});

it("takes an object over where the provider says so, each time as another field manager", async () => {
  api.objects.set(path, configMap());
  const again = () =>
    created(upserting(), creating("kubernetes:core/v1:ConfigMap", configMap({ data: { a: "1" } })));

  const made = [await again(), await again()];

  const managers = made.map(({ state }) => state.__fieldManager);
  expect(new Set(managers).size).toBe(2);
  expect(applied().map(({ query }) => query)).toEqual(
    managers.map((fieldManager) => ({ fieldManager, force: "false" })),
  );
});

it("takes fields over by force where the provider says so", async () => {
  const settings = settingsFrom({ upsertExistingObjects: "true", enablePatchForce: "true" }, {});

  await created({ ...context, settings }, creating("kubernetes:core/v1:ConfigMap", configMap()));

  expect(applied()[0]?.query.force).toBe("true");
});

it("owns on the first update what it set when it made the object", async () => {
  const other = { manager: "kubelet", operation: "Update", subresource: "status" };
  const made = { manager: "pulumi-kubernetes", operation: "Update", fieldsV1: {} };
  const metadata = { name: "it", namespace: "here", managedFields: [made, other] };
  api.objects.set(path, configMap({ metadata: { ...metadata, resourceVersion: "7" } }));
  const state = configMap({ __fieldManager: "pulumi-kubernetes-mine" });

  await updated(context, updating(state, configMap({ data: { a: "2" } })));

  const own = { ...made, manager: "pulumi-kubernetes-mine", operation: "Apply" };
  expect(applied()[0]?.body).toEqual([
    { op: "replace", path: "/metadata/managedFields", value: [own, other] },
    { op: "replace", path: "/metadata/resourceVersion", value: "7" },
  ]);
});

const node = (annotations: Record<string, string> = {}): Properties => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "it", labels: { a: "1" }, annotations },
});

it("patches what is there, by force where the patch asks for it", async () => {
  api.objects.set("/api/v1/nodes/it", node());
  const inputs = node({ "pulumi.com/patchForce": "true" });

  const { id } = await created(context, creating("kubernetes:core/v1:NodePatch", inputs));

  expect(id).toBe("it");
  const [patch] = applied();
  expect(patch?.query.force).toBe("true");
  expect(patch?.body?.metadata).toEqual({ name: "it", labels: { a: "1" } });
});

it("patches nothing that is not there", async () => {
  const creation = created(context, creating("kubernetes:core/v1:NodePatch", node()));

  await expect(creation).rejects.toThrow(/^Node it does not exist, and a Patch resource/);
});

it("updates under the field manager of the state", async () => {
  api.objects.set(path, configMap());
  const state = configMap({ __fieldManager: "pulumi-kubernetes-older" });

  await updated(context, updating(state, configMap({ data: { a: "2" } })));

  expect(applied()[0]?.query.fieldManager).toBe("pulumi-kubernetes-older");
});

it("says how to go on when an object to be updated is gone", async () => {
  await expect(updated(context, updating(configMap(), configMap()))).rejects.toThrow(
    'ConfigMap here/it is gone from the cluster; run "pulumi up --refresh" to make it again',
  );
});

it("changes nothing in a preview", async () => {
  api.objects.set(path, configMap());

  await updated(context, updating(configMap(), configMap({ data: { a: "2" } }), true));
  await rehearsed(
    context,
    creating("kubernetes:core/v1:Secret", { ...configMap(), kind: "Secret" }),
  );

  const writes = api.seen.filter(({ method }) => method !== "GET");
  expect(writes.map(({ query }) => query.dryRun)).toEqual(["All", "All"]);
});

it("keeps an object that does not get ready, with the reasons", async () => {
  const pod = { ...configMap({ status: { phase: "Pending" } }), kind: "Pod" };
  api.answer = ({ method, path: asked }) =>
    method === "POST" ? (api.objects.set(`${asked}/it`, pod), [201, pod]) : undefined;

  const creation = created(context, {
    ...creating("kubernetes:core/v1:Pod", { ...configMap(), kind: "Pod" }),
    timeoutSeconds: 0.05,
  });

  await expect(creation).rejects.toMatchObject({
    id: "here/it",
    state: { kind: "Pod", status: { phase: "Pending" } },
    reasons: [
      "Pod here/it is there, but not ready: its condition Ready is not true after 0.05 seconds",
    ],
  });
});

it("learns a kind that was defined after it had asked", async () => {
  const thing = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "it" } };
  let defined = false;
  const resources = [{ name: "things", kind: "Thing", namespaced: false }];
  api.answer = ({ path: asked }) => {
    if (asked !== "/apis/example.com/v1") {
      return undefined;
    }
    const known = defined;
    defined = true;
    return known ? [200, { resources }] : [404, { message: "no such group" }];
  };

  const { id } = await created(context, creating("kubernetes:example.com/v1:Thing", thing));

  expect(id).toBe("it");
  expect(api.objects.has("/apis/example.com/v1/things/it")).toBe(true);
});
