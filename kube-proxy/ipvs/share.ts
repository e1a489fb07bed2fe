import type { RealServer, VirtualServer } from "./virtual-server";

export interface Share {
  readonly server: RealServer;
  readonly probability: number;
}

/** Schedulers that only ask whether a weight is above zero. */
const equal = new Set(["rr", "lc", "dh"]);
/** What decides besides the weights, and stands in no dump. */
const onState: Readonly<Record<string, string>> = {
  lc: "the number of connections each real server has now",
  wlc: "the number of connections each real server has now",
  sed: "the number of connections each real server has now",
  nq: "the number of connections each real server has now",
  lblc: "which real server holds this destination, and how many connections it has",
  lblcr: "which real servers hold this destination, and how many connections they have",
  sh: "a hash of the source address",
  dh: "a hash of the destination address, the same for every client",
  mh: "a hash of the source address",
  ovf: "the number of connections each real server has now",
  twos: "the number of connections of two real servers picked at random",
};

/** How new connections are spread; of an empty list the virtual service has nothing to send to. */
export function sharesOf({ scheduler, realServers }: VirtualServer): Share[] {
  const active = realServers.filter((server) => server.weight > 0);
  const highest = Math.max(...active.map((server) => server.weight));
  const preferred =
    scheduler === "fo" || scheduler === "ovf"
      ? active.filter((server) => server.weight === highest).slice(0, 1)
      : active;
  const weight = (server: RealServer): number => (equal.has(scheduler) ? 1 : server.weight);
  const total = preferred.reduce((sum, server) => sum + weight(server), 0);
  return preferred.map((server) => ({ server, probability: weight(server) / total }));
}

/** A note where the share is more than the weights say; null for rr, wrr and fo. */
export function remarkOn({ scheduler }: VirtualServer): string | null {
  const state = onState[scheduler];
  if (state !== undefined) {
    return `IPVS scheduler ${scheduler} picks by ${state}; the shares shown are those of the weights over many connections.`;
  }
  if (["rr", "wrr", "fo"].includes(scheduler)) return null;
  return `IPVS scheduler ${scheduler} is not a known one; the shares shown are those of the weights.`;
}
