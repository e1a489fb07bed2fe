import { isWithin, type Range, rangeOf } from "../../model/range";
import { isDevice } from "../addresses/device";
import { isLocal, isSourceLocal } from "../addresses/local";
import { isSourceIn } from "../addresses/source";
import { anyOf, type Decision } from "../flow";
import { type Match, matching, open, silent, type Test } from "./match";

/** Names that a listing without `-n` prints for networks on every machine. */
const networkNames: Readonly<Record<string, string>> = {
  localhost: "127.0.0.1",
  "loopback/8": "127.0.0.0/8",
  "link-local/16": "169.254.0.0/16",
  "base-address.mcast.net/4": "224.0.0.0/4",
  "ip6-localhost": "::1",
};

function ranges(text: string): Range[] | null {
  const read = text.split(",").map((each) => rangeOf(networkNames[each] ?? each));
  return read.every((range) => range !== null) ? read : null;
}

const unnamed = (text: string): Decision => ({ why: `which address the name ${text} stands for` });

const source = matching((text) => {
  const read = ranges(text);
  if (read === null) return () => unnamed(text);
  return (flow, { node, path }, chain) => {
    return anyOf(
      read.map((range) => isSourceIn(node, flow, range, chain.startsWith("KUBE-SEP-"), path)),
    );
  };
});

const destination = matching((text) => {
  const read = ranges(text);
  if (read === null) return () => unnamed(text);
  return (flow) => {
    const address = rangeOf(flow.destination);
    return address !== null && read.some((range) => isWithin(address, range));
  };
});

const device = (side: "in" | "out"): Match =>
  matching(
    (pattern) =>
      (flow, { node, path }) =>
        isDevice(node, flow, side, pattern, path),
  );

const multicast = ["224.0.0.0/4", "ff00::/8"].map((text) => rangeOf(text)!);

function kind(local: Decision, address: string | null, type: string): Decision {
  if (type === "LOCAL") return local;
  const range = address === null ? null : rangeOf(address);
  const many = range !== null && multicast.some((each) => isWithin(range, each));
  if (type === "MULTICAST") return many;
  if (type === "BROADCAST" && address === "255.255.255.255") return true;
  if (type === "UNICAST" && local !== true) return many ? false : local === false ? true : local;
  if (type === "UNICAST") return false;
  return { why: `whether ${address ?? "the source"} is of type ${type}` };
}

function addressType(side: "source" | "destination"): Match {
  return matching((types): Test => (flow, { node, path }) => {
    const local =
      side === "source"
        ? isSourceLocal(node, flow.source, path)
        : isLocal(node, flow.destination, path);
    return anyOf(types.split(",").map((type) => kind(local, flow[side], type)));
  });
}

/** Only a packet that came over a bridge has a bridge port; only pods are behind one. */
const bridged: Match = matching(
  () => (flow) => (flow.from === "pod" ? { why: "whether the pod is behind a bridge" } : false),
);

const flag = (match: Match): Match => ({
  values: 0,
  read: (_values, negated, specification) => match.read([""], negated, specification),
});

export const addressMatches: Readonly<Record<string, Match>> = {
  "-s": source,
  "--source": source,
  "--src": source,
  "--src-range": source,
  "-d": destination,
  "--destination": destination,
  "--dst": destination,
  "--dst-range": destination,
  "-i": device("in"),
  "--in-interface": device("in"),
  "-o": device("out"),
  "--out-interface": device("out"),
  "--src-type": addressType("source"),
  "--dst-type": addressType("destination"),
  "--limit-iface-in": silent(0),
  "--limit-iface-out": silent(0),
  "--physdev-is-in": flag(bridged),
  "--physdev-is-bridged": flag(bridged),
  "--physdev-is-out": flag(
    matching(
      () => (flow) =>
        flow.dnat.length > 0 ? false : { why: "whether the packet leaves over a bridge" },
    ),
  ),
  "--physdev-in": matching(
    (name) => (flow) =>
      flow.from === "node" ? false : { why: `whether the packet comes in by bridge port ${name}` },
  ),
  "--physdev-out": open(1, (name) => `whether the packet goes out by bridge port ${name}`),
  "--mac-source": open(1, (mac) => `whether the sender has the MAC address ${mac}`),
};
