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
