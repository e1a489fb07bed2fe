/** A new connection's first packet, as it reaches the node or leaves a process of it. */
export interface Packet {
  /**
   * Where it comes from: a pod on this node, a process in the node's own network, or another machine.
   * It decides which hooks the packet passes: `node` begins at output, the others at prerouting.
   */
  readonly from: "pod" | "node" | "outside";
  /** Without it, only what `from` implies is known of the source. */
  readonly source: string | null;
  readonly destination: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp" | "sctp";
}
