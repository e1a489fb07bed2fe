import { isDevice } from "../addresses/device";
import type { Decision } from "../flow";
import { devicePattern } from "./kinds";
import type { Question } from "./question";
import { address, isMany, protocols, source } from "./question";
import { selectConntrack } from "./select-conntrack";
import { selectRoute } from "./select-route";
import type { Subject } from "./subject";
import { known, open } from "./subject";

/** What the packet has for a selector such as `ip saddr`. */
export function select(name: string, question: Question): Subject {
  const { flow, meeting } = question;
  const { node } = meeting;
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
      return open(last === "sport" ? "which port the packet comes from" : `what ${name} is`);
    case "meta":
      return selectMeta(last, question);
    case "ct":
      return selectConntrack(rest, question);
    case "fib":
      return selectRoute(rest, question);
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
      return open(`what ${name} is`);
  }
}

function selectHeader(field: string, question: Question): Subject {
  const { flow, meeting } = question;
  switch (field) {
    case "daddr":
      return address(flow.destination);
    case "saddr":
      return source(question);
    case "protocol":
    case "nexthdr":
      return known(protocols[flow.protocol]);
    case "version":
      return known(meeting.node.family);
    case "frag-off":
      return known(0);
    default:
      return open(`what the packet's ${field} is`);
  }
}

function selectMeta(key: string, { flow, meeting }: Question): Subject {
  const { node, path } = meeting;
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
      return isMany(flow.destination) ? open("what kind of packet it is") : known(0);
    case "random":
      return { is: "pick", how: "random", mod: 2 ** 32, offset: 0 };
    case "iif":
    case "iifname":
    case "oif":
    case "oifname": {
      const side = key.startsWith("i") ? "in" : "out";
      const ask = (text: string): Decision => isDevice(node, flow, side, devicePattern(text), path);
      return { is: "open", ask, why: `by which interface the packet goes ${side}` };
    }
    case "skuid":
    case "skgid":
      return flow.from === "node" ? open("which user sends the packet") : { is: "absent" };
    default:
      return open(`what the packet's ${key} is`);
  }
}
