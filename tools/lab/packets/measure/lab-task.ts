import { setTimeout as wait } from "node:timers/promises";

import { type Counts, countsOf, type NodeDump } from "../../../trace/model/dump";
import { nodeDump } from "../../../trace/read/read-dumps";
import {
  create,
  createNode,
  metric,
  type Mode,
  processorSeconds,
  remove,
  replaceEndpoints,
  startApiServer,
  startProxy,
  type Wanted,
} from "../cluster";
import { output, reportProgress, runAll, runLabTask } from "../task";
import type { LabBinaries } from "../machine";
import { buildNetwork, clusterIp, node, podHere, ranges } from "../network";
import type { Probe } from "../probe-agent";
import { Agents } from "../start-agents";

export interface MeasuringTask {
  readonly binaries: LabBinaries;
  readonly modes: readonly Mode[];
  /** In rising order. */
  readonly services: readonly number[];
  readonly endpoints: number;
}

export interface Measurement extends Written {
  readonly mode: Mode;
  readonly services: number;
  /** Of each Service. */
  readonly endpoints: number;
  /** kube-proxy's own figure for its first sync. */
  readonly firstSyncSeconds: number;
  /** Processor time of kube-proxy and its tools until then. */
  readonly firstCpuSeconds: number;
  /**
   * From the change in the API to the first packet that takes the new endpoint: median and worst.
   */
  readonly changeSeconds: number;
  readonly worstChangeSeconds: number;
  /** Processor time for one such change. */
  readonly changeCpuSeconds: number;
}

const changes = 5;

/**
 * kube-proxy writes at most once a second, so a change sooner than that waits for the one before.
 */
const restMs = 1500;

const port = { name: "http", port: 80, targetPort: 8080, protocol: "TCP" } as const;

const addressOf = (range: number, n: number): string =>
  `10.${range + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;

/** Services whose pods are all on other nodes; their addresses are all different. */
const loadOf = (services: number, endpoints: number): Wanted[] =>
  Array.from({ length: services }, (_, service) => ({
    name: `service-${service}`,
    ports: [port],
    clusterIp: { v4: addressOf(97, service) },
    endpoints: Array.from({ length: endpoints }, (_, n) => ({
      address: { v4: addressOf(244, 0x1000 + service * endpoints + n) },
      nodeName: "node-2",
    })),
  }));

/** A Service of one pod, which changes. */
const probe = (pod: number): Wanted => ({
  name: "probe",
  ports: [port],
  clusterIp: { v4: clusterIp(10).v4 },
  endpoints: [{ address: { v4: podHere(pod).v4 }, nodeName: node.name }],
});

runLabTask<MeasuringTask, Measurement[]>(async ({ binaries, modes, services, endpoints }) => {
  reportProgress("network, API server");
  await buildNetwork();
  await startApiServer(binaries, { services: first(ranges.services), node: node.v4 });
  await createNode(node);
  const agents = await Agents.start(["client", "pod-a", "pod-b"]);
  const load = loadOf(services.at(-1) ?? 0, endpoints);
  const measurements: Measurement[] = [];
  let made = 0;
  for (const count of services) {
    reportProgress(`making ${count} Services`);
    await create(load.slice(made, count));
    made = count;
    for (const mode of modes) {
      reportProgress(`${count} Services with ${mode}`);
      const figures = await measureOne(binaries["kube-proxy"], mode, agents);
      measurements.push({ ...figures, mode, services: count, endpoints });
    }
  }
  return measurements;
});

/** In IPVS mode every sync writes all, and no metric has that in its name. */
const firstSync: Readonly<Record<Mode, string>> = {
  iptables: "sync_full_proxy_rules_duration",
  nftables: "sync_full_proxy_rules_duration",
  ipvs: "sync_proxy_rules_duration",
};

type Figures = Omit<Measurement, "mode" | "services" | "endpoints">;

async function measureOne(binary: string, mode: Mode, agents: Agents): Promise<Figures> {
  const pods = first(ranges.pods);
  const proxy = await startProxy(binary, mode, { node: node.name, pods });
  const firstCpuSeconds = processorSeconds(proxy.pid);
  const firstSyncSeconds = await metric(`${firstSync[mode]}_seconds_sum`);
  const counts = await written(mode);
  await create([probe(3)]);
  await waitForEndpoint(agents, 3);
  const times: number[] = [];
  await wait(restMs);
  const before = processorSeconds(proxy.pid);
  for (let n = 0; n < changes; n += 1) {
    const pod = n % 2 === 0 ? 2 : 3;
    const since = performance.now();
    await replaceEndpoints(probe(pod));
    await waitForEndpoint(agents, pod);
    times.push((performance.now() - since) / 1000);
    await wait(restMs);
  }
  times.sort((a, b) => a - b);
  const changeCpuSeconds = (processorSeconds(proxy.pid) - before) / changes;
  await remove(probe(3));
  await proxy.stop();
  await output("nft", "flush", "ruleset");
  if (mode === "ipvs") await runAll("ipvsadm --clear\nip link delete kube-ipvs0\nipset destroy");
  const changeSeconds = times[Math.floor(changes / 2)] ?? 0;
  const worstChangeSeconds = times.at(-1) ?? 0;
  return {
    ...counts,
    firstSyncSeconds,
    firstCpuSeconds,
    changeSeconds,
    worstChangeSeconds,
    changeCpuSeconds,
  };
}

/** IPv4's of a pair. */
const first = (pair: string): string => pair.split(",")[0] ?? "";

/** Opens one connection after the other. */
async function waitForEndpoint(agents: Agents, pod: number): Promise<void> {
  const end = `${podHere(pod).v4}:8080`;
  const request: Probe = {
    address: clusterIp(10).v4,
    port: 80,
    protocol: "tcp",
    source: null,
    count: 1,
    concurrency: 1,
    timeoutMs: 200,
  };
  for (;;) {
    const { answers } = await agents.probe("client", request);
    if (end in answers) return;
    // Without a pause, it would take the processor from kube-proxy, for which it waits.
    await wait(10);
  }
}

/** What kube-proxy has written into the kernel, for IPv4. */
interface Written extends Counts {
  /** Rules in the chains of single endpoints. */
  readonly endpointRules: number;
}

const commands: Readonly<Record<Mode, readonly string[]>> = {
  iptables: ["iptables-save"],
  nftables: ["nft list table ip kube-proxy"],
  ipvs: ["iptables-save", "ipset save", "ipvsadm -Sn"],
};

async function written(mode: Mode): Promise<Written> {
  const texts = commands[mode].map(async (line) => {
    const [command = "", ...args] = line.split(" ");
    return { file: line, text: await output(command, ...args) };
  });
  const dump = nodeDump(await Promise.all(texts));
  return { ...countsOf(dump), endpointRules: endpointRules(dump) };
}

function endpointRules({ iptables4, nftables }: NodeDump): number {
  const tables = [...(iptables4?.tables.values() ?? []), ...(nftables?.tables.values() ?? [])];
  return tables
    .flatMap(({ chains }): [string, { rules: readonly unknown[] }][] => [...chains])
    .filter(([name]) => /^(KUBE-SEP|endpoint)-/.test(name))
    .reduce((sum, [, { rules }]) => sum + rules.length, 0);
}
