import { dirname, join } from "node:path";

import { parse, stringify } from "yaml";

import { columns } from "../../shared/columns";
import { run } from "../../shared/run";
import { UserError } from "../../shared/user-error";
import { type Address, type Attachment, endpointOf } from "../daemon/attachment";
import { type Progress, spoken } from "../../shared/progress";
import type { MachineReport } from "../machines/machines";

/** A machine in the stack's output. */
export interface MachineOutput {
  readonly name: string;
  readonly role: string;
  readonly zone: string;
  readonly address: string;
}

interface KubeNode {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Kubeconfig {
  clusters: { cluster: { server: string; "proxy-url"?: string; "tls-server-name"?: string } }[];
}

/** The name that a kubeconfig calls the API by. */
export function apiNameIn(kubeconfig: string): string {
  const server = (parse(kubeconfig) as Kubeconfig).clusters[0]?.cluster.server;
  if (server === undefined) throw new UserError("the stack's kubeconfig names no server");
  return new URL(server).hostname;
}

/**
 * The same kubeconfig for use on this host, where the API's name resolves to nothing: same
 * certificates, checked by the same name. A proxy that it names knows that name.
 */
export function reachableHere(kubeconfig: string, { host, port }: Address): string {
  const config = parse(kubeconfig) as Kubeconfig;
  for (const { cluster } of config.clusters) {
    if (cluster["proxy-url"] !== undefined) continue;
    cluster["tls-server-name"] = new URL(cluster.server).hostname;
    cluster.server = `https://${host}:${port}`;
  }
  return stringify(config);
}

/** The nodes as the API lists them now. */
export async function nodesOf(binaries: string, kubeconfig: string): Promise<readonly KubeNode[]> {
  const listed = await run([
    join(binaries, "kubectl"),
    // By default it keeps what it learns of the API in the user's home, where npm stop leaves it.
    ...["--cache-dir", join(dirname(kubeconfig), "kubectl-cache"), "--kubeconfig", kubeconfig],
    ...["get", "nodes", "--output", "json", "--request-timeout", "20s"],
  ]);
  return (JSON.parse(listed) as { items: KubeNode[] }).items;
}

const zoneLabel = "topology.kubernetes.io/zone";

/** A line per machine: what the stack says of it, and whether the cluster calls it ready. */
export function machineTable(
  machines: readonly MachineOutput[],
  nodes: readonly KubeNode[],
): string {
  const rows = machines.map(({ name, role, zone, address }) => {
    const node = nodes.find(({ metadata }) => metadata.name === name);
    return [
      name,
      node?.metadata.labels?.[zoneLabel] ?? `${zone} (no node)`,
      address,
      role,
      readiness(node),
    ];
  });
  return columns([["MACHINE", "ZONE", "ADDRESS", "ROLE", "READY"], ...rows]);
}

function readiness(node: KubeNode | undefined): string {
  if (!node) return "no node";
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready")?.status;
  return ready === "True" ? "yes" : "no";
}

const lookEvery = 2_000;

/** Lines on machines whose step has changed since the last look. */
export function changesOf(
  before: ReadonlyMap<string, MachineReport>,
  now: readonly MachineReport[],
): string[] {
  return now.flatMap(({ name, power, step }) => {
    const last = before.get(name);
    const lines: string[] = [];
    if (last !== undefined && last.power !== power) lines.push(`  ${name}: ${power}`);
    if (last?.step && last.step !== step) {
      lines.push(`  ${name}: ${last.step} (${spoken(last.seconds * 1000)})`);
    }
    return lines;
  });
}

/** Says what real machines are at while something else is awaited; returns how to end that. */
export function followMachines({ ports }: Attachment, progress: Progress): () => void {
  let before = new Map<string, MachineReport>();
  const timer = setInterval(async () => {
    const response = await fetch(`${endpointOf(ports)}/local/health`).catch(() => undefined);
    const { machines = [] } = ((await response?.json().catch(() => undefined)) ?? {}) as {
      machines?: readonly MachineReport[];
    };
    for (const line of changesOf(before, machines)) progress.line(line);
    before = new Map(machines.map((one) => [one.name, one]));
  }, lookEvery).unref();
  return () => clearInterval(timer);
}
