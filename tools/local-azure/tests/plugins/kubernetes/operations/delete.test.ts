import { DynamicClient } from "../../../../plugins/kubernetes/api/dynamic-client";
import { deleted } from "../../../../plugins/kubernetes/operations/delete";
import { Properties } from "../../../../plugins/protocol/values";
import { FakeApi } from "../../../support/plugins/fake-api";

let api: FakeApi;
let cluster: DynamicClient;
const path = "/api/v1/namespaces/here/configmaps/it";

beforeEach(async () => {
  api = await FakeApi.start();
  cluster = await DynamicClient.reached(api.access, api.redirect);
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

it("deletes after what the object owns, and is content when it is gone", async () => {
  api.objects.set(path, configMap());

  await deleted(cluster, configMap(), configMap(), deleting);
  await deleted(cluster, configMap(), configMap(), deleting);

  expect(api.seen.find(({ method }) => method === "DELETE")?.query).toEqual({
    propagationPolicy: "Foreground",
  });
  expect(api.objects.size).toBe(0);
});

it("takes one that was made anew under the same name for another", async () => {
  const [before, anew] = [configMap({ uid: "1" }), configMap({ uid: "2" })];
  api.objects.set(path, before);
  api.answer = ({ method }) => {
    if (method !== "DELETE") return undefined;
    let asked = 0;
    api.answer = () => [200, asked++ === 0 ? before : anew];
    return [200, before];
  };

  await deleted(cluster, configMap(), configMap(), { ...deleting, timeoutSeconds: 10 });
});

it("reports what holds back an object that is not deleted", async () => {
  const held = configMap({ finalizers: ["a/b"] });
  api.objects.set(path, held);
  api.answer = ({ method }) => (method === "DELETE" ? [200, held] : undefined);

  await expect(deleted(cluster, held, held, deleting)).rejects.toThrow(
    /^ConfigMap here\/it is being deleted, but not gone: it is still there; finalizers a\/b after /,
  );
});
