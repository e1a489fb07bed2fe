import type { Route, Routes } from "../model/dump";
import {
  addressOf,
  isLoopback,
  isSingle,
  isWithin,
  networkOf,
  overlaps,
  type Range,
  rangeOf,
} from "../model/packet";
import type { HookContext, Node, Path } from "./context";
import type { Decision, Device, Flow } from "./flow";
import { isClusterAddress, isNodePortAddress } from "./services";

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

/**
 * Whether the source lies in `range`. Without a source only what `from` implies is known.
 * `ownEndpoint`: the question is whether a pod reaches itself, which an unnamed source does not.
 */
export function isSourceIn(
  node: Node,
  flow: Flow,
  range: Range,
  ownEndpoint: boolean,
  path: Path,
): Decision {
  if (range.family !== node.family) return false;
  if (flow.source !== null) {
    const source = rangeOf(flow.source);
    return source !== null && isWithin(source, range);
  }
  if (range.high - range.low === (range.family === 4 ? 2n ** 32n : 2n ** 128n) - 1n) return true;
  if (flow.from !== "node" && isLoopback(range)) return false;
  if (ownEndpoint && isSingle(range)) {
    path.note("No source is given, so it is taken to be none of the Service's own endpoints.");
    return false;
  }
  if (flow.from !== "node" && isSingle(range) && isLocal(node, written(range), path) === true)
    return false;
  const why = `whether the source is in ${written(range)}: none is given`;
  const pods = node.podRanges;
  switch (flow.from) {
    case "pod":
      if (pods.some((pod) => isWithin(pod, range))) return true;
      return pods.length > 0 && !pods.some((pod) => overlaps(pod, range)) ? false : { why };
    case "outside":
      return pods.some((pod) => isWithin(range, pod)) ? false : { why };
    case "node":
      return ofNode(node, range, why, path);
  }
}

/**
 * The kernel picks the source by the route: an address of the machine, not of a bridge of pods
 * unless all are in the pods' range.
 */
function ofNode(node: Node, range: Range, why: string, path: Path): Decision {
  const all = (node.dump.addresses?.interfaces ?? [])
    .flatMap((device) => device.addresses)
    .map((each) => rangeOf(each.address)!)
    .filter((each) => each.family === node.family)
    .filter((each) => !isLoopback(each));
  const isOfPods = (each: Range): boolean => node.podRanges.some((pods) => isWithin(each, pods));
  const outside = all.filter((each) => !isOfPods(each));
  const own = outside.length > 0 ? outside : all;
  if (own.length > 0 && own.every((each) => isWithin(each, range))) return true;
  if (own.length > 0 && !own.some((each) => isWithin(each, range))) return false;
  if (!isOfPods(range)) return { why };
  path.note("No source is given, so the node is taken to send from outside of the pods' range.");
  return false;
}

function written({ family, low, high }: Range): string {
  return low === high
    ? addressOf(low, family)
    : `${addressOf(low, family)}–${addressOf(high, family)}`;
}

/** The interfaces that lead to `address`: by the longest prefix, then by the lowest metric. */
function devicesTo({ routes }: Routes, address: Range): readonly string[] {
  const size = ({ destination }: Route): bigint => {
    const range = rangeOf(destination)!;
    return range.high - range.low;
  };
  const [best] = [...routes.values()]
    .filter(({ destination }) => isWithin(address, rangeOf(destination)!))
    .sort((a, b) => Number(size(a) - size(b)) || a.metric - b.metric);
  return best?.devices ?? [];
}

/**
 * Names that container runtimes and pod networks give to what leads to containers of this node
 * only.
 */
const ofContainers =
  /^(docker0|cni0|cbr0|kube-bridge|kube-ipvs0|dummy|nodelocaldns|br-|veth|cali|lxc|azv)/;

/**
 * Names that the kernel gives to network cards, and libvirt to its bridges: no pod is behind them.
 */
const ofMachine = /^(eth|en[opsx]\d|bond|wlan|wl[opsx]|virbr)/;

/** `cali+` is every name that begins with cali. */
function fits(name: string, pattern: string): boolean {
  return pattern.endsWith("+") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/**
 * Whether the packet's interface is `pattern`, as far as the flow, `ip addr` and where it comes
 * from say.
 */
export function isDevice(
  node: Node,
  flow: Flow,
  side: "in" | "out",
  pattern: string,
  path: Path,
): Decision {
  const key = side === "in" ? "inDevice" : "outDevice";
  const device: Device = flow[key];
  if (pattern === "+") return true;
  if (device.name !== null) return fits(device.name, pattern);
  if (device.like.some((like) => fits(like, pattern) || pattern === like)) return true;
  if (device.like.some((like) => !like.endsWith("+") && !fits(like, pattern))) return false;
  if (device.unlike.some((unlike) => fits(pattern, unlike))) return false;
  const implied =
    side === "in" ? impliedIn(node, flow, pattern, path) : impliedOut(node, flow, pattern, path);
  if (implied !== null) return implied;
  return {
    why: `whether the packet ${side === "in" ? "comes in" : "goes out"} by ${pattern}`,
    learn: (known, holds) => ({
      ...known,
      [key]: holds
        ? { ...device, like: [...device.like, pattern] }
        : { ...device, unlike: [...device.unlike, pattern] },
    }),
  };
}

function impliedIn(node: Node, flow: Flow, pattern: string, path: Path): boolean | null {
  if (pattern === "lo") return false;
  if (node.podDevices.includes(pattern)) return flow.from === "pod";
  if (flow.from === "pod" && ofMachine.test(pattern)) return false;
  if (flow.from === "outside") {
    const back = flow.source ?? (node.family === 4 ? "0.0.0.0/0" : "::/0");
    const byWayBack = byRoute(node, back, pattern);
    if (byWayBack !== null) {
      path.note(
        "The packet is taken to come in by the interface that `ip route` has to its source.",
      );
      return byWayBack;
    }
    if (ofContainers.test(pattern)) return false;
  }
  return flow.source === null ? null : bySubnet(node, flow.source, pattern);
}

function impliedOut(node: Node, flow: Flow, pattern: string, path: Path): boolean | null {
  const local = isLocal(node, flow.destination, path);
  if (local === true) return pattern === "lo";
  if (pattern === "lo" && local === false) return false;
  return byRoute(node, flow.destination, pattern) ?? bySubnet(node, flow.destination, pattern);
}

/**
 * Null without `ip route`, without a route, and where some of its next hops fit and some do not.
 */
function byRoute(node: Node, address: string, pattern: string): boolean | null {
  const range = rangeOf(address);
  if (range === null || node.dump.routes === null) return null;
  const by = devicesTo(node.dump.routes, range).map((name) => fits(name, pattern));
  return by.length === 0 || by.includes(!by[0]) ? null : by[0]!;
}

/**
 * An interface with a subnet leads to that subnet; to other addresses only if it leads out of the
 * machine.
 */
function bySubnet(node: Node, address: string, pattern: string): boolean | null {
  const range = rangeOf(address);
  if (range === null) return null;
  for (const device of node.dump.addresses?.interfaces ?? []) {
    for (const own of device.addresses) {
      const subnet = rangeOf(networkOf(own.address, own.prefix));
      if (subnet === null || !overlaps(subnet, range) || subnet.low === subnet.high) continue;
      if (isWithin(range, subnet)) return fits(device.name, pattern);
    }
  }
  const named = node.dump.addresses?.interfaces.find((device) => device.name === pattern);
  if (
    named !== undefined &&
    ofContainers.test(pattern) &&
    named.addresses.some((own) => own.prefix < 32)
  )
    return false;
  return null;
}
