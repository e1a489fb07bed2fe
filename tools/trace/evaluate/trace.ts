import type { Answer, Packet } from "../model/packet";
import type { NodeDump } from "../model/dump";
import { builtIn, type Iptables } from "../model/iptables";
import type { Table } from "../model/nftables";
import { isLocal } from "./addresses";
import { type BaseChain, type Hook, type HookContext, type Node, Path, tablesOf } from "./context";
import { anyDevice, type Decision, type Flow, fork, merge, noDevice, start } from "./flow";
import { baseChains as ipvsChains } from "./ipvs";
import { asFarAsDumped, modeOf } from "./missing-dumps";
import { outcomeOf } from "./outcome";
import { baseChains as iptablesChains } from "./rules/iptables";
import { baseChains as nftablesChains } from "./rules/nftables";
import { podsOf } from "./services";

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

class Kernel {
  private readonly hooks = new Map<Hook, readonly BaseChain[]>();

  constructor(
    private readonly node: Node,
    private readonly path: Path,
    chains: readonly BaseChain[],
  ) {
    const sorted = [...chains].sort((a, b) => a.priority - b.priority);
    for (const hook of ["prerouting", "input", "forward", "output", "postrouting"] as const) {
      this.hooks.set(
        hook,
        sorted.filter((chain) => chain.hook === hook),
      );
    }
  }

  /** Takes the packet through netfilter's hooks, along every possible path. */
  run(flow: Flow): Flow[] {
    if (flow.from === "node") return this.output(flow);
    return this.each(this.hook("prerouting", [flow]), (routed) =>
      this.route(
        routed,
        (flow) => this.input(flow),
        (flow) => this.forward(flow),
      ),
    );
  }

  /** A packet sent by a local process, or by IPVS for a remote client. */
  private output(flow: Flow): Flow[] {
    return this.each(this.hook("output", [flow]), (sent) => {
      // IPVS sends the packet through output once more, now to the real server.
      if (sent.ipvs && !flow.ipvs) return this.output({ ...sent, dstNatDone: true });
      return this.each(this.hook("postrouting", [sent]), (gone) =>
        gone.from === "node" ? this.loopback(gone) : [gone],
      );
    });
  }

  /** A packet to one of the node's own addresses comes back in by lo. */
  private loopback(flow: Flow): Flow[] {
    if (isLocal(this.node, flow.destination, this.path) !== true) return [flow];
    const back = { ...flow, inDevice: { ...anyDevice, name: "lo" }, outDevice: noDevice };
    return this.each(this.hook("prerouting", [back]), (flow) => this.input(flow));
  }

  private input(flow: Flow): Flow[] {
    return this.each(this.hook("input", [{ ...flow, outDevice: noDevice }]), (taken) => {
      if (!taken.ipvs || flow.ipvs || isLocal(this.node, taken.destination, this.path) === true)
        return [taken];
      return this.output({ ...taken, inDevice: noDevice, outDevice: anyDevice });
    });
  }

  private forward(flow: Flow): Flow[] {
    const out = { ...flow, outDevice: anyDevice };
    return this.each(this.hook("forward", [out]), (sent) => this.hook("postrouting", [sent]));
  }

  private route(
    flow: Flow,
    input: (flow: Flow) => Flow[],
    forward: (flow: Flow) => Flow[],
  ): Flow[] {
    const local: Decision = isLocal(this.node, flow.destination, this.path);
    if (local === true) return input(flow);
    if (local === false) return forward(flow);
    if (flow.dnat.length > 0) {
      this.path.note(
        `${flow.destination} is taken for the address of another machine or of a pod: there is no \`ip addr\` that says otherwise.`,
      );
      return forward(flow);
    }
    const { yes, no } = fork(flow, {
      id: `local ${flow.destination}`,
      why: local.why,
      by: null,
    });
    return [...(yes === null ? [] : input(yes)), ...(no === null ? [] : forward(no))];
  }

  private each(flows: readonly Flow[], go: (flow: Flow) => Flow[]): Flow[] {
    return merge(flows.flatMap((flow) => (flow.verdict === null ? go(flow) : [flow])));
  }

  private hook(hook: Hook, flows: readonly Flow[]): Flow[] {
    const context: HookContext = { node: this.node, path: this.path, hook };
    const destination = hook === "prerouting" || hook === "output";
    const source = hook === "postrouting" || hook === "input";
    let ways = [...flows];
    for (const chain of this.hooks.get(hook) ?? []) {
      ways = this.each(ways, (flow) => {
        const settled = destination ? flow.dstNatDone : flow.srcNatDone;
        if (chain.nat && (settled || !flow.tracked)) return [flow];
        if (flow.ipvs && !flows[0]!.ipvs) return [flow];
        return chain.walk(flow, context);
      });
    }
    // A packet that IPVS takes at a hook skips that hook's remaining chains.
    return ways.map((flow) =>
      flow.ipvs && !flows[0]!.ipvs
        ? flow
        : {
            ...flow,
            dstNatDone: flow.dstNatDone || destination,
            srcNatDone: flow.srcNatDone || source,
          },
    );
  }
}
