import {
  type Chain,
  type Iptables,
  ofKubeProxy,
  placed,
  type Rule,
  shorten,
  type Table,
} from "../../model/iptables";
import { addressOf, canonical, rangeOf } from "../../model/range";
import { redirectTarget } from "../addresses/local";
import type { HookContext } from "../context";
import { end, type Flow, redirect, socket, type Translation } from "../flow";
import { hex, setMark } from "./mark";
import type { Specification, Target } from "./match";

/** Where a packet is: a rule of a chain, on the walk through a table. */
export interface Place {
  readonly rule: Rule;
  readonly specification: Specification;
  readonly chain: Chain;
  readonly walk: Walk;
}

export interface Action extends Place {
  readonly target: Target;
  readonly flow: Flow;
  step(effect: string): void;
}

const onward: Readonly<Record<string, string>> = {
  LOG: "logs the packet",
  NFLOG: "logs the packet",
  ULOG: "logs the packet",
  TRACE: "traces the packet in the kernel log",
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
  LED: "switches an LED",
};

/** What a target that is no chain does; null when it is not known. */
export function act(action: Action): Branches | null {
  const { target, flow, step } = action;
  const goesOn = onward[target.name];
  if (goesOn !== undefined) {
    step(goesOn);
    return next(flow);
  }
  switch (target.name) {
    case "ACCEPT":
      step(`accepts: table ${action.walk.table.name} is done with the packet in this hook`);
      return ended(flow);
    case "RETURN":
      step("returns to the calling chain");
      return { ended: [], returned: [flow], next: [] };
    case "DROP":
      step("drops the packet");
      return ended(end(flow, "drop", because(action, "drops it")));
    case "REJECT":
      step(
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
      step("hands the packet to a program, which decides");
      return ended(end(flow, "unknown", because(action, "hands it to a program that decides")));
    case "TPROXY":
      step("hands the packet to a proxy on the node");
      return ended(
        end(flow, "unknown", because(action, "hands it to a proxy on the node, which decides")),
      );
    default:
      return null;
  }
}

export const next = (flow: Flow): Branches => ({ ended: [], returned: [], next: [flow] });

const ended = (flow: Flow): Branches => ({ ended: [flow], returned: [], next: [] });

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

function mark({ target, flow, step }: Action): Branches {
  const option = markOptions.find((name) => target.options.has(name)) ?? "";
  const value = setMark(flow.mark, option, target.options.get(option)?.[0] ?? "0");
  step(
    value === flow.mark
      ? `leaves the mark at ${hex(value)}`
      : `sets the mark from ${hex(flow.mark)} to ${hex(value)}`,
  );
  return next({ ...flow, mark: value });
}

function connmark({ target, flow, step }: Action): Branches {
  const bits = (name: string): number =>
    Number((target.options.get(name) ?? target.options.get("--mask"))?.[0] ?? 0xffffffff) >>> 0;
  const [ofPacket, ofConnection] = [bits("--nfmask"), bits("--ctmask")];
  if (target.options.has("--save-mark")) {
    step("saves the mark with the connection");
    return next({
      ...flow,
      connmark: ((flow.connmark & ~ofConnection) ^ (flow.mark & ofPacket)) >>> 0,
    });
  }
  if (target.options.has("--restore-mark")) {
    step("restores the connection's mark");
    return next({
      ...flow,
      mark: ((flow.mark & ~ofPacket) ^ (flow.connmark & ofConnection)) >>> 0,
    });
  }
  const option = markOptions.find((name) => target.options.has(name)) ?? "";
  step("sets the connection's mark");
  return next({
    ...flow,
    connmark: setMark(flow.connmark, option, target.options.get(option)?.[0] ?? "0"),
  });
}

function track({ target, flow, step }: Action): Branches {
  if (target.name === "CT" && !target.options.has("--notrack")) {
    step("sets how the connection is tracked");
    return next(flow);
  }
  step("takes the packet out of connection tracking: no nat rule sees it");
  return next({ ...flow, tracked: false });
}

function rewriteSource(action: Action): Flow {
  const { target, flow, step } = action;
  const to = (target.options.get("--to-source") ?? target.options.get("--to-destination"))?.[0];
  const random = target.options.has("--random-fully") ? ", with a random port" : "";
  step(`the source becomes ${to ?? "the address of the outgoing interface"}${random}`);
  const by = translation(action, to ?? "the address of the outgoing interface");
  return { ...flow, sourceSettled: true, snat: [...flow.snat, by] };
}

/** `10.0.0.1:80`, `10.0.0.1`, `[fd00::1]:80`, `:80`, `10.0.0.1-10.0.0.9:8000-8010`. */
const destination =
  /^(?:\[([0-9a-fA-F:.-]+)\]|([0-9a-fA-F.-]+|[0-9a-fA-F:]+:[0-9a-fA-F:.]*)?)(?::(\d+)(?:-\d+)?)?$/;

export function rewriteDestination(action: Action, by: Translation): Flow {
  const { target, flow, step, walk } = action;
  const text = target.options.get("--to-destination")?.[0] ?? "";
  const read = /^\d+$/.test(text) ? null : destination.exec(text);
  const first = (read?.[1] ?? read?.[2])?.split("-")[0];
  const address = first === undefined ? flow.destination : canonical(first);
  if (read === null || address === null || text === "") {
    const why = `Where \`${action.rule.text}\` sends the packet cannot be read from it.`;
    step("rewrites the destination, but its target cannot be read");
    return { ...flow, verdict: { kind: "unknown", why } };
  }
  if (text.includes("-"))
    walk.context.path.note(`\`${action.rule.text}\` picks one of ${text}; the first is followed.`);
  const port = read[3] === undefined ? flow.port : Number(read[3]);
  remarkOddEndpoint(action, address);
  step(`the destination becomes ${socket(address, port)}`);
  return redirect(flow, address, port, { ...by, to: socket(address, port) });
}

/**
 * An endpoint's chain names its pod twice: as the source that reaches itself, and as the
 * destination.
 */
function remarkOddEndpoint({ chain, walk, rule }: Action, address: string): void {
  if (!chain.name.startsWith("KUBE-SEP-")) return;
  const marked = chain.rules
    .filter((other) => other !== rule && other.text.includes("KUBE-MARK-MASQ"))
    .map(
      (other) =>
        /(?:-s |--\s+|\s)([0-9a-f]*[.:][0-9a-f.:]+)(?:\/\d+)?(?:\s|$)/i.exec(other.text)?.[1],
    )
    .find((source) => source !== undefined && canonical(source) !== null);
  if (marked === undefined || canonical(marked) === address) return;
  walk.context.path.note(
    `${chain.name} sends to ${address} but marks the source ${marked}, which should be the same: one of them is mistyped; the rules are taken as they are.`,
  );
}

function redirectHere(action: Action, by: Translation): Flow {
  const { target, flow, step, walk } = action;
  const port = Number(target.options.get("--to-ports")?.[0]?.split("-")[0] ?? flow.port);
  const address = redirectTarget(walk.context, flow);
  step(`the destination becomes the node itself, port ${port}`);
  return redirect(flow, address, port, { ...by, to: socket(address, port) });
}

/** NETMAP keeps the host's part of an address and changes the network's. */
export function mapNet(action: Action, by: Translation): Flow {
  const { target, flow, step, walk } = action;
  const to = rangeOf(target.options.get("--to")?.[0] ?? "");
  const source = walk.context.hook === "postrouting" || walk.context.hook === "input";
  const before = rangeOf(flow.destination);
  if (source || to === null || before === null) {
    step("rewrites the network of the source");
    return { ...flow, sourceSettled: true, snat: [...flow.snat, by] };
  }
  const address = addressOf(to.low + (before.low & (to.high - to.low)), to.family);
  step(`the destination becomes ${socket(address, flow.port)}`);
  return redirect(flow, address, flow.port, { ...by, to: socket(address, flow.port) });
}

/** One walk through the chains of one table. */
export interface Walk {
  readonly iptables: Iptables;
  readonly table: Table;
  readonly context: HookContext;
  depth: number;
}

/** Where flows stand after a rule or a chain. */
export interface Branches {
  /** The table is done with them: accepted, or with a verdict. */
  readonly ended: Flow[];
  /** Back to the chain that called this one. */
  readonly returned: Flow[];
  /** To the next rule. */
  readonly next: Flow[];
}
