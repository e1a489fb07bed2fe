import { isOff } from "../../../components/azure/state";
import { named } from "../../../components/cluster/cluster-health";
import { isReady, type KubernetesObject } from "../../../components/cluster/kubernetes-api";
import { type AzureResources, referred, sameId, type VirtualMachine } from "./azure";
import type { ClusterAnswer, PersistentVolume } from "./cluster";

/** How well something is; `unknown` where nobody could be asked. */
export type Tone = "good" | "warn" | "bad" | "unknown";

/** In a word, which says the same as its colour. */
export interface Status {
  readonly tone: Tone;
  readonly word: string;
}

export interface Machine {
  readonly name: string;
  /** Empty where Azure has no zones. */
  readonly zone: string;
  /** Its role, and a worker's pool. */
  readonly kind: string;
  readonly size?: string;
  readonly address?: string;
  /** Of its VM. */
  readonly power: Status;
  /** Of its kubelet. */
  readonly version?: string;
  /** Of its Node. */
  readonly node: Status;
  /** What is not healthy, a sentence each. */
  readonly reasons: readonly string[];
  readonly disks: readonly Disk[];
}

/** What Azure has, and what the stack has and Azure lacks: control planes first. */
export function machinesOf(azure: AzureResources, cluster: ClusterAnswer): Machine[] {
  const planned = cluster.report.machines;
  const present = azure.machines.map((vm) => presentMachine(vm, azure, cluster));
  const missing = planned
    .filter(({ name }) => !present.some((one) => one.name === name))
    .map(({ name, role, zone }) => missingMachine(name, role, zone, cluster));
  return [...present, ...missing].sort(
    (a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}

function presentMachine(
  vm: VirtualMachine,
  azure: AzureResources,
  cluster: ClusterAnswer,
): Machine {
  const { name, zones, size, power } = vm;
  const { report, objects } = cluster;
  const role = report.machines.find((one) => one.name === name)?.role;
  const node = objects && named(objects.nodes, name);
  // In a resource group that others use too, their machines are off as they like.
  const azures = role === undefined ? [] : azuresReasons(vm);
  const reasons = [...azures, ...doctorsReasons(name, cluster)];
  return {
    ...{ name, size, reasons },
    zone: zones?.[0] ?? "",
    kind: role === undefined ? "not of this stack" : kindOf(name, role, cluster),
    address: addressesOf(vm, azure)[0],
    power: powerOf(power),
    version: node?.status?.nodeInfo?.kubeletVersion,
    node: objects === undefined ? notAsked : nodeOf(node, reasons),
    disks: attachedTo(vm, azure, objects?.volumes ?? []),
  };
}

const missingMachine = (
  name: string,
  role: string,
  zone: string,
  cluster: ClusterAnswer,
): Machine => ({
  name,
  zone: /-(\d)$/.exec(zone)?.[1] ?? "",
  kind: kindOf(name, role, cluster),
  power: { tone: "bad", word: "no VM" },
  node: cluster.objects === undefined ? notAsked : nodeOf(named(cluster.objects.nodes, name), []),
  reasons: [
    "the stack's outputs have it, and Azure has no such VM",
    ...doctorsReasons(name, cluster),
  ],
  disks: [],
});

/** Private addresses of a machine, the one of its Node first. */
export const addressesOf = ({ id }: VirtualMachine, { interfaces }: AzureResources): string[] =>
  interfaces
    .filter(({ properties }) => sameId(properties.virtualMachine?.id, id))
    .flatMap(({ properties }) => properties.ipConfigurations ?? [])
    .flatMap(({ properties }) => properties.privateIPAddress ?? []);

/** Machines are named by cluster, pool and number, control planes by cluster, cp and number. */
function kindOf(name: string, role: string, { report }: ClusterAnswer): string {
  if (role === "control-plane") return "control plane";
  const controlPlane = report.machines.find((one) => one.role === "control-plane");
  const prefix = controlPlane?.name.replace(/cp-\d+$/, "") ?? "";
  return `worker, pool ${name.slice(prefix.length).replace(/-\d+$/, "")}`;
}

const azuresReasons = ({ power, provisioningState = "", bootstrap = "" }: VirtualMachine) => [
  ...(power !== undefined && isOff({ power }) ? [`its VM is ${power}`] : []),
  ...(provisioningState === "Failed" ? ["Azure has failed to make or change its VM"] : []),
  ...(bootstrap === "Failed" ? ["its bootstrap step has failed"] : []),
];

const doctorsReasons = (machine: string, { report }: ClusterAnswer): string[] =>
  report.checks
    .flatMap(({ problems }) => problems)
    .filter((problem) => problem.machine === machine)
    .map(({ saw }) => saw);

const powerOf = (power: string | undefined): Status =>
  power === undefined
    ? { tone: "unknown", word: "VM state unknown" }
    : { tone: isOff({ power }) ? "bad" : "good", word: `VM ${power}` };

const notAsked: Status = { tone: "unknown", word: "Node not asked" };

function nodeOf(node: KubernetesObject | undefined, reasons: readonly string[]): Status {
  if (node === undefined) return { tone: "bad", word: "no Node" };
  if (!isReady(node)) return { tone: "bad", word: "NotReady" };
  if (node.spec?.unschedulable) return { tone: "warn", word: "Ready, cordoned" };
  return reasons.length > 0
    ? { tone: "bad", word: "Ready, not healthy" }
    : { tone: "good", word: "Ready" };
}

export interface Disk {
  /** The claim of its PersistentVolume, where it has one. */
  readonly label: string;
  /** Its name in Azure. */
  readonly name: string;
  /** Size and SKU. */
  readonly kind: string;
}

const diskKind = (size: number | undefined, sku: string | undefined): string =>
  [size === undefined ? "" : `${size} GiB`, sku ?? ""].filter((part) => part !== "").join(" ");

function labelOf(id: string | undefined, volumes: readonly PersistentVolume[]): string | undefined {
  const volume = volumes.find(({ spec }) => sameId(spec.csi?.volumeHandle, id));
  if (volume === undefined) return undefined;
  const { namespace, name } = volume.spec.claimRef ?? {};
  const phase = volume.status?.phase ?? "Bound";
  return `${name === undefined ? volume.metadata.name : `${namespace}/${name}`}${phase === "Bound" ? "" : ` (${phase})`}`;
}

/** Disks of a machine: its own first, then the volumes that are attached to it. */
function attachedTo(
  { osDisk, dataDisks }: VirtualMachine,
  { disks }: AzureResources,
  volumes: readonly PersistentVolume[],
): Disk[] {
  const drawn = (
    { name, diskSizeGB, managedDisk }: (typeof dataDisks)[number],
    label: string,
  ): Disk => {
    const disk = referred(disks, managedDisk);
    const size = disk?.properties.diskSizeGB ?? diskSizeGB;
    const sku = disk?.sku?.name ?? managedDisk?.storageAccountType;
    return { name, label, kind: diskKind(size, sku) };
  };
  return [
    ...(osDisk === undefined ? [] : [drawn(osDisk, "OS disk")]),
    ...dataDisks.map((one) => drawn(one, labelOf(one.managedDisk?.id, volumes) ?? one.name)),
  ];
}

/** Disks that are attached to no machine; the zone is empty where a disk has none, or all. */
export const looseDisks = (
  { disks }: AzureResources,
  volumes: readonly PersistentVolume[],
): (Disk & { readonly zone: string })[] =>
  disks
    .filter(({ managedBy }) => !managedBy)
    .map(({ id, name, zones = [], sku, properties }) => ({
      zone: zones[0] ?? "",
      ...{ name, label: labelOf(id, volumes) ?? name },
      kind: diskKind(properties.diskSizeGB, sku?.name),
    }));
