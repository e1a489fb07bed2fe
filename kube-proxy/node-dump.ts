import type { Addresses } from "./addresses/parse";
import type { IpSets } from "./ipset/ip-set";
import type { Iptables } from "./iptables/iptables";
import type { VirtualServers } from "./ipvs/virtual-server";
import type { Ruleset } from "./nftables/ruleset";

/** Everything that the dumps of one node said; null is what no dump says. */
export interface NodeDump {
  readonly iptables4: Iptables | null;
  readonly iptables6: Iptables | null;
  readonly ipsets: IpSets | null;
  readonly ipvs: VirtualServers | null;
  readonly nftables: Ruleset | null;
  readonly addresses: Addresses | null;
  /** What was remarked while reading, one sentence each; `trace` repeats them. */
  readonly notes: readonly string[];
}
