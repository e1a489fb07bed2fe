import { isIP, isIPv4, isIPv6 } from "node:net";

import { UserError } from "../../shared/user-error";
import { canonical } from "./range";

/** A new connection's first packet, as it reaches the node or leaves a process of it. */
export interface Packet {
  /**
   * Where it comes from: a pod on this node, a process in the node's own network, or another
   * machine. It decides which hooks the packet passes: `node` begins at output, the others at
   * prerouting.
   */
  readonly from: "pod" | "node" | "outside";
  /** Without it, only what `from` implies is known of the source. */
  readonly source: string | null;
  readonly destination: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp" | "sctp";
}

export type Origin = Packet["from"];

/** Where a packet goes. */
export type Destination = Pick<Packet, "destination" | "port" | "protocol">;

const origins: readonly Origin[] = ["pod", "node", "outside"];

const protocols: readonly Packet["protocol"][] = ["tcp", "udp", "sctp"];

export function origin(text: string): Origin {
  const found = origins.find((name) => name === text);
  if (found === undefined) throw wrong("from", text, `one of ${origins.join(", ")}`);
  return found;
}

/** `10.96.0.10:53/udp`, `[fd00::a]:53`; tcp where no protocol is named. */
export function destination(text: string): Destination {
  const {
    host,
    port = "",
    named = "tcp",
  } = /^(?<host>\[[^\]]*\]|[^:[\]]*):(?<port>\d+)(?:\/(?<named>\w+))?$/.exec(text)?.groups ?? {};
  const expected = "ADDRESS:PORT, ADDRESS:PORT/udp or /sctp, an IPv6 address in brackets";
  if (host === undefined) throw wrong("to", text, expected);
  const address = host.startsWith("[") ? host.slice(1, -1) : host;
  const isAddress = host.startsWith("[") ? isIPv6(address) : isIPv4(address);
  if (!isAddress || address.includes("%")) {
    throw wrong("to", text, `${expected}; "${address}" is no address, and names are not resolved`);
  }
  if (Number(port) < 1 || Number(port) > 65_535) {
    throw wrong("to", text, `a port from 1 to 65535`);
  }
  const protocol = protocols.find((name) => name === named.toLowerCase());
  if (protocol === undefined) throw wrong("to", text, `one of /${protocols.join(", /")}`);
  return { destination: canonical(address)!, port: Number(port), protocol };
}

export function source(text: string, to: Destination): string {
  const bare = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  const family = isIP(to.destination);
  if (isIP(bare) === 0 || bare.includes("%")) {
    throw wrong("source", text, "an IPv4 or IPv6 address, without a prefix length");
  }
  if (isIP(bare) !== family) {
    throw wrong("source", text, `an IPv${family} address, since the destination is one`);
  }
  return canonical(bare)!;
}

const wrong = (option: string, got: string, expected: string): UserError =>
  new UserError(`${option}: expected ${expected}, got "${got}"`, 2);

export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
  /** By name or by number; null for all. */
  readonly port: string | null;
}

export function serviceName(text: string): ServiceName {
  const { namespace, name, port } =
    /^(?<namespace>[a-z\d-]+)\/(?<name>[a-z\d.-]+)(?::(?<port>[a-z\d-]+))?$/.exec(text)?.groups ??
    {};
  if (namespace === undefined || name === undefined) {
    throw wrong("service", text, "NAMESPACE/NAME or NAMESPACE/NAME:PORT, in lower case");
  }
  return { namespace, name, port: port ?? null };
}

/** One rule that the packet meets, in the order in which the kernel takes them. */
export interface Step {
  readonly table: string;
  readonly chain: string;
  /** As the dump writes it. */
  readonly rule: string;
  /** What the rule does with this packet, in words. */
  readonly effect: string;
}

export interface Endpoint {
  /** `10.0.0.1:80`, or `[fd00::1]:80`. */
  readonly address: string;
  /** Of one new connection from this source; all of an answer's add up to 1. */
  readonly probability: number;
  /** Only where endpoints differ, as with a pod that may reach itself. */
  readonly masquerade?: boolean | "unknown";
}

/** What `--json` prints; scripts rely on its fields. */
export interface Answer {
  readonly mode: "iptables" | "ipvs" | "nftables";
  readonly packet: Packet;
  readonly steps: readonly Step[];
  /**
   * `pass`: no Service rule applies, the packet goes on as it is; `unknown`: the dumps do not say.
   */
  readonly verdict: "dnat" | "drop" | "reject" | "pass" | "unknown";
  readonly endpoints: readonly Endpoint[];
  /** `unknown` also where endpoints differ; then each says its own. */
  readonly masquerade: boolean | "unknown";
  /** How long a client stays with its endpoint, in seconds; null without session affinity. */
  readonly affinitySeconds: number | null;
  /** One sentence. */
  readonly reason: string;
  /** What the dumps lack, and the assumptions made, one sentence each. */
  readonly notes: readonly string[];
}
