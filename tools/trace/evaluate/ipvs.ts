import { keyOf, type RealServer, type VirtualServer, type VirtualServers } from "../model/dump";
import type { BaseChain, HookContext } from "./context";
import { end, type Flow, redirect, socket } from "./flow";
import { isInSet } from "./ipset";

/**
 * IPVS sits behind everything in input, and in output right behind the rewriting of destinations.
 */
export function baseChains(servers: VirtualServers): BaseChain[] {
  const walk = (flow: Flow, context: HookContext): Flow[] =>
    flow.ipvs ? [flow] : balance(servers, flow, context);
  return [
    { table: "ipvs", name: "input", hook: "input", priority: 99, nat: false, walk },
    { table: "ipvs", name: "output", hook: "output", priority: -98, nat: false, walk },
  ];
}

function balance({ servers }: VirtualServers, flow: Flow, context: HookContext): Flow[] {
  const byMark = flow.mark === 0 ? undefined : servers.get(keyOf("fwm", "", flow.mark));
  const server =
    (byMark?.family === context.node.family ? byMark : undefined) ??
    servers.get(keyOf(flow.protocol, flow.destination, flow.port)) ??
    servers.get(keyOf(flow.protocol, flow.destination, 0));
  if (server === undefined) return [flow];
  const name = nameOf(server);
  const shares = sharesOf(server);
  if (shares.length === 0) {
    const none =
      server.realServers.length === 0 ? "has no real servers" : "has only real servers of weight 0";
    context.path.step("ipvs", name, none, "answers with port unreachable");
    return [
      end(
        flow,
        "reject",
        `The IPVS virtual service ${name} ${none}, so a new connection is answered with port unreachable.`,
      ),
    ];
  }
  remark(server, name, context, flow);
  return shares.map((share) => send(server, share, name, flow, context));
}

function nameOf(server: VirtualServer): string {
  return server.protocol === "fwm"
    ? `firewall mark ${server.port}`
    : `${server.protocol} ${socket(server.address, server.port)}`;
}

function remark(
  server: VirtualServer,
  name: string,
  { path, node }: HookContext,
  flow: Flow,
): void {
  const state = remarkOn(server);
  if (state !== null && server.realServers.length > 1) path.note(state);
  if (server.persistentSeconds !== null) {
    const whole = node.family === 4 ? 32 : 128;
    const who =
      server.persistencePrefix === whole
        ? "a client"
        : `all clients of one /${server.persistencePrefix}`;
    path.note(
      `Session affinity: ${name} keeps ${who} with a real server for ${server.persistentSeconds} s; which are kept is not read; the answer is for a new one.`,
    );
  }
  if (server.persistentTicks !== undefined) {
    path.note(
      `The kernel's list gives that time as ${server.persistentTicks} ticks of a clock of unknown rate; they are taken for ${server.persistentSeconds} s.`,
    );
  }
  for (const drained of server.realServers.filter((each) => each.weight === 0)) {
    const rest = isStubborn(server)
      ? `and new ones whose hash gives it are rejected, since scheduler ${server.scheduler} looks no further`
      : "and gets no new ones";
    path.note(
      `${socket(drained.address, drained.port)} has weight 0: it keeps its connections, ${rest}.`,
    );
  }
  warnOfLocal(server, { path, node, hook: "input" }, flow);
}

/** The scheduler hashes to a real server whether it has a weight or not. */
const isStubborn = ({ scheduler, flags }: VirtualServer): boolean =>
  scheduler === "dh" || (scheduler === "sh" && !flags.includes("sh-fallback"));

/**
 * kube-proxy keeps all endpoints where the policy is Local and none is local; it masks no source
 * then.
 */
function warnOfLocal(server: VirtualServer, { path, node }: HookContext, flow: Flow): void {
  const prefix = node.family === 4 ? "KUBE-" : "KUBE-6-";
  const holds = (name: string, sides: readonly string[]): boolean =>
    node.dump.ipsets?.sets.has(prefix + name) === true &&
    isInSet(prefix + name, { node, flow, path, sides }) === true;
  const address = ["EXTERNAL-IP-LOCAL", "LOAD-BALANCER-LOCAL"].some((name) =>
    holds(name, ["dst", "dst"]),
  );
  const protocol = flow.protocol.toUpperCase();
  const port =
    flow.destination === server.address &&
    !address &&
    holds(`NODE-PORT-LOCAL-${protocol}`, flow.protocol === "sctp" ? ["dst", "dst"] : ["dst"]);
  if (!address && !port) return;
  const loopBack = node.dump.ipsets?.sets.get(`${prefix}LOOP-BACK`);
  if (loopBack === undefined) return;
  const local = server.realServers.some((real) =>
    loopBack.members.some((member) =>
      member.startsWith(`${real.address},${flow.protocol}:${real.port},`),
    ),
  );
  if (!local)
    path.note(
      "externalTrafficPolicy is Local, but none of the endpoints is on this node: IPVS mode then keeps all endpoints, and the source stays as it is.",
    );
}

function send(
  server: VirtualServer,
  { server: real, probability }: Share,
  name: string,
  flow: Flow,
  context: HookContext,
): Flow {
  const to = socket(real.address, real.port === 0 ? flow.port : real.port);
  const rule = `-> ${to} ${real.forward} weight ${real.weight}, scheduler ${server.scheduler}`;
  const share = probability === 1 ? "" : `with probability ${Number(probability.toFixed(4))} `;
  const by = { to, by: `the IPVS virtual service ${name}`, kubeProxy: true };
  const chosen: Flow = {
    ...flow,
    probability: flow.probability * probability,
    ipvs: true,
    affinitySeconds: server.persistentSeconds ?? flow.affinitySeconds,
  };
  if (real.forward === "masq" || real.forward === "local") {
    context.path.step("ipvs", name, rule, `${share}the destination becomes ${to}`);
    return redirect(chosen, real.address, real.port === 0 ? flow.port : real.port, by);
  }
  const how = real.forward === "route" ? "with the destination as it is" : "in a tunnel";
  context.path.step("ipvs", name, rule, `${share}goes to ${real.address} ${how}`);
  context.path.note(
    `IPVS forwards to ${to} ${how} and without connection tracking, so no nat rule sees the packet afterwards.`,
  );
  return { ...chosen, tracked: false, dstNatDone: true, dnat: [...flow.dnat, by] };
}

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
