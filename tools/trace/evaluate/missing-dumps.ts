import { type Answer, isLoopback, rangeOf } from "../model/packet";
import type { NodeDump } from "../model/dump";
import { type Table as IptablesTable, withoutComments } from "../model/iptables";
import { isKubeProxy, type Table } from "../model/nftables";
import { isLocal } from "./addresses";
import { type Node, type Path, tablesOf } from "./context";
import type { Flow } from "./flow";
import { isInSet } from "./ipset";
import type { Outcome } from "./outcome";

/** The outcome, or `unknown` if it depends on rules that no dump contains. */
export function asFarAsDumped(
  node: Node,
  flows: readonly Flow[],
  path: Path,
  outcome: Outcome,
): Outcome {
  if (outcome.verdict === "dnat") return withoutMarks(node, flows, path, outcome);
  if (outcome.verdict === "unknown") return outcome;
  const reason =
    outcome.verdict === "pass"
      ? whyNotPass(node, flows, path)
      : whyNotStopped(node, flows, outcome);
  return reason === null
    ? outcome
    : { ...outcome, verdict: "unknown", masquerade: "unknown", reason };
}

/** What is stopped as it is might go to an endpoint instead, which other rules may let through. */
function whyNotStopped(node: Node, flows: readonly Flow[], { reason }: Outcome): string | null {
  const isSent = flows.some((flow) => flow.dnat.length > 0 || flow.ipvs);
  const sends = isSent || (node.dump.ipvs?.servers.size ?? 0) > 0;
  const why = sends ? null : whyNotAsked(node);
  return why === null ? null : `${why} Without it: ${lower(reason)}`;
}

const ofService = /KUBE-(SVC|SVL|EXT|XLB|FW)-\w+/;

function whyNotPass(node: Node, flows: readonly Flow[], path: Path): string | null {
  const { dump } = node;
  const iptables = tablesOf(node);
  if (iptables === null) return whyNotAsked(node) ?? withoutFilterOfNft(node);
  if (dump.ipvs === null && isForIpvs(dump) && !isElsewhere(node, path)) {
    return "kube-proxy works with IPVS here, whose own table is in no dump: add `ipvsadm -Sn`, or `cat /proc/net/ip_vs`.";
  }
  const chain = path.steps
    .flatMap(({ chain, rule }) => ofService.exec(`${chain} ${withoutComments(rule)}`)?.[0] ?? [])
    .at(-1);
  if (/^KUBE-SV/.test(chain ?? "")) {
    return `Chain ${chain} sends the packet to no endpoint, which kube-proxy does not write: the dump lacks some of its rules.`;
  }
  const hasFilter = iptables.tables.has("filter");
  // What a Service's chain lets through without an endpoint is dropped in filter: by source range,
  // or policy Local.
  if (chain !== undefined && !hasFilter) {
    return `Chain ${chain} sends the packet to no endpoint; whether it is then dropped stands in table filter, which is in no dump.`;
  }
  const virtual = [...(dump.ipvs?.servers.values() ?? [])].some(
    ({ address }) => address === node.packet.destination,
  );
  if (virtual && !hasFilter) {
    return `IPVS has ${node.packet.destination}, but not this port; whether it is then rejected stands in table filter, which is in no dump.`;
  }
  if (tablesOfNft(node).some((table) => isKubeProxy(table))) return null;
  const ofIpvs = (dump.ipvs?.servers.size ?? 0) > 0;
  const cut = ofIpvs ? whyNotInIpvs(node, flows, path) : whyNotAsked(node);
  return cut ?? (hasFilter ? null : withoutFilter);
}

const withoutFilter =
  "No rule of table nat sends the packet to an endpoint; whether it is rejected, as for a Service without endpoints, stands in table filter, which is in no dump.";

const ofIpvs: readonly (readonly [string, readonly string[]])[] = [
  ["CLUSTER-IP", ["dst", "dst"]],
  ["EXTERNAL-IP", ["dst", "dst"]],
  ["EXTERNAL-IP-LOCAL", ["dst", "dst"]],
  ["LOAD-BALANCER", ["dst", "dst"]],
  ["NODE-PORT-TCP", ["dst"]],
  ["NODE-PORT-UDP", ["dst"]],
  ["NODE-PORT-SCTP-HASH", ["dst", "dst"]],
];

/** kube-proxy keeps in its sets what has a virtual server. */
function whyNotInIpvs(node: Node, flows: readonly Flow[], path: Path): string | null {
  const prefix = node.family === 4 ? "KUBE-" : "KUBE-6-";
  const { destination } = node.packet;
  // On loopback IPVS serves no NodePorts.
  const isNodes = !isLoopback(rangeOf(destination)!) && isLocal(node, destination, path) === true;
  const set = ofIpvs
    .filter(([name]) => !name.startsWith("NODE-PORT") || (isNodes && hasProtocol(name, node)))
    .find(([name, sides]) => {
      const held = node.dump.ipsets?.sets.has(prefix + name) === true;
      return (
        held && flows.some((flow) => isInSet(prefix + name, { node, flow, path, sides }) === true)
      );
    });
  return set === undefined
    ? null
    : `Set ${prefix}${set[0]} has the packet's destination, but the dump of IPVS has no virtual server for it: it lacks some, or kube-proxy does.`;
}

const hasProtocol = (name: string, { packet }: Node): boolean =>
  name.includes(packet.protocol.toUpperCase());

/** Those that packets of the family go through. */
const tablesOfNft = ({ dump: { nftables, ipvs }, family }: Node): Table[] =>
  [...(nftables?.tables.values() ?? [])].filter(
    (table) =>
      ["inet", family === 4 ? "ip" : "ip6"].includes(table.family) &&
      !(table.ofIptables && (ipvs?.servers.size ?? 0) > 0),
  );

function withoutFilterOfNft(node: Node): string | null {
  const names = tablesOfNft(node)
    .filter((table) => table.ofIptables)
    .map(({ name }) => name);
  return names.includes("nat") && !names.includes("filter") ? withoutFilter : null;
}

/** Why rules may be missing that would send the packet to an endpoint. */
function whyNotAsked(node: Node): string | null {
  const { family, packet } = node;
  const iptables = tablesOf(node);
  const tables = tablesOfNft(node);
  if (tables.some((table) => isKubeProxy(table))) return null;
  if (iptables !== null) return whyCut(iptables.tables.get("nat"), node);
  if (tables.length === 0) {
    return `No dump has the rules for IPv${family}, so where the packet goes cannot be said.`;
  }
  const hook = packet.from === "node" ? "output" : "prerouting";
  const sends = tables.some(({ chains }) =>
    [...chains.values()].some(({ base }) => base?.type === "nat" && base.hook === hook),
  );
  return sends
    ? null
    : `No dump has a chain that rewrites destinations in ${hook}, where kube-proxy in any mode has one: take \`nft list ruleset\`, or \`iptables-save\`.`;
}

/** Why rules of table nat may be missing that would send the packet to an endpoint. */
function whyCut(nat: IptablesTable | undefined, { packet }: Node): string | null {
  if (nat === undefined) return "Table nat, which sends packets to endpoints, is in no dump.";
  const { chains, whole } = nat;
  const services = chains.get("KUBE-SERVICES");
  if (services !== undefined) {
    // kube-proxy makes it the last rule, whichever Services there are.
    return services.rules.some(({ text }) => /KUBE-NODE-?PORT/.test(text))
      ? null
      : "Chain KUBE-SERVICES of table nat lacks its last rule, which goes to KUBE-NODEPORTS: the dump was cut, and may lack the rule that the packet meets.";
  }
  const first = packet.from === "node" ? "OUTPUT" : "PREROUTING";
  const all = ["PREROUTING", "OUTPUT", "POSTROUTING"];
  if (whole || all.every((name) => (chains.get(name)?.policy ?? null) !== null)) return null;
  return `The dump has not all of table nat: chain ${chains.has(first) ? "KUBE-SERVICES" : first}, and what it goes to, may send the packet to an endpoint.`;
}

/**
 * IPVS has nothing for it: all that IPVS has is an address of the node, most of it on kube-ipvs0.
 */
const isElsewhere = (node: Node, path: Path): boolean =>
  hasDummy(node.dump) && isLocal(node, node.packet.destination, path) === false;

/** IPVS picks the endpoint; iptables' nat table says whether the source is masqueraded. */
function withoutMarks(node: Node, flows: readonly Flow[], path: Path, outcome: Outcome): Outcome {
  if (tablesOf(node)?.tables.has("nat") === true || !flows.some((flow) => flow.ipvs))
    return outcome;
  path.note(
    "In IPVS mode iptables' rules say whether the source is masqueraded, and may drop or reject the packet; they are in no dump.",
  );
  const endpoints = outcome.endpoints.map(({ address, probability }) => ({ address, probability }));
  return { ...outcome, endpoints, masquerade: "unknown" };
}

const lower = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1);

export function modeOf(dump: NodeDump, flows: readonly Flow[]): Answer["mode"] {
  const { ipvs, nftables } = dump;
  if (flows.some((flow) => flow.ipvs) || (ipvs?.servers.size ?? 0) > 0) return "ipvs";
  const tables = [...(nftables?.tables.values() ?? [])];
  if (tables.some((table) => isKubeProxy(table))) return "nftables";
  if (isForIpvs(dump)) return "ipvs";
  const ofIptables =
    dump.iptables4 !== null || dump.iptables6 !== null || tables.some((table) => table.ofIptables);
  if (ofIptables) return "iptables";
  return ipvs === null ? "nftables" : "ipvs";
}

/** Whether the interface is there on which kube-proxy puts every Service's address in IPVS mode. */
const hasDummy = ({ addresses }: NodeDump): boolean =>
  addresses?.interfaces.some(({ name }) => name === "kube-ipvs0") === true;

/**
 * Whether what is beside IPVS's own table shows that kube-proxy works with IPVS on this node. What
 * an earlier mode has left there does not count.
 */
function isForIpvs(dump: NodeDump): boolean {
  const { iptables4, iptables6, nftables } = dump;
  if ([...(nftables?.tables.values() ?? [])].some((table) => isKubeProxy(table))) return false;
  const tables = [iptables4, iptables6].flatMap((iptables) =>
    ["nat", "filter"].flatMap((name) => iptables?.tables.get(name) ?? []),
  );
  const asksSets = tables.some(({ chains }) =>
    chains
      .get("KUBE-SERVICES")
      ?.rules.some(({ text }) => /match-set KUBE-(6-)?CLUSTER-IP\b/.test(text)),
  );
  const isServed = (name: string): boolean => name.startsWith("KUBE-SVC-");
  return (
    asksSets || (hasDummy(dump) && !tables.some(({ chains }) => [...chains.keys()].some(isServed)))
  );
}
