import type { Packet } from "../model/packet";

/** Whether a packet matches: true, false, or why the dumps cannot tell. */
export type Decision = boolean | Undecided;

export interface Undecided {
  /** Half a sentence that completes "it cannot be decided …". */
  readonly why: string;
  /** Narrows a flow once the match is assumed to hold, or not to hold. */
  readonly learn?: (flow: Flow, holds: boolean) => Flow;
}

/** Whether one of several things holds. */
export const anyOf = (decisions: readonly Decision[]): Decision =>
  decisions.find((each) => each === true) ?? decisions.find((each) => each !== false) ?? false;

/**
 * An undecidable question, of which both answers are followed, and the answer that this flow
 * assumes.
 */
interface Doubt {
  /** Equal for all flows that meet the same question. */
  readonly id: string;
  readonly taken: boolean;
  /** Half a sentence that completes "it cannot be decided …". */
  readonly why: string;
  /** The rule that asks, as a person would search for it; null for a routing decision. */
  readonly by: string | null;
}

/** A network address translation, and the rule that does it. */
export interface Translation {
  /**
   * `10.0.0.1:80`, `[fd00::1]:80`; for a source also without a port, or "the address of the
   * interface".
   */
  readonly to: string;
  /** Table, chain and rule as a person would search for them. */
  readonly by: string;
  /** Whether kube-proxy wrote the rule. */
  readonly kubeProxy: boolean;
}

export interface FinalVerdict {
  readonly kind: "drop" | "reject" | "unknown";
  /** One sentence: which rule, and why it is there. */
  readonly why: string;
}

/**
 * An interface: its name if known, and the names and patterns (`cali+`) that it matches and does
 * not.
 */
export interface Device {
  readonly name: string | null;
  readonly like: readonly string[];
  readonly unlike: readonly string[];
}

/** One of the packet's possible paths, immutable. */
export interface Flow {
  /**
   * The product of the rules' own probabilities. An undecidable question has none; it is in
   * `doubts`.
   */
  readonly probability: number;
  readonly doubts: readonly Doubt[];
  readonly from: Packet["from"];
  readonly source: string | null;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Packet["protocol"];
  /** The packet mark and the connection mark. */
  readonly mark: number;
  readonly connmark: number;
  /** False after NOTRACK: chains of type nat do not see an untracked packet. */
  readonly tracked: boolean;
  /**
   * As conntrack's IPS_DST_NAT_DONE and IPS_SRC_NAT_DONE: further chains of type nat are skipped.
   */
  readonly dstNatDone: boolean;
  readonly srcNatDone: boolean;
  readonly inDevice: Device;
  readonly outDevice: Device;
  /** Translations of the destination and of the source, in order. */
  readonly dnat: readonly Translation[];
  readonly snat: readonly Translation[];
  /** Whether IPVS has chosen a real server for it. */
  readonly ipvs: boolean;
  readonly affinitySeconds: number | null;
  /** Null while it goes on. */
  readonly verdict: FinalVerdict | null;
}

export const anyDevice: Device = { name: null, like: [], unlike: [] };

export const noDevice: Device = { name: "", like: [], unlike: [] };

export function start(packet: Packet): Flow {
  return {
    probability: 1,
    doubts: [],
    from: packet.from,
    source: packet.source,
    destination: packet.destination,
    port: packet.port,
    protocol: packet.protocol,
    mark: 0,
    connmark: 0,
    tracked: true,
    dstNatDone: false,
    srcNatDone: false,
    inDevice: packet.from === "node" ? noDevice : anyDevice,
    outDevice: packet.from === "node" ? anyDevice : noDevice,
    dnat: [],
    snat: [],
    ipvs: false,
    affinitySeconds: null,
    verdict: null,
  };
}

/**
 * The flow with each answer to an undecidable question; only one if the flow has answered it
 * already.
 */
export function fork(
  flow: Flow,
  { id, why, by }: Omit<Doubt, "taken">,
): { yes: Flow | null; no: Flow | null } {
  const earlier = flow.doubts.find((doubt) => doubt.id === id);
  if (earlier !== undefined) {
    return earlier.taken ? { yes: flow, no: null } : { yes: null, no: flow };
  }
  const way = (taken: boolean): Flow => ({
    ...flow,
    doubts: [...flow.doubts, { id, taken, why, by }],
  });
  return { yes: way(true), no: way(false) };
}

export function end(flow: Flow, kind: FinalVerdict["kind"], why: string): Flow {
  return { ...flow, verdict: { kind, why } };
}

/** Changes the destination. The outgoing interface is unknown again, since routing follows. */
export function redirect(flow: Flow, address: string, port: number, by: Translation): Flow {
  return {
    ...flow,
    destination: address,
    port,
    dstNatDone: true,
    outDevice: flow.outDevice.name === "" ? noDevice : anyDevice,
    dnat: [...flow.dnat, by],
  };
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socket(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * Merges equal flows: adds up their probabilities and drops questions whose answers made no
 * difference.
 *
 * @param keyOf equal for flows to merge; by default all state that later rules can see
 */
export function merge(flows: readonly Flow[], keyOf = stateOf): Flow[] {
  if (flows.length < 2) return [...flows];
  const alike = new Map<string, Flow[]>();
  for (const flow of flows) {
    const key = keyOf(flow);
    const others = alike.get(key);
    if (others === undefined) alike.set(key, [flow]);
    else others.push(flow);
  }
  return [...alike.values()].flatMap((group) => (group.length === 1 ? group : mergeAlike(group)));
}

function stateOf(flow: Flow): string {
  return JSON.stringify([
    flow.source,
    flow.destination,
    flow.port,
    flow.mark,
    flow.connmark,
    flow.tracked,
    flow.dstNatDone,
    flow.srcNatDone,
    flow.ipvs,
    flow.affinitySeconds,
    flow.dnat.map((each) => [each.to, each.by]),
    flow.snat.map((each) => each.by),
    flow.inDevice.name,
    flow.verdict,
  ]);
}

const doubtsKey = (doubts: readonly Doubt[]): string =>
  doubts.map((doubt) => `${doubt.taken ? "+" : "-"}${doubt.id}`).join("\n");

function mergeAlike(group: readonly Flow[]): Flow[] {
  const byDoubts = new Map<string, Flow>();
  const put = (flow: Flow): void => {
    const key = doubtsKey(flow.doubts);
    const same = byDoubts.get(key);
    if (same === undefined) byDoubts.set(key, flow);
    else byDoubts.set(key, { ...same, probability: same.probability + flow.probability });
  };
  group.forEach(put);
  // From the latest question on: if both answers lead to equal flows, it made no difference.
  const longest = Math.max(...group.map((flow) => flow.doubts.length));
  for (let length = longest; length > 0; length -= 1) {
    for (const [key, flow] of [...byDoubts]) {
      const last = flow.doubts.at(-1);
      if (flow.doubts.length !== length || last === undefined || !byDoubts.has(key)) continue;
      const before = flow.doubts.slice(0, -1);
      const otherKey = doubtsKey([...before, { ...last, taken: !last.taken }]);
      const other = byDoubts.get(otherKey);
      if (other === undefined || Math.abs(other.probability - flow.probability) > 1e-12) continue;
      byDoubts.delete(key);
      byDoubts.delete(otherKey);
      put({
        ...flow,
        doubts: before,
        inDevice: common(flow, other, "inDevice"),
        outDevice: common(flow, other, "outDevice"),
      });
    }
  }
  return [...byDoubts.values()];
}

function common(a: Flow, b: Flow, side: "inDevice" | "outDevice"): Flow["inDevice"] {
  const both = (key: "like" | "unlike"): string[] =>
    a[side][key].filter((name) => b[side][key].includes(name));
  return { name: a[side].name, like: both("like"), unlike: both("unlike") };
}
