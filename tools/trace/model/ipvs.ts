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
