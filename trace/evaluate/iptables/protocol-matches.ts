import { serviceNames } from "../../model/port-names";
import { type Match, matching, open, silent, type Test } from "./match";

const numbers: Readonly<Record<string, string>> = { "6": "tcp", "17": "udp", "132": "sctp" };

const protocol = matching((name) => (flow) => {
  const plain = numbers[name] ?? name.toLowerCase();
  return plain === "all" || plain === "0" || plain === flow.protocol;
});

/**
 * A listing typed off by hand may say `udp` in an endpoint's chain that only tcp reaches;
 * kube-proxy writes one protocol all along.
 */
const listedProtocol = matching((name) => (flow, { path }, chain) => {
  if (chain.startsWith("KUBE-SEP-") && name !== flow.protocol) {
    path.note(
      `${chain} is listed for ${name}, but only ${flow.protocol} comes to it: taken for a misprint.`,
    );
    return true;
  }
  return name === flow.protocol;
});

function portOf(name: string): number | null {
  return /^\d+$/.test(name) ? Number(name) : (serviceNames[name] ?? null);
}

/** `80`, `8000:8010`, `:1023`, `https`, and several with commas. */
function toPort(text: string): Test {
  const ranges = text.split(",").map((each) => {
    const [low, high] = each.split(":");
    return {
      low: low === "" ? 0 : portOf(low!),
      high: high === undefined ? portOf(low!) : high === "" ? 65535 : portOf(high),
    };
  });
  const named = ranges.find((range) => range.low === null || range.high === null);
  if (named !== undefined) return () => ({ why: `which port the name in ${text} stands for` });
  return (flow) => ranges.some((range) => flow.port >= range.low! && flow.port <= range.high!);
}

const destinationPort = matching(toPort);

const sourcePort = matching(
  (text) => () =>
    /^[01]?:65535$/.test(text) ? true : { why: `whether the client's port is ${text}` },
);

const flagBits: Readonly<Record<string, number>> = {
  FIN: 1,
  SYN: 2,
  RST: 4,
  PSH: 8,
  ACK: 16,
  URG: 32,
  ALL: 63,
  NONE: 0,
};

function bitsOf(text: string): number {
  if (/^(0x)?[0-9a-f]+$/i.test(text)) return Number.parseInt(text, 16);
  return text.split(",").reduce((bits, name) => bits | (flagBits[name] ?? 0), 0);
}

/** A connection's first packet carries SYN alone. */
const flags: Match = {
  values: 2,
  read([mask, set], negated, specification) {
    const holds = (bitsOf(mask!) & flagBits["SYN"]!) === bitsOf(set!);
    specification.tests.push((flow) => flow.protocol === "tcp" && holds !== negated);
  },
};

const syn: Match = {
  values: 0,
  read: (_values, negated, specification) => {
    specification.tests.push((flow) => flow.protocol === "tcp" && !negated);
  },
};

const never: Match = matching(() => () => false);

export const protocolMatches: Readonly<Record<string, Match>> = {
  "-p": protocol,
  "--listed-protocol": listedProtocol,
  "--protocol": protocol,
  "--proto": protocol,
  "--dport": destinationPort,
  "--destination-port": destinationPort,
  "--dports": destinationPort,
  "--destination-ports": destinationPort,
  "--sport": sourcePort,
  "--source-port": sourcePort,
  "--sports": sourcePort,
  "--source-ports": sourcePort,
  "--ports": matching(
    (text) =>
      (...at) =>
        toPort(text)(...at) === true
          ? true
          : { why: `whether the client's port is one of ${text}` },
  ),
  "--tcp-flags": flags,
  "--syn": syn,
  "--tcp-option": open(1, (number) => `whether the packet has TCP option ${number}`),
  "--icmp-type": never,
  "--icmpv6-type": never,
  "-f": {
    values: 0,
    read: (_values, negated, specification) => void specification.tests.push(() => negated),
  },
  "--fragment": {
    values: 0,
    read: (_values, negated, specification) => void specification.tests.push(() => negated),
  },
  "-4": silent(0),
  "-6": silent(0),
};
