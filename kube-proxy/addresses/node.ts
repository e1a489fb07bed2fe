import type { NodeDump } from "../node-dump";
import type { Packet } from "../packet";
import type { Range } from "./range";

/** What the dumps say of the node as a whole, for one packet. */
export interface Node {
  readonly dump: NodeDump;
  readonly packet: Packet;
  readonly family: 4 | 6;
  /** Where pods live, as kube-proxy's own rules show it; empty where they do not. */
  readonly podRanges: readonly Range[];
  /** Interfaces of pods (`cali+`), where kube-proxy tells pods by them. */
  readonly podDevices: readonly string[];
}
