import type { Packet } from "../model/packet";

/** Whether a packet matches: yes, no, or why the dumps leave it open. */
export type Decision = boolean | Undecided;

export interface Undecided {
  /** Half a sentence that completes "it cannot be decided …". */
  readonly why: string;
  /** What a flow knows once it is taken that the match holds, or does not. */
  readonly learn?: (flow: Flow, holds: boolean) => Flow;
}

/** Whether one of several things holds. */
export const anyOf = (decisions: readonly Decision[]): Decision =>
  decisions.find((each) => each === true) ?? decisions.find((each) => each !== false) ?? false;

/** One rule that was followed both ways, and which of the two this flow took. */
export interface Doubt {
  /** The same for every flow that meets the same rule. */
  readonly id: string;
  readonly taken: boolean;
  /** Half a sentence that completes "it cannot be decided …". */
  readonly why: string;
  /** The rule, as a person would look for it; null where the kernel itself asks. */
  readonly by: string | null;
}

/** A rewriting of an address, and the rule that does it. */
export interface Translation {
  /**
   * `10.0.0.1:80`, `[fd00::1]:80`; for a source also without a port, or "the address of the
   * interface".
   */
  readonly to: string;
  /** Table, chain and rule as a person would look for them. */
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
 * What is known of an interface: its name, or names and patterns (`cali+`) that it is and is not.
 */
export interface Device {
  readonly name: string | null;
  readonly like: readonly string[];
  readonly unlike: readonly string[];
}

/** One of the ways that the packet may go. Never changed: a step makes a new one. */
export interface Flow {
  /**
   * Chance by the rules' own choice; what cannot be decided stands in `doubts` and has no chance.
   */
  readonly probability: number;
  readonly doubts: readonly Doubt[];
  readonly from: Packet["from"];
  readonly source: string | null;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Packet["protocol"];
  /** The firewall mark, and the connection's. */
  readonly mark: number;
  readonly connmark: number;
  /** False after NOTRACK: then chains of type nat do not see the packet. */
  readonly tracked: boolean;
  /**
   * Whether the connection's destination, or source, is settled: then no further chain of type nat
   * is asked.
   */
  readonly destinationSettled: boolean;
  readonly sourceSettled: boolean;
  readonly inDevice: Device;
  readonly outDevice: Device;
  /** Rewritings of the destination and of the source, in the order in which they happened. */
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
    destinationSettled: false,
    sourceSettled: false,
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
 * Both ways past something undecided, [it holds, it does not]; only one where an earlier doubt
 * settles it.
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

/** The packet with a new destination: where it leaves is open again. */
export function redirect(flow: Flow, address: string, port: number, by: Translation): Flow {
  return {
    ...flow,
    destination: address,
    port,
    destinationSettled: true,
    outDevice: flow.outDevice.name === "" ? noDevice : anyDevice,
    dnat: [...flow.dnat, by],
  };
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export function socket(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
