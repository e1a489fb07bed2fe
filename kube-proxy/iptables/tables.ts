import type { Node } from "../addresses/node";
import type { Iptables } from "./iptables";

/** The iptables of the packet's own IP family. */
export function tablesOf(node: Node): Iptables | null {
  return node.family === 4 ? node.dump.iptables4 : node.dump.iptables6;
}
