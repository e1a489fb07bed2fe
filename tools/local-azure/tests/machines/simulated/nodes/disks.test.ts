import type { Api, Body } from "../../../../machines/simulated/api";
import { reconcileDisks } from "../../../../machines/simulated/nodes/disks";
import { vmOf } from "../../../support/simulated/fixture";

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

const csiNode = (drivers: object[], owner = "1") => ({
  metadata: { name, ownerReferences: [{ kind: "Node", name, uid: owner }] },
  spec: { drivers },
});

const driver = {
  name: "disk.csi.azure.com",
  nodeID: name,
  topologyKeys: ["topology.disk.csi.azure.com/zone", "topology.kubernetes.io/zone"],
  // Of Standard_D2s_v5.
  allocatable: { count: 4 },
};

/** What this machine's kubelet asks of an API with these objects, by the end of their paths. */
async function reconcile(objects: Readonly<Record<string, readonly object[]>>, machine = vm) {
  const asked: [string, Body?][] = [];
  const note = (verb: string) => async (path: string, body?: Body) =>
    void asked.push([`${verb} ${path.replace(/^.*\/v1\//, "")}`, body]);
  const api = {
    get: async (path: string) => ({
      items: { nodes: [node], ...objects }[path.split("/").at(-1)!] ?? [],
    }),
  } as unknown as Api;
  const kubelet = { patch: note("patch"), post: note("post"), delete: note("delete") };
  await reconcileDisks({
    api,
    vmOf: (one) => (one === name ? machine : undefined),
    kubeletOf: (one) => (one === name ? (kubelet as unknown as Api) : undefined),
  });
  return asked;
}

it("makes a CSINode that goes with its Node", async () => {
  const [[asked, body]] = (await reconcile({})) as [[string, Body]];

  expect(asked).toBe("post csinodes");
  expect(body).toMatchObject({
    metadata: { name, ownerReferences: [{ kind: "Node", name, uid: "1" }] },
    spec: { drivers: [] },
  });
});

it("takes disks of its machine's zone, as many as its size has room for, once the driver's pod runs", async () => {
  const asked = await reconcile({ pods: [driverPod], csinodes: [csiNode([])] });

  const labels = {
    "topology.disk.csi.azure.com/zone": "westeurope-2",
    "topology.kubernetes.io/zone": "westeurope-2",
  };
  const annotations = { "csi.volume.kubernetes.io/nodeid": `{"disk.csi.azure.com":"${name}"}` };
  expect(asked).toEqual([
    [`patch nodes/${name}`, { metadata: { annotations, labels } }],
    [`patch csinodes/${name}`, { spec: { drivers: [driver] } }],
  ]);
});

it("has no zone for disks where its machine has none", async () => {
  const asked = await reconcile(
    { pods: [driverPod], csinodes: [csiNode([])] },
    { ...vm, zone: undefined },
  );

  expect(asked[0]![1]!["metadata"].labels).toEqual({ "topology.disk.csi.azure.com/zone": "" });
  expect(asked[1]![1]!["spec"].drivers[0].topologyKeys).toEqual([
    "topology.disk.csi.azure.com/zone",
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

it("has nothing to say twice", async () => {
  expect(await reconcile({ pods: [driverPod], csinodes: [csiNode([driver])] })).toEqual([]);
});

it("deletes the CSINode that a machine of the same name has left", async () => {
  const asked = await reconcile({ csinodes: [csiNode([driver], "of a Node before")] });

  expect(asked.map(([what]) => what)).toEqual([`delete csinodes/${name}`]);
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

it("lets a pod start when its disk is attached to its machine", async () => {
  const asked = await reconcile(cluster);

  expect(asked).toMatchObject([
    [
      "patch namespaces/default/pods/web-0/status",
      { status: { conditions: [{ type: "PodReadyToStartContainers", status: "True" }] } },
    ],
  ]);
});

it("lets a pod start whose volume is no disk", async () => {
  const persistentvolumes = [{ ...volume, spec: { ...volume.spec, csi: undefined } }];

  expect(await reconcile({ ...cluster, persistentvolumes, volumeattachments: [] })).toHaveLength(1);
});

it.each([
  { what: "has no volume yet", change: { persistentvolumes: [] } },
  { what: "has a disk that is not attached", change: { volumeattachments: [] } },
  {
    what: "has a disk that is being attached",
    change: { volumeattachments: [{ ...attachment, status: { attached: false } }] },
  },
  {
    what: "has a disk at another machine",
    change: {
      volumeattachments: [{ ...attachment, spec: { ...attachment.spec, nodeName: "other" } }],
    },
  },
  {
    what: "has a claim of another namespace",
    change: {
      persistentvolumeclaims: [
        { ...claim, metadata: { ...claim.metadata, namespace: "kube-system" } },
      ],
    },
  },
  {
    what: "has been told already",
    change: {
      pods: [
        {
          ...pod,
          status: {
            ...pod.status,
            conditions: [{ type: "PodReadyToStartContainers", status: "True" }],
          },
        },
      ],
    },
  },
])("does not say so of a pod that $what", async ({ change }) => {
  expect(await reconcile({ ...cluster, ...change })).toEqual([]);
});

it("has a file system grow with its disk when the resizer waits for that", async () => {
  const running = { ...cluster, pods: [{ ...pod, status: { phase: "Running" } }] };
  expect(await reconcile(running)).toEqual([]);

  const pending = { allocatedResourceStatuses: { storage: "NodeResizePending" } };
  const asked = await reconcile({
    ...running,
    persistentvolumeclaims: [{ ...claim, status: pending }],
  });

  expect(asked).toEqual([
    [
      "patch namespaces/default/persistentvolumeclaims/data-web-0/status",
      {
        status: {
          capacity: { storage: "20Gi" },
          allocatedResourceStatuses: null,
          conditions: null,
        },
      },
    ],
  ]);
});
