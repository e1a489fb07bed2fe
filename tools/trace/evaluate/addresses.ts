import type { Route, Routes } from "../model/dump";
import { isWithin, networkOf, overlaps, type Range, rangeOf } from "../model/range";
import type { Node, Path } from "./context";
import type { Decision, Device, Flow } from "./flow";
import { isLocal } from "./addresses/local";

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
