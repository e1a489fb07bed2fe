import { UserError } from "../../shared/user-error";
import type { Iptables } from "./iptables";
import type { Ruleset } from "./nftables";

/** All dumps of one node; null for what no dump contains. */
export interface NodeDump {
  readonly iptables4: Iptables | null;
  readonly iptables6: Iptables | null;
  readonly ipsets: IpSets | null;
  readonly ipvs: VirtualServers | null;
  readonly nftables: Ruleset | null;
  readonly addresses: Addresses | null;
  readonly routes: Routes | null;
  /** What was remarked while reading, one sentence each; `trace` repeats them. */
  readonly notes: readonly string[];
}

/** One set, its members as the dump writes them. */
export interface IpSet {
  readonly name: string;
  /** `hash:ip,port`, `bitmap:port`, `list:set`. */
  readonly type: string;
  readonly family: 4 | 6;
  readonly members: readonly string[];
}

export interface IpSets {
  readonly file: string;
  readonly sets: ReadonlyMap<string, IpSet>;
}

/** An invalid dump; the message is for the person who provided it. */
export class DumpProblem extends UserError {
  constructor(
    readonly file: string,
    readonly line: number,
    readonly expected: string,
    readonly got: string,
    readonly fix = "",
  ) {
    super(
      `${file}:${line}: expected ${expected}, got ${got === "" ? "nothing" : got}` +
        (fix === "" ? "" : `; ${fix}`),
      2,
    );
  }
}

/** `ip addr`: which addresses are the node's own, and on which interface. */
export interface Addresses {
  readonly file: string;
  readonly interfaces: readonly Interface[];
}

export interface Interface {
  readonly name: string;
  readonly addresses: readonly { readonly address: string; readonly prefix: number }[];
}

/** One line of `ip route`, of table main. */
export interface Route {
  /** `10.244.1.0/24`; the default route is `0.0.0.0/0` or `::/0`. */
  readonly destination: string;
  readonly metric: number;
  /** Several with more than one next hop; none where the kernel answers or drops itself. */
  readonly devices: readonly string[];
}

export interface Routes {
  readonly file: string;
  /** By destination and metric. */
  readonly routes: ReadonlyMap<string, Route>;
}

export interface RealServer {
  readonly address: string;
  readonly port: number;
  readonly forward: "masq" | "route" | "tunnel" | "local";
  readonly weight: number;
}

/**
 * A virtual service: an address with a protocol and a port (0 is every port), or a firewall mark.
 */
export interface VirtualServer {
  readonly protocol: "tcp" | "udp" | "sctp" | "fwm";
  /** Empty for a firewall mark. */
  readonly address: string;
  /** The mark itself for a firewall mark. */
  readonly port: number;
  readonly family: 4 | 6;
  readonly scheduler: string;
  /** Scheduler flags as written: `sh-port`, `flag-1`, `ops`. */
  readonly flags: readonly string[];
  readonly persistentSeconds: number | null;
  /**
   * Where a dump has nothing else: ticks of the kernel's clock, of which the seconds are
   * inferred.
   */
  readonly persistentTicks?: number;
  /** Prefix length of the persistence netmask; 32 or 128 is a client each. */
  readonly persistencePrefix: number;
  readonly realServers: readonly RealServer[];
  readonly line: number;
}

export interface VirtualServers {
  readonly file: string;
  /** By `protocol address port`, such as `tcp 10.96.0.1 443`; `fwm  5` for mark 5. */
  readonly servers: ReadonlyMap<string, VirtualServer>;
}

export function keyOf(protocol: string, address: string, port: number): string {
  return `${protocol} ${address} ${port}`;
}

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
