import type { Answer, Packet } from "../../../model/packet";
import type { Mode } from "../../../../lab/packets/cluster";
import cases from "./golden/cases.json";
import type { Probe } from "../../../../lab/packets/probe-agent";
import type { AgentName } from "../../../../lab/packets/start-agents";

/** What is expected of one packet; a row of golden/cases.json. */
interface Row {
  readonly claim: string;
  readonly from: Packet["from"];
  readonly source: string;
  /** As `--to` takes it. */
  readonly to: string;
  readonly verdict: Answer["verdict"];
  /** In equal shares, as kube-proxy always makes them. */
  readonly endpoints?: readonly string[];
  /** A list names those endpoints that see another source than this one. */
  readonly masquerade: boolean | readonly string[];
  readonly affinitySeconds?: number;
  /** How many connections are made, where shares are to be seen. */
  readonly times?: number;
  /** Why no packet of this kind is sent here. */
  readonly unsent?: string;
  /** What these modes do otherwise. */
  readonly iptables?: Partial<Row>;
  readonly ipvs?: Partial<Row>;
}

export interface Case {
  readonly title: string;
  readonly packet: Packet;
  readonly expected: Pick<Answer, "verdict" | "endpoints" | "masquerade" | "affinitySeconds">;
  /** From where and how to try it; null when it cannot be tried. */
  readonly trial: readonly [AgentName, Probe] | null;
}

export const casesOf = (mode: Mode): readonly Case[] =>
  (cases as readonly Row[]).map((row) => caseOf({ ...row, ...(mode !== "nftables" && row[mode]) }));

function caseOf(row: Row): Case {
  const { from, source, to } = row;
  const [, address = "", port, protocol] = /^\[?([^\]]+?)\]?:(\d+)\/(\w+)$/.exec(to) ?? [];
  const packet: Packet = {
    from,
    source,
    destination: address,
    port: Number(port),
    protocol: protocol as Packet["protocol"],
  };
  return {
    title: `${row.claim}: ${from} ${source} to ${to}`,
    packet,
    expected: expectedOf(row),
    trial: row.unsent === undefined ? [placeOf(packet), probeOf(packet, row)] : null,
  };
}

function expectedOf(row: Row): Case["expected"] {
  const { verdict, endpoints = [], masquerade, affinitySeconds = null } = row;
  const some = typeof masquerade === "boolean" ? undefined : masquerade;
  return {
    verdict,
    endpoints: endpoints.map((address) => ({
      address,
      probability: 1 / endpoints.length,
      ...(some && { masquerade: some.includes(address) }),
    })),
    masquerade: typeof masquerade === "boolean" ? masquerade : "unknown",
    affinitySeconds,
  };
}

const enough = 80;

const forDrops = 3;

function probeOf({ destination, port, protocol, source }: Packet, row: Row): Probe {
  const drops = row.verdict === "drop";
  return {
    address: destination,
    port,
    protocol: protocol === "udp" ? "udp" : "tcp",
    source,
    count: row.times ?? (drops ? forDrops : enough),
    // Whom a client stays with is settled by its first connection.
    concurrency: row.affinitySeconds === undefined ? 50 : 1,
    timeoutMs: drops ? 400 : 10_000,
  };
}

/** Whose address it is; `network.ts` gives them out. */
function placeOf({ from, source }: Packet): AgentName {
  if (from !== "pod") return from;
  return /[.:]2$/.test(source ?? "") ? "pod-a" : "client";
}
