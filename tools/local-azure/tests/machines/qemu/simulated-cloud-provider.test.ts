import type { Body } from "../../../machines/simulated/api";
import { reconcileNodes } from "../../../machines/qemu/simulated-cloud-provider";
import { providerId } from "../../../machines/simulated/nodes/cloud-provider";
import { uninitialized } from "../../../machines/simulated/nodes/node";
import { vmOf } from "../../support/simulated/fixture";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");

const nodeWith = (ready: string, taints: readonly object[] = []) => ({
  metadata: { name: vm.name, labels: { mine: "kept" } },
  spec: { taints },
  status: { conditions: [{ type: "Ready", status: ready }] },
});
const fresh = nodeWith("True", [uninitialized, { key: "mine" }]);

/** What is asked of a cluster with this one node. */
async function asked(node: object, { vms = [vm], ownManager = false } = {}) {
  const requests: { verb: string; path: string; body?: Body }[] = [];
  const ask =
    (verb: string) =>
    async (path: string, body?: object): Promise<object> => {
      requests.push({ verb, path, body });
      return {};
    };
  await reconcileNodes({
    api: {
      get: async () => ({ items: [node] }),
      find: async () => (ownManager ? {} : undefined),
      put: ask("put"),
      delete: ask("delete"),
    },
    vmOf: (name) => vms.find((one) => one.name === name),
    log: () => undefined,
    begins: () => undefined,
  });
  return requests;
}

it("gives a new node its id and zone, and takes off no taint but its own", async () => {
  const [request, ...others] = await asked(fresh);

  expect(others).toEqual([]);
  expect(request).toMatchObject({ verb: "put", path: `/api/v1/nodes/${vm.name}` });
  expect(request!.body!.spec).toEqual({ providerID: providerId(vm), taints: [{ key: "mine" }] });
  expect(request!.body!.metadata.labels).toMatchObject({
    mine: "kept",
    "topology.kubernetes.io/zone": "westeurope-2",
  });
});

it("deletes the node of a machine that is gone, once its kubelet is silent", async () => {
  expect(await asked(nodeWith("Unknown"), { vms: [] })).toEqual([
    { verb: "delete", path: `/api/v1/nodes/${vm.name}`, body: undefined },
  ]);
  expect(await asked(nodeWith("True"), { vms: [] })).toEqual([]);
});

it("leaves a node alone whose machine is there and which is initialized", async () => {
  expect(await asked(nodeWith("Unknown"))).toEqual([]);
});

it("leaves everything to a cluster that runs a node manager of its own", async () => {
  expect(await asked(fresh, { ownManager: true })).toEqual([]);
});
