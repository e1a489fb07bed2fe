import { isLocal } from "./addresses/local";
import { type Node, type Path, tablesOf } from "./context";
import type { Flow } from "./flow";
import { hasDummy, isForIpvs } from "./mode";
import type { Outcome } from "./outcome";

/** The outcome, or `unknown` where it hangs on a table that is in no dump. */
export function asFarAsDumped(
  node: Node,
  flows: readonly Flow[],
  path: Path,
  outcome: Outcome,
): Outcome {
  if (outcome.verdict === "dnat") return withoutMarks(node, flows, path, outcome);
  const reason = outcome.verdict === "pass" ? whyNotPass(node, path) : null;
  return reason === null
    ? outcome
    : { ...outcome, verdict: "unknown", masquerade: "unknown", reason };
}

const ofService = /KUBE-(SVC|SVL|EXT|XLB|FW)-\w+/;

function whyNotPass(node: Node, path: Path): string | null {
  const { dump, family } = node;
  const iptables = tablesOf(node);
  const native = [...(dump.nftables?.tables.values() ?? [])].some(
    (table) =>
      ["inet", family === 4 ? "ip" : "ip6"].includes(table.family) &&
      !(table.ofIptables && (dump.ipvs?.servers.size ?? 0) > 0),
  );
  if (iptables === null) {
    return native
      ? null
      : `No dump has the rules for IPv${family}, so where the packet goes cannot be said.`;
  }
  if (dump.ipvs === null && isForIpvs(dump) && !isElsewhere(node, path)) {
    return "kube-proxy works with IPVS here, whose own table is in no dump: add `ipvsadm -Sn`, or `cat /proc/net/ip_vs`.";
  }
  const chain = path.steps
    .flatMap(({ chain, rule }) => ofService.exec(`${chain} ${rule}`)?.[0] ?? [])
    .at(-1);
  if (/^KUBE-SV/.test(chain ?? "")) {
    return `Chain ${chain} sends the packet to no endpoint, which kube-proxy does not write: the dump lacks some of its rules.`;
  }
  // What a Service's chain lets through without an endpoint is dropped in filter: by source range,
  // or policy Local.
  if (chain !== undefined && !iptables.tables.has("filter")) {
    return `Chain ${chain} sends the packet to no endpoint; whether it is then dropped stands in table filter, which is in no dump.`;
  }
  const virtual = [...(dump.ipvs?.servers.values() ?? [])].some(
    ({ address }) => address === node.packet.destination,
  );
  if (virtual && !iptables.tables.has("filter")) {
    return `IPVS has ${node.packet.destination}, but not this port; whether it is then rejected stands in table filter, which is in no dump.`;
  }
  const sends = iptables.tables.has("nat") || dump.ipvs !== null || native;
  return sends ? null : "Table nat, which sends packets to endpoints, is in no dump.";
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
