import type { Check } from "./check";
import type { Cluster, Report } from "./doctor";
import { KubernetesApi, KubernetesObject } from "../../components/cluster/kubernetes-api";
import { controlPlaneMark } from "../../components/settings/topology";
import { markdownTable } from "../shared/columns";
import type { Workload } from "./cluster-state";

const markOf = ({ problems, notAsked }: Check): string =>
  notAsked !== undefined ? "-" : problems.length === 0 ? "✓" : "✗";

/** A line per check that has passed, and a line per problem of one that has not. */
export const checkLines = ({ checks }: Report): string[] =>
  checks.flatMap((check) => {
    const { name, saw, problems, notAsked } = check;
    const head = `${markOf(check)} ${name}: `;
    if (notAsked !== undefined) return [`${head}not asked, ${notAsked}`];
    if (problems.length === 0) return [`${head}${saw}`];
    return problems.map(
      (problem) =>
        `${head}${problem.machine === undefined ? "" : `${problem.machine}: `}${problem.saw} → ${problem.fix}`,
    );
  });

/** Names of the machines that some problem is about. */
const sickIn = ({ checks }: Report): ReadonlySet<string | undefined> =>
  new Set(checks.flatMap(({ problems }) => problems.map(({ machine }) => machine)));

/** Whether Nodes were asked for: the API may not have let it come to that. */
const knowsMachines = ({ checks }: Report): boolean => checks.some(({ name }) => name === "Nodes");

function machinesByZone(report: Report) {
  const sick = sickIn(report);
  const known = knowsMachines(report);
  const machines = report.machines.map(({ name, role, zone }) => ({
    ...{ name, role, zone },
    passed: known ? !sick.has(name) : null,
  }));
  const zones = [...new Set(machines.map(({ zone }) => zone))].sort();
  return zones.map((zone) => [zone, machines.filter((one) => one.zone === zone)] as const);
}

/** Machines by zone, as a table for a terminal. */
export function zoneLines(report: Report): string[] {
  const zones = machinesByZone(report);
  const width = Math.max(4, ...zones.map(([zone]) => zone.length));
  const mark = (passed: boolean | null) => (passed === null ? "?" : passed ? "✓" : "✗");
  return [
    `${"ZONE".padEnd(width)}  MACHINES`,
    ...zones.map(
      ([zone, machines]) =>
        `${zone.padEnd(width)}  ${machines.map(({ name, passed }) => `${mark(passed)} ${name}`).join("  ")}`,
    ),
  ];
}

/** How many checks have failed, in words; for the last line and for progress. */
export function verdict({ checks, looked, healthy }: Report): string {
  if (healthy) return "healthy";
  if (!looked) return "could not look: the API does not answer";
  const failed = checks.filter((check) => markOf(check) === "✗").map(({ name }) => name);
  return `not healthy: ${failed.join(", ")}`;
}

/** All of it as one document. */
export function asJson(stack: string, report: Report): string {
  const { server, time, looked, healthy, checks } = report;
  return JSON.stringify(
    {
      ...{ stack, server, time, looked, healthy },
      checks: checks.map(({ name, saw, problems, notAsked }) => ({
        name,
        passed: notAsked === undefined ? problems.length === 0 : null,
        saw: notAsked ?? saw,
        problems,
      })),
      zones: Object.fromEntries(
        machinesByZone(report).map(([zone, machines]) => [
          zone,
          machines.map(({ name, role, passed }) => ({ name, role, passed })),
        ]),
      ),
    },
    null,
    2,
  );
}

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
