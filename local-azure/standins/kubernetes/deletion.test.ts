import { Properties } from "../protocol/values";
import { Cluster } from "./cluster";
import { deleted, relinquished } from "./deletion";
import { FakeApi } from "./fake-api";

let api: FakeApi;
let cluster: Cluster;
const path = "/api/v1/namespaces/here/configmaps/it";

beforeEach(async () => {
  api = await FakeApi.start();
  cluster = await Cluster.reached(api.access, "here", api.redirect);
});

afterEach(async () => {
  cluster.client.close();
  await api.stop();
});

const configMap = (metadata: Properties = {}): Properties => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "it", namespace: "here", ...metadata },
});

const deleting = {
  signal: new AbortController().signal,
  timeoutSeconds: 0.05,
  progress: () => undefined,
};

it.each([
  { annotations: {}, policy: "Foreground" },
  { annotations: { "pulumi.com/deletionPropagationPolicy": "background" }, policy: "Background" },
])("deletes in the $policy and is content when it is gone", async ({ annotations, policy }) => {
  const inputs = configMap({ annotations });
  api.objects.set(path, inputs);

  await deleted(cluster, inputs, inputs, deleting);
  await deleted(cluster, inputs, inputs, deleting);

  expect(api.seen.find(({ method }) => method === "DELETE")?.query).toEqual({
    propagationPolicy: policy,
  });
  expect(api.objects.size).toBe(0);
});

it("tells what holds back an object that does not go", async () => {
  const held = configMap({ finalizers: ["a/b"] });
  api.objects.set(path, held);
  api.answer = ({ method }) => (method === "DELETE" ? [200, held] : undefined);

  await expect(deleted(cluster, held, held, deleting)).rejects.toThrow(
    /^ConfigMap here\/it is being deleted, but not gone: it is still there; finalizers a\/b after /,
  );
});

const node = { apiVersion: "v1", kind: "Node", metadata: { name: "it", labels: { a: "1" } } };

it("gives up a patch by applying nothing under its field manager", async () => {
  api.objects.set("/api/v1/nodes/it", node);

  await relinquished(cluster, node, "manager");

  expect(api.seen.filter(({ method }) => method === "PATCH")).toEqual([
    expect.objectContaining({
      query: { fieldManager: "manager", force: "false" },
      body: { apiVersion: "v1", kind: "Node", metadata: { name: "it" } },
    }),
  ]);
  expect(api.objects.has("/api/v1/nodes/it")).toBe(true);
});
