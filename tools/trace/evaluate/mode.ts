import type { Answer } from "../model/answer";
import type { NodeDump } from "../model/dump";
import { isKubeProxy } from "../model/nftables";
import type { Flow } from "./flow";

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
export const hasDummy = ({ addresses }: NodeDump): boolean =>
  addresses?.interfaces.some(({ name }) => name === "kube-ipvs0") === true;

/**
 * Whether what is beside IPVS's own table shows that kube-proxy works with IPVS on this node. What
 * an earlier mode has left there does not count.
 */
export function isForIpvs(dump: NodeDump): boolean {
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
