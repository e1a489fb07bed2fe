import type { Api, Body } from "../../../../../../local-azure/machines/simulated/api";
import { Members } from "../../../../../../local-azure/machines/simulated/cluster/members";
import { fakeNode } from "../../../../../../local-azure/machines/simulated/nodes/kwok";
import { reconcileKubelets } from "../../../../../../local-azure/machines/simulated/nodes/kubelets";
import { vmOf } from "../../../../../support/simulated/fixture";

const vm = vmOf("demo-cp-2", "2", "172.16.2.4");

/** What is patched of the Node of a control plane whose kubelet is sick, and whether more is due. */
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
    patch: async (path: string) => void patched.push(path.split("/").slice(-2).join("/")),
  } as unknown as Api;
  const due = await reconcileKubelets({
    api,
    members: Members.of(vm).sickening(vm.name, "kubelet").list,
    vmOf: () => vm,
    kubeletOf: () => api,
    manifestOf: () => "",
  });
  return { patched, due };
}

const all = ["nodes/demo-cp-2", "leases/demo-cp-2", "demo-cp-2/status"];

it.each([
  { state: "is Ready", annotations: fakeNode, ready: "True", patched: all },
  { state: "is Unknown, but KWOK's", annotations: fakeNode, ready: "Unknown", patched: all },
  { state: "was let go but is still Ready", annotations: {}, ready: "True", patched: all },
  { state: "is silent", annotations: {}, ready: "Unknown", patched: [] },
])("is due for a sick kubelet until its Node is silent: one that $state", async (given) => {
  const { patched, due } = await reconcileSick(given);

  expect({ patched, due }).toEqual({ patched: given.patched, due: given.patched.length > 0 });
});
