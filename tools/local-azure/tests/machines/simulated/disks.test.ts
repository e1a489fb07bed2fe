import type { Api, Body } from "../../../machines/simulated/api";
import { reconcileDisks } from "../../../machines/simulated/nodes/disks";
import { vmOf } from "../../support/simulated/fixture";

const vm = vmOf("demo-workers-1", "2", "172.16.2.16");
const { name } = vm;

const node = { metadata: { name, uid: "1" }, status: { nodeInfo: { systemUUID: vm.vmId } } };

const driverPod = {
  metadata: { ownerReferences: [{ kind: "DaemonSet" }] },
  spec: {
    nodeName: name,
    containers: [
      {
        image: "mcr.microsoft.com/oss/azuredisk-csi:v1.34.5",
        env: [{ name: "KUBERNETES_SERVICE_HOST", value: "api.example" }],
      },
    ],
  },
  status: { phase: "Running", startTime: "2026-11-26T06:00:05Z" },
};

const kubeProxySince = (startTime: string) => ({
  metadata: {},
  spec: { nodeName: name, containers: [{ image: "registry.k8s.io/kube-proxy:v1.36.3" }] },
  status: { phase: "Running", startTime },
});

const csiNode = (drivers: object[], uid = "1") => ({
  metadata: { name, ownerReferences: [{ kind: "Node", name, uid }] },
  spec: { drivers },
});

const [ofDisks, ofNodes] = [
  "topology.disk.csi.azure.com/zone",
  "topology.kubernetes.io/zone",
] as const;
const driver = {
  name: "disk.csi.azure.com",
  nodeID: name,
  topologyKeys: [ofDisks, ofNodes],
  // Of Standard_D2s_v5.
  allocatable: { count: 4 },
};

/** What this machine's kubelet asks of an API with these objects, by the end of their paths. */
async function reconcile(objects: Readonly<Record<string, readonly object[]>>, machine = vm) {
  const asked: [string, Body?][] = [];
  const note = (verb: string) => async (path: string, body?: Body) =>
    void asked.push([`${verb} ${path.replace(/^.*\/v1\//, "")}`, body]);
  const at = (kind: string) => ({ nodes: [node], ...objects })[kind] ?? [];
  const api = {
    get: async (path: string) => ({ items: at(path.split("/").at(-1)!) }),
  } as unknown as Api;
  const kubelet = { patch: note("patch"), post: note("post"), delete: note("delete") };
  await reconcileDisks({
    ...{ api, nodes: at("nodes"), pods: at("pods") },
    vmOf: (one) => (one === name ? machine : undefined),
    kubeletOf: (one) => (one === name ? (kubelet as unknown as Api) : undefined),
  });
  return asked;
}

it.each([
  ["of its machine's zone", vm, { [ofDisks]: "westeurope-2", [ofNodes]: "westeurope-2" }],
  ["of none where its machine has none", { ...vm, zone: undefined }, { [ofDisks]: "" }],
])("takes disks %s, as many as its size has room for", async (_, machine, labels) => {
  const annotations = { "csi.volume.kubernetes.io/nodeid": `{"${driver.name}":"${name}"}` };
  const drivers = [{ ...driver, topologyKeys: Object.keys(labels) }];

  expect(await reconcile({ pods: [driverPod], csinodes: [csiNode([])] }, machine)).toEqual([
    [`patch nodes/${name}`, { metadata: { annotations, labels } }],
    [`patch csinodes/${name}`, { spec: { drivers } }],
  ]);
});

it.each([
  { began: "before it", since: "2026-11-26T06:00:04Z", zone: "westeurope-2" },
  { began: "at the same time", since: "2026-11-26T06:00:05Z", zone: "" },
  { began: "after it", since: "2026-11-26T06:00:06Z", zone: "" },
])(
  "a driver that asks the API by the Service's address has the zone '$zone' where kube-proxy began $began",
  async ({ since, zone }) => {
    const { image } = driverPod.spec.containers[0]!;
    const spec = { ...driverPod.spec, containers: [{ image }] };
    const pods = [{ ...driverPod, spec }, kubeProxySince(since)];

    const asked = await reconcile({ pods, csinodes: [csiNode([])] });

    expect(asked[0]![1]!["metadata"].labels["topology.disk.csi.azure.com/zone"]).toBe(zone);
  },
);

it("refuses a driver whose zone is not what the Node has already, as a kubelet does", async () => {
  const labels = { "topology.disk.csi.azure.com/zone": "" };
  const nodes = [{ ...node, metadata: { ...node.metadata, labels } }];

  expect(await reconcile({ nodes, pods: [driverPod], csinodes: [csiNode([])] })).toEqual([]);
});

it.each([
  { what: "there is no pod of the driver", pods: [] },
  { what: "it does not run", pods: [{ ...driverPod, status: { phase: "Pending" } }] },
  {
    what: "it is on another node",
    pods: [{ ...driverPod, spec: { ...driverPod.spec, nodeName: "other" } }],
  },
  { what: "it is the controller's", pods: [{ ...driverPod, metadata: {} }] },
])("takes no disks where $what", async ({ pods }) => {
  expect(await reconcile({ pods, csinodes: [csiNode([])] })).toEqual([]);
  expect((await reconcile({ pods, csinodes: [csiNode([driver])] }))[1]).toEqual([
    `patch csinodes/${name}`,
    { spec: { drivers: [] } },
  ]);
});

const pod = {
  metadata: { namespace: "default", name: "web-0" },
  spec: {
    nodeName: name,
    containers: [],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-web-0" } }],
  },
  status: { phase: "Pending" },
};
const claim = {
  metadata: { namespace: "default", name: "data-web-0" },
  spec: { volumeName: "pv" },
  status: {},
};
const volume = {
  metadata: { name: "pv" },
  spec: { csi: { driver: driver.name }, capacity: { storage: "20Gi" } },
};
const attachment = {
  spec: { nodeName: name, source: { persistentVolumeName: "pv" } },
  status: { attached: true },
};
const cluster = {
  csinodes: [csiNode([])],
  pods: [pod],
  persistentvolumeclaims: [claim],
  persistentvolumes: [volume],
  volumeattachments: [attachment],
};

const told = [{ type: "PodReadyToStartContainers", status: "True" }];
it.each<[what: string, change: Record<string, object[]>]>([
  ["has no volume yet", { persistentvolumes: [] }],
  ["has a disk that is not attached", { volumeattachments: [] }],
  [
    "has a disk that is being attached",
    { volumeattachments: [{ ...attachment, status: { attached: false } }] },
  ],
  [
    "has a disk at another machine",
    { volumeattachments: [{ ...attachment, spec: { ...attachment.spec, nodeName: "other" } }] },
  ],
  [
    "has a claim of another namespace",
    {
      persistentvolumeclaims: [
        { ...claim, metadata: { ...claim.metadata, namespace: "kube-system" } },
      ],
    },
  ],
  ["has been told already", { pods: [{ ...pod, status: { ...pod.status, conditions: told } }] }],
])("does not let a pod start that %s", async (_, change) => {
  expect(await reconcile({ ...cluster, ...change })).toEqual([]);
});

const starts = "patch namespaces/default/pods/web-0/status";
const noDisk = { ...volume, spec: { ...volume.spec, csi: undefined } };
const ofNoDisk = { ...cluster, persistentvolumes: [noDisk], volumeattachments: [] };
it.each<[what: string, objects: Record<string, object[]>, asked: string[]]>([
  ["lets a pod start when its disk is attached to its machine", cluster, [starts]],
  ["lets a pod start whose volume is no disk", ofNoDisk, [starts]],
  ["makes a CSINode", {}, ["post csinodes"]],
  ["says nothing twice", { pods: [driverPod], csinodes: [csiNode([driver])] }, []],
  [
    "deletes a former Node's CSINode",
    { csinodes: [csiNode([], "0")] },
    [`delete csinodes/${name}`],
  ],
])("%s", async (_, objects, asked) => {
  expect((await reconcile(objects)).map(([what]) => what)).toEqual(asked);
});
