import { isLoopback, isWithin, rangeOf } from "../../model/range";
import type { HookContext, Node, Path } from "../context";
import type { Decision, Flow } from "../flow";
import { isClusterAddress, isNodePortAddress } from "../services";

/** Whether the kernel's routing holds `address` for one of the node's own. */
export function isLocal(node: Node, address: string, path: Path): Decision {
  const range = rangeOf(address);
  if (range === null) return false;
  if (isLoopback(range)) return true;
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
  // Only of what rules send to: a packet may be for a NodePort of a node in its own pods' range.
  const isAsked = node.packet.destination === address;
  if (!isAsked && node.podRanges.some((pods) => isWithin(range, pods))) return false;
  if (isNodePortAddress(node.dump, node.family, address)) {
    path.note(
      `${address} has NodePorts in kube-proxy's rules, so it is taken for one of the node's own.`,
    );
    return true;
  }
  if (isClusterAddress(node.dump, node.family, address)) return false;
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

/**
 * Where `REDIRECT` sends: what the node sent to loopback, all else to the interface's first
 * address.
 */
export function redirectTarget({ node, hook, path }: HookContext, flow: Flow): string {
  if (hook === "output") return node.family === 4 ? "127.0.0.1" : "::1";
  const own = (node.dump.addresses?.interfaces ?? [])
    .filter((device) => device.name !== "lo" && device.name !== "kube-ipvs0")
    .flatMap((device) => device.addresses.map((each) => each.address))
    .find((address) => address.includes(":") === (node.family === 6));
  if (own === undefined) {
    path.note("A redirect sends to an address of the node; there is no `ip addr` that says which.");
  }
  return own ?? flow.destination;
}
