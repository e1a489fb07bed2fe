import type { Packet } from "./packet";

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
