import { only } from "../../../../components/kubeadm/rotations";
import type { Expected } from "../../check";
import type { ClusterState, KubeletState } from "../../cluster-state";
import { serveKubernetesApi } from "../../../../tests/support/kubernetes-api";

/** What a test may change. */
type Changeable<T> = T extends (...args: any[]) => unknown
  ? T
  : T extends object
    ? { -readonly [K in keyof T]: Changeable<T[K]> }
    : T;
export type FakeClusterState = Changeable<ClusterState>;

const zone = (number: number): string => `southeastasia-${number}`;

/** Three control planes and three workers, one of each in each zone. */
export const threeByThree: Expected = {
  machines: ["control-plane", "worker"].flatMap((role) =>
    [1, 2, 3].map((number) => ({
      name: `${role === "worker" ? "workers" : "cp"}-${number}`,
      role,
      zone: zone(number),
    })),
  ),
  kubernetesVersion: "1.36.3",
  etcdBackups: "1h",
  encryptionKeys: only(1),
  cas: only(1),
  serviceAccountKeys: only(1),
};

/** In whole seconds, as an HTTP date has it; certificates are made for the real time. */
export const now = Math.floor(Date.now() / 1000) * 1000;
export const ago = (seconds: number): string => new Date(now - seconds * 1000).toISOString();

const ready = () => ({ conditions: [{ type: "Ready", status: "True" }] });
const lease = (name: string) => ({
  metadata: { name },
  spec: { renewTime: ago(5), leaseDurationSeconds: 40 },
});

const staticPod = (component: string, machine: string) => ({
  metadata: { name: `${component}-${machine}`, namespace: "kube-system" },
  spec: {
    nodeName: machine,
    containers: [
      // What a strategic merge patch adds comes first.
      { name: "aside", image: "example.org/aside:v1.0.0" },
      {
        name: component,
        image: `registry.k8s.io/${component}:${component === "etcd" ? "3.7.0-0" : "v1.36.3"}`,
        command: component === "etcd" ? ["etcd", `--quota-backend-bytes=${8 * 1024 ** 3}`] : [],
      },
    ],
  },
  status: ready(),
});

/** What a healthy cluster of these machines says. */
export const healthyCluster = ({ machines }: Expected = threeByThree): FakeClusterState => ({
  now,
  version: "v1.36.3",
  writeError: undefined,
  storageBytes: 40 * 1024 ** 2,
  issuer: { refused: 0 },
  nodes: machines.map(({ name, role, zone }) => ({
    metadata: {
      name,
      labels: {
        "topology.kubernetes.io/zone": zone,
        "topology.disk.csi.azure.com/zone": zone,
        ...(role === "control-plane" && { "node-role.kubernetes.io/control-plane": "" }),
      },
      annotations: { "zoned/certificates-valid-until": ago(-300 * 86_400) },
    },
    spec: { providerID: `azure:///${name}` },
    status: {
      conditions: [
        ...["MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
          type,
          status: "False",
        })),
        ...ready().conditions,
      ],
      nodeInfo: {
        systemUUID: name,
        kubeletVersion: "v1.36.3",
        kernelVersion: "6.8.0-1062-azure",
        containerRuntimeVersion: "containerd://2.2.1",
      },
    },
  })),
  pods: machines
    .filter(({ role }) => role === "control-plane")
    .flatMap(({ name }) =>
      ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((component) =>
        staticPod(component, name),
      ),
    ),
  kubelets: machines.map(({ name }): Changeable<KubeletState> => ({
    machine: name,
    clientSeconds: 200 * 86_400,
  })),
  leases: machines.map(({ name }) => lease(name)),
  manager: [lease("kube-controller-manager")],
  daemonSets: ["kube-proxy", "csi-azuredisk-node"].map((name) => ({
    metadata: { name, namespace: "kube-system", generation: 2 },
    status: {
      ...{ observedGeneration: 2, desiredNumberScheduled: 6 },
      ...{ updatedNumberScheduled: 6, numberReady: 6 },
    },
  })),
  deployments: [
    {
      metadata: { name: "coredns", namespace: "kube-system", generation: 1 },
      spec: { replicas: 2 },
      status: { observedGeneration: 1, updatedReplicas: 2, readyReplicas: 2 },
    },
    {
      metadata: { name: "somebodys-own", namespace: "default", generation: 1 },
      spec: { replicas: 2 },
      status: { observedGeneration: 1, updatedReplicas: 2, readyReplicas: 0 },
    },
  ],
  dnsPods: ["workers-1", "workers-2"].map((nodeName) => ({
    metadata: { name: `coredns-${nodeName}`, namespace: "kube-system" },
    spec: { nodeName },
    status: ready(),
  })),
  pendingPods: [
    { metadata: { name: "young", namespace: "default", creationTimestamp: ago(9 * 60) } },
  ],
  snapshot: {
    time: ago(20 * 60),
    name: "20261124T215500Z-42.db",
    bytes: "3145728",
    machine: "cp-2",
    where: "https://backups.blob.core.windows.net/etcd",
  },
});

/** An API server on this host that has this state, which may change meanwhile. */
export async function serveCluster(cluster: { current: FakeClusterState }, certificateDays = 365) {
  const readiness = { status: 200, text: "ok", asked: 0 };
  const kubeconfig = await serveKubernetesApi(({ url = "", method }, response) => {
    const { pathname, searchParams } = new URL(url, "https://localhost");
    const { current } = cluster;
    const send = (status: number, text: string) =>
      void response.writeHead(status, { date: new Date(now).toUTCString() }).end(text);
    if (pathname === "/readyz") {
      readiness.asked += 1;
      return send(readiness.status, readiness.text);
    }
    if (method === "PATCH") return send(current.writeError ? 500 : 200, current.writeError ?? "");
    const [, kubelet] = /^\/api\/v1\/nodes\/(.+)\/proxy\/metrics$/.exec(pathname) ?? [];
    if (kubelet !== undefined) {
      const { error, clientSeconds = "+Inf" } =
        current.kubelets.find(({ machine }) => machine === kubelet) ?? {};
      const metric = `kubelet_certificate_manager_client_ttl_seconds ${clientSeconds}`;
      return send(error === undefined ? 200 : 503, error ?? `# HELP\n${metric}\n`);
    }
    if (pathname === "/version") return send(200, JSON.stringify({ gitVersion: current.version }));
    if (pathname === "/metrics") {
      const metric = `apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} ${current.storageBytes}`;
      return send(200, current.storageBytes === undefined ? "" : `# HELP\n${metric}\n`);
    }
    const lists: Record<string, readonly object[]> = {
      "/api/v1/nodes": current.nodes,
      "/api/v1/pods status.phase=Pending": current.pendingPods,
      "/api/v1/namespaces/kube-system/pods tier=control-plane": current.pods,
      "/api/v1/namespaces/kube-system/pods k8s-app=kube-dns": current.dnsPods,
      "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": current.leases,
      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases metadata.name=kube-controller-manager":
        current.manager,
      "/api/v1/namespaces/kube-system/configmaps metadata.name=zoned-etcd-snapshot":
        current.snapshot === undefined ? [] : [{ data: current.snapshot }],
      "/api/v1/persistentvolumes": [],
      "/api/v1/services": [],
      "/apis/apps/v1/daemonsets": current.daemonSets,
      "/apis/apps/v1/deployments": current.deployments,
      "/apis/storage.k8s.io/v1/storageclasses": [
        {
          metadata: { name: "zonal" },
          provisioner: "disk.csi.azure.com",
          parameters: { skuName: "Premium_LRS" },
        },
      ],
    };
    const items = lists[[pathname, ...searchParams.values()].join(" ")];
    return send(items ? 200 : 404, JSON.stringify({ items }));
  }, certificateDays * 24);
  return {
    kubeconfig,
    /** What /readyz answers, and how often it was asked. */
    readiness,
  };
}
