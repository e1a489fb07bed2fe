import type { Decision } from "../flow";
import { clusterAddress } from "../iptables/cluster-address";
import { isClusterAddress, isNodePortAddress } from "../nftables/facts";
import type { Path } from "../path";
import type { Node } from "./node";
import { isWithin, rangeOf } from "./range";

const loopback = ["127.0.0.0/8", "::1"].map((text) => rangeOf(text)!);

/** Whether the kernel's routing holds `address` for one of the node's own. */
export function isLocal(node: Node, address: string, path: Path): Decision {
  const range = rangeOf(address);
  if (range === null) return false;
  if (loopback.some((own) => isWithin(range, own))) return true;
  const listed = node.dump.addresses?.interfaces ?? [];
  if (listed.some((device) => device.addresses.some((own) => own.address === address))) return true;
  const shows = (name: string): boolean => listed.some((device) => device.name === name);
  if (isVirtual(node, address)) {
    if (shows("kube-ipvs0")) return false;
    path.note(`${address} is a virtual address of IPVS, so it is taken for one of the node's own.`);
    return true;
  }
  if (shows("lo")) return false;
  if (node.packet.from === "node" && node.packet.source === address) return true;
  if (node.packet.from !== "node" && node.packet.source === address) return false;
  if (node.podRanges.some((pods) => isWithin(range, pods))) return false;
  const { ipvs, nftables } = node.dump;
  if (ipvs === null && clusterAddress(node, address)) return false;
  if (nftables !== null && isNodePortAddress(nftables, node.family, address)) {
    path.note(
      `${address} has NodePorts in kube-proxy's rules, so it is taken for one of the node's own.`,
    );
    return true;
  }
  if (nftables !== null && isClusterAddress(nftables, node.family, address)) return false;
  return { why: `whether ${address} is one of the node's own addresses: there is no \`ip addr\`` };
}

function isVirtual(node: Node, address: string): boolean {
  for (const server of node.dump.ipvs?.servers.values() ?? []) {
    if (server.address === address) return true;
  }
  return false;
}

/** Whether the packet's source is one of the node's own addresses. */
export function isSourceLocal(node: Node, source: string | null, path: Path): Decision {
  if (node.packet.from === "node") return true;
  if (source === null) return false;
  return isLocal(node, source, path) === true;
}
