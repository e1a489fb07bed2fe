import {
  addressOf,
  isLoopback,
  isSingle,
  isWithin,
  overlaps,
  type Range,
  rangeOf,
} from "../../model/range";
import type { Node, Path } from "../context";
import type { Decision, Flow } from "../flow";
import { isLocal } from "./local";

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
