import {
  create,
  createNode,
  type Mode,
  setZone,
  startApiServer,
  startProxy,
  written,
} from "../../../../lab/packets/cluster";
import { runLabTask, output, reportProgress } from "../../../../lab/packets/task";
import type { LabBinaries } from "../../../../lab/packets/machine";
import { buildNetwork, node, ranges } from "../../../../lab/packets/network";
import type { Probe, ProbeResult } from "../../../../lab/packets/probe-agent";
import { Agents, type AgentName } from "../../../../lab/packets/start-agents";
import { services } from "../../../../lab/packets/services";
import type { Dump } from "./golden-dumps";

export interface SessionTask {
  readonly binaries: LabBinaries;
  readonly modes: readonly Mode[];
  /** What to send, and from where, once the rules of a mode are there. */
  readonly probes: Readonly<Partial<Record<Mode, Probes>>>;
}

export interface Session {
  readonly dumps: readonly Dump[];
  /** How the connections of each probe ended. */
  readonly results: readonly ProbeResult[];
}

/** Services of every kind under a real kube-proxy: what it wrote, and where packets went. */
runLabTask<SessionTask, Partial<Record<Mode, Session>>>(async ({ binaries, modes, probes }) => {
  reportProgress("network, API server");
  await buildNetwork();
  await startApiServer(binaries, { services: ranges.services, node: node.v4 });
  await createNode(node);
  await create(services);
  const agents = Object.keys(probes).length > 0 ? await Agents.start() : undefined;
  const sessions: Partial<Record<Mode, Session>> = {};
  for (const mode of modes) {
    reportProgress(`kube-proxy with ${mode}`);
    const proxy = await startProxy(binaries["kube-proxy"], mode, {
      node: node.name,
      pods: ranges.pods,
    });
    // One that finds the zone there when it starts can lose it: its handler is registered after
    // the Node's event may have come (NodeTopologyConfig).
    const labelled = Date.now();
    await setZone(node.name, "1");
    await written(proxy, labelled);
    const dumps = await dump(mode);
    const results = agents ? await resultsOf(agents, probes[mode] ?? []) : [];
    sessions[mode] = { dumps, results };
    await proxy.stop();
    await setZone(node.name, null);
    await output("nft", "flush", "ruleset");
  }
  return sessions;
});

type Probes = readonly (readonly [AgentName, Probe])[];

const placesOf = (probes: Probes): AgentName[] => [...new Set(probes.map(([place]) => place))];

/** Sends all probes, side by side where they come from different places. */
async function resultsOf(agents: Agents, probes: Probes): Promise<ProbeResult[]> {
  const results: ProbeResult[] = [];
  await Promise.all(
    placesOf(probes).map(async (place) => {
      for (const [index, [from, probe]] of probes.entries()) {
        if (from === place) results[index] = await agents.probe(place, probe);
      }
    }),
  );
  return results;
}

const commands: Readonly<Record<Mode, readonly string[]>> = {
  iptables: [
    "iptables-save",
    "ip6tables-save",
    "iptables -t nat -nvL",
    "iptables -nvL",
    "nft list ruleset",
  ],
  nftables: ["nft list ruleset", "nft -j list ruleset"],
  ipvs: ["iptables-save", "ip6tables-save", "ipset save", "ipvsadm -Sn"],
};

/** What a node's kernel has; golden.test.ts derives the other formats in which people dump it. */
const dump = (mode: Mode): Promise<Dump[]> =>
  Promise.all(
    [...commands[mode], "ip address"].map(async (line) => {
      const [command = "", ...args] = line.split(" ");
      return { file: line, text: await output(command, ...args) };
    }),
  );
