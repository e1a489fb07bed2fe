import { rangeOf } from "../../../model/packet";
import { isDevice, isLocal, isSourceIn, isSourceLocal } from "../../addresses";
import type { HookContext } from "../../context";
import type { Decision, Flow, Undecided } from "../../flow";
import {
  devicePattern,
  intervalOf,
  isPart,
  known,
  type NamedDoubt,
  numberOf,
  type Subject,
  undecidable,
} from "./kinds";

/** The packet's value of a selector such as `ip saddr`. */
export function select(name: string, question: Question): Subject {
  const { flow, context } = question;
  const { node } = context;
  const [first = "", ...rest] = name.split(" ");
  const last = rest.at(-1) ?? "";
  switch (first) {
    case "ip":
    case "ip6":
      if ((first === "ip") !== (node.family === 4)) return { is: "absent" };
      return selectHeader(last, question);
    case "tcp":
    case "udp":
    case "sctp":
    case "th":
      if (first !== "th" && first !== flow.protocol) return { is: "absent" };
      if (last === "dport") return known(flow.port);
      // A connection begins with SYN alone.
      if (last === "flags") return known(2);
      if (last === "port") return eitherPort(flow.port);
      if (last === "sport") return undecidable("which port the packet comes from", isClientPort);
      return undecidable(`what ${name} is`);
    case "meta":
      return selectMeta(last, question);
    case "ct":
      return selectConntrack(rest, question);
    case "fib":
      return selectRoute(rest, question);
    case "physdev":
      return selectBridgePort(last, flow);
    case "ipvs":
      return selectIpvs(rest, question);
    case "icmp":
    case "icmpv6":
    case "igmp":
    case "udplite":
    case "dccp":
    case "ah":
    case "esp":
    case "comp":
    case "gre":
    case "arp":
      return { is: "absent" };
    default:
      return undecidable(`what ${name} is`);
  }
}

function selectHeader(field: string, question: Question): Subject {
  const { flow, context } = question;
  switch (field) {
    case "daddr":
      return address(flow.destination);
    case "saddr":
      return source(question);
    case "protocol":
    case "nexthdr":
      return known(protocols[flow.protocol]);
    case "version":
      return known(context.node.family);
    case "frag-off":
      return known(0);
    default:
      return undecidable(`what the packet's ${field} is`);
  }
}

function selectMeta(key: string, { flow, context }: Question): Subject {
  const { node, path } = context;
  switch (key) {
    case "mark":
      return known(flow.mark);
    case "l4proto":
      return known(protocols[flow.protocol]);
    case "nfproto":
      return known(node.family === 4 ? 2 : 10);
    case "protocol":
      return known(node.family === 4 ? 0x800 : 0x86dd);
    case "pkttype":
      return isMany(flow.destination) ? undecidable("what kind of packet it is") : known(0);
    case "random":
      return { is: "numgen", mode: "random", mod: 2 ** 32, offset: 0 };
    case "iif":
    case "iifname":
    case "oif":
    case "oifname": {
      const side = key.startsWith("i") ? "in" : "out";
      const ask = (text: string): Decision => isDevice(node, flow, side, devicePattern(text), path);
      return { is: "undecidable", ask, why: `by which interface the packet goes ${side}` };
    }
    case "skuid":
    case "skgid":
      return flow.from === "node"
        ? undecidable(
            "which user sends the packet",
            (text) => `whether ${key} of the sender is ${text}`,
          )
        : { is: "absent" };
    default:
      return undecidable(`what the packet's ${key} is`);
  }
}

const isClientPort = (text: string): string => `whether the client's port is ${text}`;

/** The packet's port, or that of its source, which is unknown. */
const eitherPort = (port: number): Subject => ({
  is: "undecidable",
  ask: (text) => (isPart(known(port), "port", text) === true ? true : { why: isClientPort(text) }),
  why: "which port the packet comes from",
});

/** Only a packet that came over a bridge has a bridge port; only pods are behind one. */
function selectBridgePort(name: string, flow: Flow): Subject {
  switch (name) {
    case "in":
      return flow.from === "node"
        ? { is: "absent" }
        : undecidable(
            "by which bridge port the packet comes in",
            (text) => `whether the packet comes in by bridge port ${text}`,
          );
    case "is-in":
      return flow.from === "pod" ? undecidable("whether the pod is behind a bridge") : known(0);
    default:
      return flow.dnat.length > 0
        ? known(0)
        : undecidable("whether the packet leaves over a bridge");
  }
}

/** iptables' match `ipvs`: the virtual service of packets that IPVS has a connection for. */
function selectIpvs(words: readonly string[], question: Question): Subject {
  const { packet } = question.context.node;
  const name = words.join(" ");
  if (name === "connection") return known(question.flow.ipvs ? 1 : 0);
  if (!question.flow.ipvs) return { is: "absent" };
  if (name === "dport") return known(packet.port);
  return name === "protocol" ? known(protocols[packet.protocol]) : address(packet.destination);
}

/** `words` is what follows `ct`, such as `state` or `original ip daddr`. */
function selectConntrack(words: readonly string[], question: Question): Subject {
  const { flow, context } = question;
  const { packet, family } = context.node;
  const name = words.join(" ");
  switch (name) {
    case "state":
      return known(numberOf("state", flow.tracked ? "new" : "untracked")!);
    case "state with nat":
      return known(
        numberOf("ctstate", flow.tracked ? "new" : "untracked")! +
          (flow.dnat.length > 0 ? numberOf("ctstate", "dnat")! : 0) +
          (flow.snat.length > 0 ? numberOf("ctstate", "snat")! : 0),
      );
    case "status":
      if (flow.ipvs) return undecidable("what the connection's status is");
      return known((flow.dnat.length > 0 ? 32 : 0) + (flow.snat.length > 0 ? 16 : 0));
    case "direction":
      return known(0);
    case "mark":
      return known(flow.connmark);
    case "original proto-dst":
      return known(packet.port);
    case "protocol":
    case "original protocol":
      return known(protocols[flow.protocol]);
    case "l3proto":
    case "original l3proto":
      return known(family === 4 ? 2 : 10);
  }
  const original = /^original (?:(ip6?) )?([sd])addr$/.exec(name);
  if (original === null) return undecidable(`what the connection's ${name} is`);
  const [, version, end] = original;
  if (version !== undefined && (version === "ip") !== (family === 4)) return { is: "absent" };
  return end === "d"
    ? address(packet.destination)
    : source({ ...question, flow: { ...flow, snat: [] } });
}

/** `words` is what follows `fib`, such as `daddr . iif type`. */
function selectRoute(words: readonly string[], { flow, context }: Question): Subject {
  const { node, path } = context;
  const ofSource = words[0] === "saddr";
  const result = words.at(-1);
  const what = ofSource ? "the source" : flow.destination;
  if (result === "type") {
    const local = ofSource
      ? isSourceLocal(node, flow.source, path)
      : isLocal(node, flow.destination, path);
    const ask = (text: string): Decision => {
      const type = numberOf("route", text);
      if (type === null) return { why: `what "${text}" stands for` };
      if (!ofSource && isMany(flow.destination)) return isOfMany(type, flow.destination);
      if (type > 2) return false;
      if (local !== true && local !== false) return undecided(type, local, flow.destination);
      if (type === 2 && local && words.includes("iif"))
        return { why: `whether ${what} is on the interface that the packet comes in by` };
      return type === (local ? 2 : 1);
    };
    return { is: "undecidable", ask, why: `what kind of address ${what} is` };
  }
  if (ofSource && (result === "oif" || result === "check")) {
    path.note(
      "The way back to the source is taken to lead out of the interface that the packet comes in by.",
    );
    return {
      is: "undecidable",
      ask: (text) =>
        /^(missing|false|0)$/.test(text)
          ? false
          : /^(exists|true)$/.test(text)
            ? true
            : { why: `which way leads back to the source` },
      why: "which way leads back to the source",
    };
  }
  return undecidable(`which way leads to ${what}`);
}

/** 255.255.255.255 is broadcast, and each of the others multicast, whatever the routes are. */
const isOfMany = (type: number, destination: string): boolean =>
  type === numberOf("route", destination.startsWith("255.") ? "broadcast" : "multicast");

/** The kernel's own routing asks the same, and the answer has to be the same there. */
function undecided(type: number, local: Undecided, destination: string): Decision {
  if (type !== 2) return { why: `whether ${destination} is an address of another machine` };
  const asked: NamedDoubt = { ...local, id: `local ${destination}` };
  return asked;
}

/** The packet, and the chain in which it is asked about. */
export interface Question {
  readonly flow: Flow;
  readonly context: HookContext;
  readonly chain: string;
}

const protocols = { tcp: 6, udp: 17, sctp: 132 };

function address(text: string): Subject {
  const interval = intervalOf("address", text);
  return interval === null
    ? undecidable(`which address ${text} is`)
    : { is: "value", value: interval.low, text };
}

/** Chains that kube-proxy has for an endpoint each, and asks there whether a pod reaches itself. */
const ofEndpoint = /^(KUBE-SEP-|endpoint-)/;

function source({ flow, context, chain }: Question): Subject {
  if (flow.snat.length > 0) return undecidable("which source the packet has after its translation");
  if (flow.source !== null) return address(flow.source);
  const ask = (text: string): Decision => {
    const range = rangeOf(text);
    return range === null
      ? { why: `what "${text}" stands for` }
      : isSourceIn(context.node, flow, range, ofEndpoint.test(chain), context.path);
  };
  return { is: "undecidable", ask, why: "which source the packet has: none is given" };
}

/** Multicast and broadcast. */
function isMany(destination: string): boolean {
  return /^(22[4-9]|23\d|255)\.|^ff/i.test(destination);
}
