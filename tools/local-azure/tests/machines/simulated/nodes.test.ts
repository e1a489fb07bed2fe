import type { Api, Body } from "../../../machines/simulated/api";
import {
  cloudLabels,
  reconcileCloudProvider,
  providerId,
} from "../../../machines/simulated/nodes/cloud-provider";
import { nodeWasMissed, wasMissed } from "../../../machines/simulated/nodes/kwok";
import { controlPlaneMark, nodeOf, shutDown } from "../../../machines/simulated/nodes/node";
import { vmOf } from "../../support/simulated/fixture";

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

const manager = podOf("r/azure-cloud-node-manager:v1");
const controllers = podOf("r/azure-cloud-controller-manager:v1", { args: ["--controllers=*"] });

it("initializes a node with the rights of the node manager on it", async () => {
  const { asked } = await reconcile([manager]);

  expect(asked.map((each) => each.split(" ").slice(0, 3))).toEqual([
    [robot, "patch", `/api/v1/nodes/${vm.name}/status`],
    [robot, "put", `/api/v1/nodes/${vm.name}`],
  ]);
});

it.each<[what: string, pod: object, managesNodes: boolean]>([
  ["where Azure's own node manager runs", manager, false],
  ["of another machine", { ...manager, spec: { ...manager.spec, nodeName: "demo-cp-1" } }, true],
  ["by a controller manager, whatever its controllers", controllers, true],
])("initializes no node %s", async (_, pod, managesNodes) => {
  expect((await reconcile([pod], { managesNodes })).asked).toEqual([]);
});

it("has nothing more to do once a node has its network and is initialized", async () => {
  const annotations = { ...fresh.metadata.annotations, "zoned.local/cni": "ds" };
  const done = { ...initialized, metadata: { ...fresh.metadata, annotations } };

  expect(await reconcile([], { node: done })).toEqual({ asked: [], due: false });
});

it("shows a machine that is gone as silent, which takes no rights of the cloud provider's", async () => {
  const { asked } = await reconcile([], { vms: [] });

  const path = `/api/v1/nodes/${vm.name}`;
  expect(asked).toEqual([
    expect.stringMatching(`^root patch ${path} .*"kwok\\.x-k8s\\.io/node":null`),
    expect.stringMatching(`^root patch ${path}/status .*"NodeStatusUnknown"`),
  ]);
});

const taint = { key: "node.cloudprovider.kubernetes.io/shutdown", effect: "NoSchedule" };
it.each<[what: string, node: Body, isOff: boolean, taints: object[] | undefined]>([
  ["taints a silent node of a machine that is off", unheard, true, [taint]],
  ["leaves a silent node of a machine that runs", unheard, false, undefined],
  ["leaves a node that is still heard", heard, true, undefined],
  ["takes the taint from a node that is heard again", tainted(heard), false, []],
  ["leaves the taint while it is silent", tainted(unheard), false, undefined],
])("%s", async (_, node, isOff, taints) => {
  const elsewhere = { ...controllers, spec: { ...controllers.spec, nodeName: "demo-cp-1" } };

  const { asked } = await reconcile([elsewhere], { vms: [{ ...vm, isOff }], node });

  const path = `/api/v1/nodes/${vm.name}`;
  const patch = taints && `${robot} patch ${path} ${JSON.stringify({ spec: { taints } })}`;
  expect(asked).toEqual(patch === undefined ? [] : [patch]);
});

interface Silent {
  readonly vms?: (typeof vm)[];
  readonly pods?: boolean;
  readonly on?: string;
  readonly age?: number;
  readonly managesNodes?: boolean;
}
it.each<[what: string, given: Silent]>([
  ["deletes a silent node that has no machine", {}],
  ["keeps one that is younger than azure.json asks for", { age: 290 }],
  ["keeps one while no controller manager runs", { pods: false }],
  ["keeps one while the only controller manager is on it", { on: vm.name }],
  ["keeps one whose name another machine has", { vms: [{ ...vm, vmId: "another" }] }],
  ["leaves one to Azure's own controller manager where that runs", { managesNodes: false }],
])("%s", async (what, { vms = [], pods = true, on = "demo-cp-1", age = 310, managesNodes }) => {
  const volumes = [{ name: "cloud-config", secret: { secretName: "azure" } }];
  const placed = { ...controllers, spec: { ...controllers.spec, volumes, nodeName: on } };
  const node = { ...silent, metadata: { ...silent.metadata, creationTimestamp: created(age) } };

  const { asked } = await reconcile(pods ? [placed] : [], { vms, node, managesNodes });

  const deletion = `${robot} delete /api/v1/nodes/${vm.name}`;
  expect(asked).toEqual(what.startsWith("deletes") ? [deletion] : []);
});

const worker = { role: "worker", kubernetesVersion: "1.36.3" } as const;
const args = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

it("goes by the last of several arguments of the same name, as a kubelet does", () => {
  const [first] = args({ "node-labels": "a=1" });
  const [last] = args({ "node-labels": "b=2" });

  const { labels } = nodeOf(vm, { kubeletExtraArgs: [first!, last!] }, worker).metadata;

  expect(labels).toMatchObject({ b: "2" });
  expect(labels).not.toHaveProperty("a");
});

it("refuses an address that the machine does not have", () => {
  const registration = { kubeletExtraArgs: args({ "node-ip": "172.16.9.9" }) };

  expect(() => nodeOf(vm, registration, worker)).toThrow(/no interface of the machine has it/);
});

it.each([
  ["Standard_B2s", "amd64", { cpu: "2", memory: "4Gi" }],
  ["Standard_D4ps_v5", "arm64", { cpu: "4", memory: "16Gi" }],
])("has on a %s the architecture %s, and what that size has", (size, architecture, capacity) => {
  expect(nodeOf({ ...vm, size }, {}, worker).status).toMatchObject({
    ...{ nodeInfo: { architecture }, capacity, allocatable: capacity },
  });
});

const present = [{ key: "a", effect: "NoSchedule" }];
const ofEffect = [{ key: "a", effect: "NoExecute" }];
const controlPlane = { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" };
it.each([
  ["a control plane's taint where nothing is said", undefined, [...present, controlPlane]],
  ["none where the list is empty", [], undefined],
  ["one of another effect", ofEffect, [...present, ...ofEffect]],
  ["none that is there", present, undefined],
])("mark-control-plane gives a Node %s", (_, taints, given) => {
  expect(controlPlaneMark({ taints }, present).spec?.taints).toEqual(given);
});

const now = new Date();
const old = { creationTimestamp: created(60) };
const [pending, running] = [{ phase: "Pending" }, { phase: "Running" }];
const recent = { creationTimestamp: created(1) };
const shown = { ...old, annotations: { "zoned.local/shown": created(1) } };
const ofJob = { ...old, ownerReferences: [{ kind: "Job" }] };
const claims = { volumes: [{ persistentVolumeClaim: { claimName: "it" } }] };
it.each<[what: string, missed: boolean, metadata: Body, status: Body, spec?: Body]>([
  ["has not started for long", true, old, pending],
  ["is new", false, recent, pending],
  ["was shown just now", false, shown, pending],
  ["waits for its disk", false, old, pending, claims],
  ["runs", false, old, running],
  ["is a Job's and has not ended", true, ofJob, running],
  ["is deleted and still there", true, { ...old, deletionTimestamp: created(10) }, running],
])("KWOK has missed a pod that %s: %s", (_, missed, metadata, status, spec = {}) => {
  expect(Boolean(wasMissed({ metadata, spec, status }, now))).toBe(missed);
});

it.each<[what: string, missed: boolean, metadata: Body]>([
  ["long", true, old],
  ["just now", false, recent],
  ["long, and was shown just now", false, shown],
])("KWOK has missed a Node that is there for %s: %s", (_, missed, metadata) => {
  expect(nodeWasMissed({ metadata }, now)).toBe(missed);
});
