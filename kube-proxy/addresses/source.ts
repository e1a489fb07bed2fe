import { Address4, Address6 } from "ip-address";

import type { Decision, Flow } from "../flow";
import type { Path } from "../path";
import { isLocal } from "./local";
import type { Node } from "./node";
import { isSingle, isWithin, overlaps, type Range, rangeOf } from "./range";

const loopback = ["127.0.0.0/8", "::1"].map((text) => rangeOf(text)!);

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
  if (flow.from !== "node" && loopback.some((own) => isWithin(range, own))) return false;
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
      return ofNode(node, range, why);
  }
}

/** The kernel picks the source by the route: an address of the machine, not of a bridge of pods. */
function ofNode(node: Node, range: Range, why: string): Decision {
  const own = (node.dump.addresses?.interfaces ?? [])
    .flatMap((device) => device.addresses)
    .map((each) => rangeOf(each.address)!)
    .filter((each) => each.family === node.family)
    .filter((each) => !loopback.some((local) => isWithin(each, local)))
    .filter((each) => !node.podRanges.some((pods) => isWithin(each, pods)));
  if (own.length > 0 && own.every((each) => isWithin(each, range))) return true;
  if (own.length > 0 && !own.some((each) => isWithin(each, range))) return false;
  if (node.podRanges.some((pods) => isWithin(range, pods))) return false;
  return { why };
}

function written({ family, low, high }: Range): string {
  const text = (value: bigint): string =>
    (family === 4 ? Address4.fromBigInt(value) : Address6.fromBigInt(value)).correctForm();
  return low === high ? text(low) : `${text(low)}–${text(high)}`;
}
