import { canonical, isWithin, rangeOf } from "../../model/range";
import type { Decision, Flow } from "../flow";
import { isInSet } from "../ipset";
import { markMatch } from "./mark";
import { type Match, matching, open, type Recent, silent, type Test } from "./match";

/**
 * The first packet of a connection is NEW, or UNTRACKED after NOTRACK; DNAT and SNAT say what was
 * done to it.
 */
function hasState(flow: Flow, states: readonly string[]): boolean {
  return states.some(
    (state) =>
      (state === "NEW" && flow.tracked) ||
      (state === "UNTRACKED" && !flow.tracked) ||
      (state === "DNAT" && flow.dnat.length > 0) ||
      (state === "SNAT" && flow.snat.length > 0),
  );
}

const state = matching(
  (states): Test =>
    (flow) =>
      hasState(flow, states.split(",")),
);

const original = (
  test: (value: string, address: string, port: number, protocol: string) => Decision,
): Match =>
  matching(
    (value) =>
      (_flow, { node: { packet } }) =>
        test(value, packet.destination, packet.port, packet.protocol),
  );

const within = (address: string, range: string): boolean => {
  const [inner, outer] = [rangeOf(address), rangeOf(range)];
  return inner !== null && outer !== null && isWithin(inner, outer);
};

const portWithin = (port: number, text: string): boolean => {
  const [low, high] = text.split(":").map(Number);
  return port >= low! && port <= (high ?? low!);
};

/** `-m ipvs` knows packets that IPVS has a connection for, by the virtual service. */
const ofIpvs =
  (test: Test): Test =>
  (flow, ...at) =>
    flow.ipvs && test(flow, ...at);

const statistic: Readonly<Record<string, Match>> = {
  "--mode": silent(1),
  "--probability": {
    values: 1,
    read([value], negated, specification) {
      const chance = likely(Number(value));
      specification.chance = negated ? 1 - chance : chance;
    },
  },
  "--every": {
    values: 1,
    read([value], negated, specification) {
      const chance = 1 / Number(value);
      specification.chance = negated ? 1 - chance : chance;
    },
  },
  "--packet": silent(1),
};

/** kube-proxy means one of so many and prints it rounded, 0.33332999982 in old versions. */
function likely(printed: number): number {
  const whole = 1 / Math.round(1 / printed);
  return Math.abs(whole - printed) < 6e-6 ? whole : printed;
}

function remembered(change: (value: string) => Partial<Recent>): Match {
  return {
    values: 0,
    read([value], _negated, specification) {
      specification.recent = { ...specification.recent, ...change(value ?? "") };
    },
  };
}

const recent: Readonly<Record<string, Match>> = {
  "--set": silent(0),
  "--remove": remembered(() => ({ asks: true })),
  "--rcheck": remembered(() => ({ asks: true })),
  "--update": remembered(() => ({ asks: true })),
  "--seconds": { ...remembered((seconds) => ({ seconds: Number(seconds) })), values: 1 },
  "--name": { ...remembered((list) => ({ list })), values: 1 },
  "--hitcount": silent(1),
  "--reap": silent(0),
  "--rttl": silent(0),
  "--rsource": silent(0),
  "--rdest": silent(0),
  "--mask": silent(1),
};

export const stateMatches: Readonly<Record<string, Match>> = {
  ...statistic,
  ...recent,
  "--state": state,
  "--ctstate": state,
  "--ctdir": matching((direction) => () => direction === "ORIGINAL"),
  "--ctproto": original((value, _address, _port, protocol) =>
    ["6 tcp", "17 udp", "132 sctp"].some(
      (each) => each.split(" ").includes(value) && each.endsWith(protocol),
    ),
  ),
  "--ctorigdst": original((value, address) => within(address, value)),
  "--ctorigdstport": original((value, _address, port) => portWithin(port, value)),
  "--mark": matching((value) => (flow) => markMatch(flow.mark, value)),
  "connmark --mark": matching((value) => (flow) => markMatch(flow.connmark, value)),
  "--comment": {
    values: 1,
    read([text], _negated, specification) {
      specification.comment = text!;
    },
  },
  "--match-set": {
    values: 2,
    read([name, sides], negated, specification) {
      specification.tests.push((flow, { node, path }) => {
        const held = isInSet(name!, { node, flow, path, sides: sides!.split(",") });
        return typeof held === "boolean" ? held !== negated : held;
      });
    },
  },
  "--return-nomatch": silent(0),
  "--update-counters": silent(0),
  "--update-subcounters": silent(0),
  "--nfacct-name": silent(1),
  "--validmark": silent(0),
  "--loose": silent(0),
  "--ipvs": matching(() => ofIpvs(() => true)),
  "--vaddr": matching((range) =>
    ofIpvs((_flow, { node }) => within(canonical(node.packet.destination)!, range)),
  ),
  "--vport": matching((port) => ofIpvs((_flow, { node }) => node.packet.port === Number(port))),
  "--vproto": matching((name) =>
    ofIpvs(
      (_flow, { node }) =>
        node.packet.protocol === name.toLowerCase() ||
        { tcp: "6", udp: "17", sctp: "132" }[node.packet.protocol] === name,
    ),
  ),
  "-m rpfilter": {
    values: 0,
    read: (_values, _negated, specification) =>
      void specification.tests.push((_flow, { path }) => {
        path.note(
          "The source is taken for one that the packet's interface leads to: reverse path filters let it pass.",
        );
        return true;
      }),
  },
  "--invert": {
    values: 0,
    read: (_values, _negated, specification) => void specification.tests.push(() => false),
  },
  "-m socket": open(0, () => "whether a process of the node has a socket for the packet"),
  "--listed": open(1, (text) => `what \`${text}\` in the listing means`),
  "--limit": open(1, (rate) => `whether the rate is still below ${rate}`),
  "--limit-burst": silent(1),
  "--uid-owner": open(1, (user) => `whether user ${user} sends the packet`),
  "--gid-owner": open(1, (group) => `whether group ${group} sends the packet`),
};
