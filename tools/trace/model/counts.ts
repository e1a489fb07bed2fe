import type { NodeDump } from "./dump";

/** How many objects a node's kernel has; null for what no dump contains. */
export interface Counts {
  readonly chains: number | null;
  readonly rules: number | null;
  /** ipset's, and nftables' sets and maps. */
  readonly sets: number | null;
  readonly members: number | null;
  readonly services: number | null;
  readonly destinations: number | null;
}

/** What each count is of, in the order of the output. */
export const countNames: Readonly<Record<keyof Counts, string>> = {
  chains: "chains",
  rules: "rules",
  sets: "sets",
  members: "set members",
  services: "IPVS services",
  destinations: "IPVS destinations",
};

interface Chain {
  readonly rules: readonly unknown[];
}

export function countsOf({ iptables4, iptables6, ipsets, ipvs, nftables }: NodeDump): Counts {
  const iptables = [iptables4, iptables6].filter((each) => each !== null);
  // What iptables-nft keeps in nftables is there twice when both were dumped.
  const native = [...(nftables?.tables.values() ?? [])].filter(
    ({ family, name }) => !{ ip: iptables4, ip6: iptables6 }[family]?.tables.has(name),
  );
  const tables = [...iptables.flatMap((each) => [...each.tables.values()]), ...native];
  const chains = tables.flatMap((table): Chain[] => [...table.chains.values()]);
  const hasRules = iptables.length > 0 || nftables !== null;
  const sets = [
    ...[...(ipsets?.sets.values() ?? [])].map(({ members }) => members.length),
    ...native.flatMap(({ sets }) => [...sets.values()].map(({ elements }) => elements().length)),
  ];
  const hasSets = ipsets !== null || nftables !== null;
  const servers = ipvs && [...ipvs.servers.values()].map(({ realServers }) => realServers.length);
  return {
    chains: hasRules ? chains.length : null,
    rules: hasRules ? sum(chains.map(({ rules }) => rules.length)) : null,
    sets: hasSets ? sets.length : null,
    members: hasSets ? sum(sets) : null,
    services: servers && servers.length,
    destinations: servers && sum(servers),
  };
}

const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);
