import { KubernetesApi, KubernetesObject } from "../../components/cluster/kubernetes-api";
import { controlPlaneMark } from "../../components/settings/topology";
import { markdownTable } from "../shared/columns";
import type { Workload } from "./cluster-state";
import type { Cluster } from "./doctor";

interface Node extends Pick<KubernetesObject, "metadata"> {
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
    readonly nodeInfo?: Readonly<
      Record<"kubeletVersion" | "osImage" | "kernelVersion" | "containerRuntimeVersion", string>
    >;
  };
}

interface StorageClass extends Pick<KubernetesObject, "metadata"> {
  readonly provisioner: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

/** What a cluster consists of: versions, conditions and dates, by the API alone. No Secret is read. */
export interface Inventory {
  readonly nodes: readonly Node[];
  readonly daemonSets: readonly Workload[];
  readonly deployments: readonly Workload[];
  readonly storageClasses: readonly StorageClass[];
}

export async function getInventory({ kubeconfig, proxy }: Cluster): Promise<Inventory> {
  const api = new KubernetesApi(kubeconfig, proxy);
  const [nodes, daemonSets, deployments, storageClasses] = await Promise.all([
    api.list<Node>("/api/v1/nodes"),
    api.list<Workload>("/apis/apps/v1/daemonsets"),
    api.list<Workload>("/apis/apps/v1/deployments"),
    api.list<StorageClass>("/apis/storage.k8s.io/v1/storageclasses"),
  ]).finally(() => api.close());
  return { nodes, daemonSets, deployments, storageClasses };
}

/** A condition that a healthy node does not have, with its message. */
const unusual = ({ status }: Node): string =>
  (status?.conditions ?? [])
    .filter((one) => one.status !== (one.type === "Ready" ? "True" : "False"))
    .map(({ type, status, message = "" }) => `${type} is ${status}: ${message}`)
    .join("; ");

const nodeRow = (node: Node): string[] => {
  const { name, labels = {}, creationTimestamp = "" } = node.metadata;
  const { kubeletVersion, osImage, kernelVersion, containerRuntimeVersion } =
    node.status?.nodeInfo ?? {};
  return [
    name,
    controlPlaneMark in labels ? "control-plane" : "worker",
    labels["topology.kubernetes.io/zone"] ?? "none",
    labels["node.kubernetes.io/instance-type"] ?? "none",
    ...[kubeletVersion, osImage, kernelVersion, containerRuntimeVersion].map((text) => text ?? "?"),
    creationTimestamp,
    unusual(node),
  ];
};

const workloadRow =
  (kind: string) =>
  ({ metadata, spec, status }: Workload): string[] => [
    kind,
    `${metadata.namespace}/${metadata.name}`,
    `${status?.numberReady ?? status?.readyReplicas ?? 0} of ${status?.desiredNumberScheduled ?? spec?.replicas ?? 0}`,
    [...new Set(spec?.template?.spec?.containers?.map(({ image }) => image))].join(", "),
  ];

/** The inventory as sections of a Markdown document. */
export const inventoryLines = (inventory: Inventory): string[] => [
  "## Nodes",
  "",
  markdownTable(
    "name,role,zone,size,kubelet,OS,kernel,container runtime,created,conditions".split(","),
    inventory.nodes.map(nodeRow),
  ),
  "",
  "## Workloads",
  "",
  markdownTable(
    ["kind", "name", "ready", "images"],
    [
      ...inventory.daemonSets.map(workloadRow("DaemonSet")),
      ...inventory.deployments.map(workloadRow("Deployment")),
    ],
  ),
  "",
  "## StorageClasses",
  "",
  markdownTable(
    ["name", "provisioner", "parameters"],
    inventory.storageClasses.map(({ metadata, provisioner, parameters = {} }) => [
      metadata.name,
      provisioner,
      Object.entries(parameters)
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ]),
  ),
];
