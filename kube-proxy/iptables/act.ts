import { end, type Flow, type Translation } from "../flow";
import type { Chain, Rule } from "./iptables";
import { hex, setMark } from "./mark";
import { mapNet, redirectHere, rewriteDestination } from "./rewrite";
import type { Specification, Target } from "./specification";
import type { Walk, Ways } from "./walk";
import { placed, shorten } from "./words";

export interface Action {
  readonly rule: Rule;
  readonly specification: Specification;
  readonly target: Target;
  readonly chain: Chain;
  readonly flow: Flow;
  readonly walk: Walk;
  tell(effect: string): void;
}

/** Chains that kube-proxy writes; other programs have names that only look alike. */
export const ofKubeProxy = /^KUBE-(?!ROUTER|NWPLCY|POD-FW|NETPOL)/;

const onward: Readonly<Record<string, string>> = {
  LOG: "logs the packet",
  NFLOG: "logs the packet",
  ULOG: "logs the packet",
  TRACE: "lets the kernel tell of the packet's way",
  AUDIT: "writes an audit record",
  TCPMSS: "limits the segment size",
  TCPOPTSTRIP: "takes TCP options off",
  CHECKSUM: "completes the checksum",
  CLASSIFY: "sets the traffic class",
  DSCP: "sets the DSCP",
  TOS: "sets the type of service",
  TTL: "changes the time to live",
  HL: "changes the hop limit",
  ECN: "changes the ECN bits",
  SET: "changes a set",
  TEE: "sends a copy elsewhere",
  SECMARK: "sets the security mark",
  CONNSECMARK: "copies the security mark",
  IDLETIMER: "starts a timer",
  RATEEST: "measures the rate",
  LED: "blinks a lamp",
};

/** What a target that is no chain does; null when it is not known. */
export function act(action: Action): Ways | null {
  const { target, flow, tell } = action;
  const goesOn = onward[target.name];
  if (goesOn !== undefined) {
    tell(goesOn);
    return next(flow);
  }
  switch (target.name) {
    case "ACCEPT":
      tell(`accepts: table ${action.walk.table.name} is done with the packet in this hook`);
      return ended(flow);
    case "RETURN":
      tell("returns to the calling chain");
      return { ended: [], returned: [flow], next: [] };
    case "DROP":
      tell("drops the packet");
      return ended(end(flow, "drop", because(action, "drops it")));
    case "REJECT":
      tell(
        `rejects the packet with ${target.options.get("--reject-with")?.[0] ?? "icmp-port-unreachable"}`,
      );
      return ended(end(flow, "reject", because(action, "rejects it")));
    case "MARK":
      return mark(action);
    case "CONNMARK":
      return connmark(action);
    case "NOTRACK":
    case "CT":
      return track(action);
    case "DNAT":
      return ended(rewriteDestination(action, translation(action, "")));
    case "REDIRECT":
      return ended(redirectHere(action, translation(action, "")));
    case "NETMAP":
      return ended(mapNet(action, translation(action, "")));
    case "SNAT":
    case "MASQUERADE":
      return ended(rewriteSource(action));
    case "QUEUE":
    case "NFQUEUE":
      tell("hands the packet to a program, which decides");
      return ended(end(flow, "unknown", because(action, "hands it to a program that decides")));
    case "TPROXY":
      tell("hands the packet to a proxy on the node");
      return ended(
        end(flow, "unknown", because(action, "hands it to a proxy on the node, which decides")),
      );
    default:
      return null;
  }
}

export const next = (flow: Flow): Ways => ({ ended: [], returned: [], next: [flow] });
const ended = (flow: Flow): Ways => ({ ended: [flow], returned: [], next: [] });

function because({ rule, chain, walk, specification }: Action, does: string): string {
  const comment = specification.comment.trim();
  const why = comment === "" || comment.startsWith("cali:") ? `\`${shorten(rule.text)}\`` : comment;
  return `Table ${walk.table.name}, chain ${chain.name} ${does}: ${why}.`;
}

export function translation({ rule, chain, walk }: Action, to: string): Translation {
  const kubeProxy = ofKubeProxy.test(chain.name);
  return {
    to,
    by: placed(walk.table, chain, rule),
    kubeProxy,
  };
}

const markOptions = ["--set-xmark", "--set-mark", "--or-mark", "--and-mark", "--xor-mark"];

function mark({ target, flow, tell }: Action): Ways {
  const option = markOptions.find((name) => target.options.has(name)) ?? "";
  const value = setMark(flow.mark, option, target.options.get(option)?.[0] ?? "0");
  tell(
    value === flow.mark
      ? `leaves the mark at ${hex(value)}`
      : `sets the mark from ${hex(flow.mark)} to ${hex(value)}`,
  );
  return next({ ...flow, mark: value });
}

function connmark({ target, flow, tell }: Action): Ways {
  const mask =
    Number(
      target.options.get("--mask")?.[0] ?? target.options.get("--ctmask")?.[0] ?? 0xffffffff,
    ) >>> 0;
  const copied = (from: number, to: number): number => ((to & ~mask) | (from & mask)) >>> 0;
  if (target.options.has("--save-mark")) {
    tell("keeps the mark with the connection");
    return next({ ...flow, connmark: copied(flow.mark, flow.connmark) });
  }
  if (target.options.has("--restore-mark")) {
    tell("takes the mark that the connection has");
    return next({ ...flow, mark: copied(flow.connmark, flow.mark) });
  }
  const option = markOptions.find((name) => target.options.has(name)) ?? "";
  tell("sets the connection's mark");
  return next({
    ...flow,
    connmark: setMark(flow.connmark, option, target.options.get(option)?.[0] ?? "0"),
  });
}

function track({ target, flow, tell }: Action): Ways {
  if (target.name === "CT" && !target.options.has("--notrack")) {
    tell("sets how the connection is tracked");
    return next(flow);
  }
  tell("takes the packet out of connection tracking: no nat rule sees it");
  return next({ ...flow, tracked: false });
}

function rewriteSource(action: Action): Flow {
  const { target, flow, tell } = action;
  const to = (target.options.get("--to-source") ?? target.options.get("--to-destination"))?.[0];
  const random = target.options.has("--random-fully") ? ", with a random port" : "";
  tell(`the source becomes ${to ?? "the address of the outgoing interface"}${random}`);
  const by = translation(action, to ?? "the address of the outgoing interface");
  return { ...flow, sourceSettled: true, snat: [...flow.snat, by] };
}
