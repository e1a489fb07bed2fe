import type { Api, Body } from "../../../../machines/simulated/api";
import { Members } from "../../../../machines/simulated/cluster/members";
import { fakeNode } from "../../../../machines/simulated/nodes/kwok";
import { reconcileKubelets } from "../../../../machines/simulated/nodes/kubelets";
import { vmOf } from "../../../support/simulated/fixture";

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const vm = vmOf("demo-cp-2", "2", "172.16.2.4");

/** What is patched of the Node of a control plane whose kubelet is unhealthy, and whether more is due. */
async function reconcileSick({ annotations, ready }: { annotations: object; ready: string }) {
  const patched: string[] = [];
  const node = {
    metadata: { name: vm.name, annotations },
    status: {
      nodeInfo: { systemUUID: vm.vmId },
      conditions: [{ type: "Ready", status: ready }],
    },
  };
  const api = {
    get: async (path: string): Promise<Body> => ({ items: path === "/api/v1/nodes" ? [node] : [] }),
    patch: async (path: string, _: Body, type: string) => {
      if (path.includes("/leases/")) expect(type).toBe("application/apply-patch+yaml");
      patched.push(path.split("?")[0]!.split("/").slice(-2).join("/"));
    },
  } as unknown as Api;
  const due = await reconcileKubelets({
    api,
    members: Members.of(vm).withFailure(vm.name, "kubelet").list,
    vmOf: () => vm,
    kubeletOf: () => api,
    manifestOf: () => "",
  });
  return { patched, due };
}

const all = ["nodes/demo-cp-2", "leases/demo-cp-2", "demo-cp-2/status", "nodes/demo-cp-2"];
const silent = { "zoned.local/silent": "" };

it.each([
  { state: "is Ready", annotations: fakeNode, ready: "True", patched: all },
  { state: "is Unknown, but KWOK's", annotations: fakeNode, ready: "Unknown", patched: all },
  { state: "was let go but is still Ready", annotations: silent, ready: "True", patched: all },
  { state: "was not given back", annotations: silent, ready: "Unknown", patched: all },
  {
    state: "is silent",
    annotations: { ...silent, ...fakeNode },
    ready: "Unknown",
    patched: [],
  },
])("is due for an unhealthy kubelet until its Node is silent: one that $state", async (given) => {
  const { patched, due } = await reconcileSick(given);

  expect({ patched, due }).toEqual({ patched: given.patched, due: given.patched.length > 0 });
});

/** Whether a pod of a Ready Node is changed, so that KWOK looks at it again. */
async function isShownAgain(pod: { metadata?: object; spec?: object; status?: object }) {
  const patched: string[] = [];
  const node = {
    metadata: { name: vm.name, annotations: fakeNode },
    status: { nodeInfo: { systemUUID: vm.vmId }, conditions: [{ type: "Ready", status: "True" }] },
  };
  const metadata = { namespace: "default", name: "it", ...pod.metadata };
  const items = [{ ...pod, metadata, spec: { nodeName: vm.name, ...pod.spec } }];
  const api = {
    get: async (path: string): Promise<Body> =>
      path === "/api/v1/nodes" ? { items: [node] } : { items },
    patch: async (path: string) => void patched.push(path),
  } as unknown as Api;
  const due = await reconcileKubelets({
    ...{ api, members: [], vmOf: () => vm, kubeletOf: () => api, manifestOf: () => "" },
  });
  expect(patched).toEqual(due ? ["/api/v1/namespaces/default/pods/it"] : []);
  return due;
}

const pending = { phase: "Pending" };
const old = { creationTimestamp: ago(60) };
const job = { ownerReferences: [{ kind: "Job" }] };
const claim = { volumes: [{ persistentVolumeClaim: { claimName: "it" } }] };

it.each([
  ["that has not started for long", { metadata: old, status: pending }, true],
  ["that is new", { metadata: { creationTimestamp: ago(1) }, status: pending }, false],
  [
    "that was shown just now",
    { metadata: { ...old, annotations: { "zoned.local/shown": ago(1) } }, status: pending },
    false,
  ],
  ["that waits for its disk", { metadata: old, spec: claim, status: pending }, false],
  ["that runs", { metadata: old, status: { phase: "Running" } }, false],
  [
    "of a Job, which has not ended",
    { metadata: { ...old, ...job }, status: { phase: "Running" } },
    true,
  ],
  [
    "that is deleted and still there",
    { metadata: { ...old, deletionTimestamp: ago(10) }, status: { phase: "Running" } },
    true,
  ],
])("shows KWOK once more what it has missed, and nothing else: a pod %s", async (_, pod, shown) => {
  expect(await isShownAgain(pod)).toBe(shown);
});

it.each([
  ["has had a network for long and is not Ready", { shown: ago(60), ready: "Unknown" }, true],
  ["was shown just now", { shown: ago(1), ready: "Unknown" }, false],
  ["is Ready", { shown: ago(60), ready: "True" }, false],
])("shows KWOK once more a Node that it has missed: one that %s", async (_, given, shown) => {
  const patched: string[] = [];
  const annotations = { ...fakeNode, "zoned.local/cni": "", "zoned.local/shown": given.shown };
  const node = {
    metadata: { name: vm.name, annotations },
    status: {
      nodeInfo: { systemUUID: vm.vmId },
      conditions: [{ type: "Ready", status: given.ready }],
    },
  };
  const api = {
    get: async (path: string): Promise<Body> => ({ items: path === "/api/v1/nodes" ? [node] : [] }),
    patch: async (path: string) => void patched.push(path),
  } as unknown as Api;

  const due = await reconcileKubelets({
    ...{ api, members: [], vmOf: () => vm, kubeletOf: () => api, manifestOf: () => "" },
  });

  expect(patched).toEqual(shown ? ["/api/v1/nodes/demo-cp-2"] : []);
  expect(due).toBe(given.ready !== "True");
});
