import type { Api, Body } from "../../../../machines/simulated/api";
import {
  cloudLabels,
  reconcileCloudProvider,
  providerId,
} from "../../../../machines/simulated/nodes/cloud-provider";
import { nodeOf, shutDown } from "../../../../machines/simulated/nodes/node";
import { vmOf } from "../../../support/simulated/fixture";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");
const registration = { kubeletExtraArgs: [{ name: "cloud-provider", value: "external" }] };
const fresh = nodeOf(vm, registration, { role: "worker", kubernetesVersion: "1.36.3" });

const podOf = (image: string, more: object = {}) => ({
  metadata: {
    namespace: "kube-system",
    name: "pod",
    ownerReferences: [{ kind: "DaemonSet", name: "ds" }],
  },
  spec: { nodeName: vm.name, serviceAccountName: "robot", containers: [{ image, ...more }] },
});

const azureJson = JSON.stringify({ nodeInstanceNotFoundGracePeriodInSeconds: 300 });
const secrets: Readonly<Record<string, object>> = {
  "/api/v1/namespaces/kube-system/secrets/azure": {
    data: { "cloud-config": Buffer.from(azureJson).toString("base64") },
  },
};

const cni = (path: string) => {
  const pod = podOf("net");
  return { ...pod, spec: { ...pod.spec, volumes: [{ hostPath: { path } }] } };
};

/** What was asked of an API with this one node and these running pods, by whom. */
async function reconcile(
  pods: readonly object[],
  { vms = [vm], node = fresh as Body, managesNodes = true } = {},
) {
  const asked: string[] = [];
  const apiOf = (user: string): Api =>
    ({
      as: apiOf,
      get: async (path: string) =>
        path.startsWith("/api/v1/pods")
          ? { items: pods }
          : path === "/api/v1/nodes"
            ? { items: [node] }
            : (secrets[path] ?? node),
      ...Object.fromEntries(
        ["put", "patch", "delete"].map((verb) => [
          verb,
          async (path: string, body: unknown) => {
            asked.push(`${user} ${verb} ${path} ${JSON.stringify(body) ?? ""}`.trim());
          },
        ]),
      ),
    }) as unknown as Api;
  const due = await reconcileCloudProvider({
    api: apiOf("root"),
    vmOf: (name) => vms.find((candidate) => candidate.name === name),
    kubeletOf: () => apiOf("kubelet"),
    managesNodes,
    log: (message) => asked.push(message),
  });
  return { asked, due };
}

const robot = "system:serviceaccount:kube-system:robot";
const created = (secondsAgo: number): string =>
  new Date(Date.now() - secondsAgo * 1000).toISOString();
const silent = {
  ...fresh,
  status: { ...fresh.status, conditions: [{ type: "Ready", status: "Unknown" }] },
};

const initialized = { ...fresh, spec: { ...fresh.spec, taints: [] as object[] } };
const conditions = (status: string) => ({
  ...initialized,
  status: { ...fresh.status, conditions: [{ type: "Ready", status }] },
});
const heard = conditions("True");
const unheard = conditions("Unknown");
const tainted = (node: Body) => ({ ...node, spec: { ...node.spec, taints: [shutDown] } });

it("names machines and zones as Azure's cloud provider does", () => {
  expect(providerId(vm)).toContain("/resourceGroups/demo/");
  expect(cloudLabels(vm)["topology.kubernetes.io/zone"]).toBe("westeurope-2");
  expect(cloudLabels({ ...vm, location: "West Europe" })).toEqual(cloudLabels(vm));
  expect(cloudLabels({ ...vm, zone: undefined })["topology.kubernetes.io/zone"]).toBe("0");
  expect(Object.keys(cloudLabels(vm)).filter((label) => label.includes("beta"))).toEqual([]);
});

it("leaves a node as it is while none of its system pods run", async () => {
  expect(await reconcile([])).toEqual({ asked: [], due: true });
});

it.each([
  { path: "/etc/cni/net.d", finds: true },
  { path: "/etc/cni", finds: true },
  { path: "/etc/cnid", finds: false },
  { path: "/opt/cni/bin", finds: false },
])("finds a CNI in a pod that mounts $path: $finds", async ({ path, finds }) => {
  const { asked } = await reconcile([cni(path)]);

  expect(asked).toEqual(
    finds
      ? [
          `kubelet patch /api/v1/nodes/${vm.name} {"metadata":{"annotations":{"zoned.local/cni":"ds"}}}`,
        ]
      : [],
  );
});

it("initializes a node with the rights of the node manager on it", async () => {
  const { asked } = await reconcile([podOf("r/azure-cloud-node-manager:v1")]);

  expect(asked.map((each) => each.split(" ").slice(0, 3))).toEqual([
    [robot, "patch", `/api/v1/nodes/${vm.name}/status`],
    [robot, "put", `/api/v1/nodes/${vm.name}`],
  ]);
  expect(asked[1]).toContain('"taints":[]');
});

it("leaves a new node to Azure's own node manager where that runs", async () => {
  const { asked } = await reconcile([podOf("r/azure-cloud-node-manager:v1")], {
    managesNodes: false,
  });

  expect(asked).toEqual([]);
});

it("lets no node manager initialize another one's node", async () => {
  const manager = podOf("r/azure-cloud-node-manager:v1");
  const elsewhere = { ...manager, spec: { ...manager.spec, nodeName: "demo-cp-1" } };

  expect(await reconcile([elsewhere])).toEqual({ asked: [], due: true });
});

it("lets no controller manager initialize a node, whatever its controllers", async () => {
  const manager = podOf("r/azure-cloud-controller-manager:v1", { args: ["--controllers=*"] });

  expect(await reconcile([manager])).toEqual({ asked: [], due: true });
});

it.each([
  {
    what: "taints a silent node of a machine that is off",
    node: unheard,
    isOff: true,
    taints: [{ key: "node.cloudprovider.kubernetes.io/shutdown", effect: "NoSchedule" }],
  },
  {
    what: "leaves a silent node of a machine that runs",
    node: unheard,
    isOff: false,
    taints: undefined,
  },
  { what: "leaves a node that is still heard", node: heard, isOff: true, taints: undefined },
  {
    what: "takes the taint from a node that is heard again",
    node: tainted(heard),
    isOff: false,
    taints: [],
  },
  {
    what: "leaves the taint while it is silent",
    node: tainted(unheard),
    isOff: false,
    taints: undefined,
  },
])("$what", async ({ node, isOff, taints }) => {
  const manager = podOf("r/azure-cloud-controller-manager:v1");
  const elsewhere = { ...manager, spec: { ...manager.spec, nodeName: "demo-cp-1" } };

  const { asked } = await reconcile([elsewhere], { vms: [{ ...vm, isOff }], node });

  const path = `/api/v1/nodes/${vm.name}`;
  const patch = taints && `${robot} patch ${path} ${JSON.stringify({ spec: { taints } })}`;
  expect(asked).toEqual(patch === undefined ? [] : [patch]);
});

it("shows a machine that is gone as silent, by the rehearsal's rights only", async () => {
  const { asked } = await reconcile([], { vms: [] });

  expect(asked.map((each) => each.split(" ")[0])).toEqual(["root", "root"]);
  expect(asked[1]).toContain('"reason":"NodeStatusUnknown"');
});

it.each([
  { what: "deletes a silent node that has no machine", vms: [], pods: true, deletes: true },
  {
    what: "keeps a silent node that is younger than azure.json asks for",
    vms: [],
    pods: true,
    age: 290,
    deletes: false,
  },
  {
    what: "keeps a silent node while no controller manager runs",
    vms: [],
    pods: false,
    deletes: false,
  },
  {
    what: "keeps a silent node while the only controller manager is on it",
    vms: [],
    pods: true,
    on: vm.name,
    deletes: false,
  },
  {
    what: "keeps a silent node whose name another machine has",
    vms: [{ ...vm, vmId: "another" }],
    pods: true,
    deletes: false,
  },
  {
    what: "leaves a silent node to Azure's own controller manager where that runs",
    vms: [],
    pods: true,
    managesNodes: false,
    deletes: false,
  },
])("$what", async ({ vms, pods, on = "demo-cp-1", age = 310, managesNodes, deletes }) => {
  const manager = podOf("r/azure-cloud-controller-manager:v1");
  const volumes = [{ name: "cloud-config", secret: { secretName: "azure" } }];
  const placed = { ...manager, spec: { ...manager.spec, volumes, nodeName: on } };
  const node = { ...silent, metadata: { ...silent.metadata, creationTimestamp: created(age) } };

  const { asked } = await reconcile(pods ? [placed] : [], { vms, node, managesNodes });

  expect(asked).toEqual(deletes ? [`${robot} delete /api/v1/nodes/${vm.name}`] : []);
});

it("has nothing more to do once a node is Ready and initialized", async () => {
  const done = {
    ...fresh,
    metadata: {
      ...fresh.metadata,
      annotations: { ...fresh.metadata.annotations, "zoned.local/cni": "ds" },
    },
    spec: { taints: [] },
  };

  expect(await reconcile([], { node: done })).toEqual({ asked: [], due: false });
});
