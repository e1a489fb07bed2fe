import type { Answer } from "../model/answer";
import type { NodeDump } from "../model/dump";
import { builtIn, type Iptables } from "../model/iptables";
import type { Table } from "../model/nftables";
import type { Packet } from "../model/packet";
import { isLocal } from "./addresses/local";
import { podsOf } from "./addresses/pods";
import { type BaseChain, type Node, Path, tablesOf } from "./context";
import { type Flow, start } from "./flow";
import { baseChains as iptablesChains } from "./rules/iptables";
import { baseChains as ipvsChains } from "./ipvs";
import { Kernel } from "./kernel";
import { asFarAsDumped } from "./missing-dumps";
import { modeOf } from "./mode";
import { baseChains as nftablesChains } from "./rules/nftables";
import { outcomeOf } from "./outcome";

/** Takes the packet through what the dumps say of the node, hook by hook as the kernel does. */
export function trace(dump: NodeDump, packet: Packet): Answer {
  const family = packet.destination.includes(":") ? 6 : 4;
  const pods = podsOf(dump, family);
  const node: Node = { dump, packet, family, podRanges: pods.ranges, podDevices: pods.devices };
  const path = new Path();
  dump.notes.forEach((note) => path.note(note));
  const flows = new Kernel(node, path, chainsOf(node, path)).run(sent(node, path));
  const outcome = asFarAsDumped(node, flows, path, outcomeOf(flows));
  remark(node, flows, path);
  return {
    mode: modeOf(dump, flows),
    packet,
    steps: path.steps,
    ...outcome,
    notes: [...path.notes],
  };
}

function chainsOf(node: Node, path: Path): BaseChain[] {
  const iptables = tablesOf(node);
  const missing = Object.keys(builtIn).filter(
    (name) => iptables !== null && !iptables.tables.has(name),
  );
  if (missing.includes("filter") || missing.includes("nat")) {
    const names = missing.filter((name) => name === "filter" || name === "nat");
    path.note(
      `Table ${names.join(" and table ")} is in no dump, so what it would do to the packet is left out.`,
    );
  }
  iptables?.notes.forEach((note) => path.note(note));
  return [
    ...(iptables === null ? [] : iptablesChains(iptables)),
    ...(node.dump.ipvs === null ? [] : ipvsChains(node.dump.ipvs)),
    ...ofNftables(node, iptables, path),
  ];
}

/**
 * iptables-nft keeps its rules in tables that nft lists too, but without what nft has no words for.
 */
function ofNftables(
  { dump: { ipvs, nftables }, family }: Node,
  iptables: Iptables | null,
  path: Path,
): BaseChain[] {
  if (nftables === null) return [];
  const inIpvsMode = (ipvs?.servers.size ?? 0) > 0;
  const asked = ({ family: of, name, ofIptables }: Table): boolean => {
    if (!ofIptables) return true;
    if (!inIpvsMode && iptables?.tables.has(name) !== true) {
      path.note(
        `iptables keeps table ${of} ${name}, and nft does not show all that its rules ask: take \`iptables-save\` to be sure.`,
      );
      return true;
    }
    const why =
      iptables?.tables.has(name) === true
        ? "iptables keeps it, and its own dump is more complete"
        : "nft does not show which sets its rules ask, and IPVS mode hangs on those; take `iptables-save` too";
    path.note(`Of ${nftables.file} table ${of} ${name} is left out: ${why}.`);
    return false;
  };
  return nftablesChains(nftables, family, asked);
}

/**
 * To one of its own addresses the node sends from that address, unless the program picks another.
 */
function sent(node: Node, path: Path): Flow {
  const flow = start(node.packet);
  if (
    flow.from !== "node" ||
    flow.source !== null ||
    isLocal(node, flow.destination, path) !== true
  )
    return flow;
  path.note(`To ${flow.destination}, an address of its own, the node sends from that address.`);
  return { ...flow, source: flow.destination };
}

/** What others rewrite is noted apart from what kube-proxy does. */
function remark(node: Node, flows: readonly Flow[], path: Path): void {
  for (const flow of flows) {
    for (const other of flow.dnat.filter((each) => !each.kubeProxy)) {
      path.note(`Not by kube-proxy: ${other.by} sends the packet to ${other.to}.`);
    }
    for (const other of flow.snat.filter((each) => !each.kubeProxy)) {
      path.note(`Not by kube-proxy: ${other.by} makes the source ${other.to}.`);
    }
  }
  const service = flows.some((flow) => flow.dnat.some((each) => each.kubeProxy));
  if (service && node.packet.destination.startsWith("127.")) {
    path.note(
      "A connection to 127.0.0.0/8 leaves it only where net.ipv4.conf.all.route_localnet is 1.",
    );
  }
}
