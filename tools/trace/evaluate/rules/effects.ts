import { addressOf, rangeOf } from "../../model/packet";
import type { Expression, Nat, Statement } from "../../model/statement";
import { redirectTarget } from "../addresses";
import { end, type Flow, redirect, socket, type Translation } from "../flow";
import { numberOf } from "./match/kinds";
import { subjectOf } from "./match/match";
import { addStep, choices, type Place, ruleName } from "../context";
import { type Branch, branchOnMap } from "./branches";

/** Sets a mark. Other assignments do not affect where the packet goes. */
export function assign(
  { name, value }: Extract<Statement, { kind: "set" }>,
  flow: Flow,
  place: Place,
  caveat: string,
): Flow {
  if (/^(ip6?|tcp|udp|sctp|th) /.test(name)) {
    if (!/ ([sd]addr|[sd]port)$/.test(name)) return flow;
    addStep(place, `writes ${name}: cannot be followed`, caveat);
    return end(flow, "unknown", `${ruleName(place)} writes ${name} without conntrack.`);
  }
  if (name !== "meta mark" && name !== "ct mark") return flow;
  const ways = value.kind === "map" ? branchOnMap(value.key, value.data, flow, place) : [];
  const only = ways.length === 1 ? ways[0]!.value : null;
  const source = only?.value == null ? value : ({ kind: "literal", text: only.value } as const);
  const mark = subjectOf(source, "number", { ...place, flow });
  if (mark.is !== "value") {
    addStep(place, `sets ${name} to what cannot be decided`, caveat);
    return value.kind === "map" && only === null && ways.length === 1
      ? flow
      : end(flow, "unknown", `${ruleName(place)} sets a mark that the dump does not show.`);
  }
  const number = Number(mark.value) >>> 0;
  addStep(place, `sets ${name} to 0x${number.toString(16)}`, caveat);
  return name === "meta mark" ? { ...flow, mark: number } : { ...flow, connmark: number };
}

/** Adds to a set. A set with a timeout in a chain of type nat is kube-proxy's session affinity. */
export function updateSet(name: string, flow: Flow, place: Place, caveat: string): Flow {
  const seconds = place.table.sets.get(name)?.timeoutSeconds ?? null;
  addStep(
    place,
    seconds === null ? `puts it into ${name}` : `puts it into ${name} for ${String(seconds)} s`,
    caveat,
  );
  return place.nat && seconds !== null ? { ...flow, affinitySeconds: seconds } : flow;
}

/** One possible value of an expression; null if a map has no matching element. */
interface Target {
  readonly flow: Flow;
  readonly text: string | null;
}

const mostAddresses = 64;

/** Applies NAT. A branch whose value is false continues with the next rule. */
export function translate(nat: Nat, flow: Flow, place: Place, caveat: string): Branch<boolean>[] {
  const by = (to: string): Translation => ({
    to,
    by: ruleName(place),
    kubeProxy: place.table.isKubeProxys(place.chain),
  });
  if (nat.kind === "masquerade") {
    addStep(place, "masquerades the source", caveat);
    return [
      settled({
        ...flow,
        srcNatDone: true,
        snat: [...flow.snat, by("the address of the interface")],
      }),
    ];
  }
  if (nat.kind === "redirect") return [toTheNode(nat, flow, place, by, caveat)];
  if (nat.kind === "netmap") return [settled(mapNetwork(nat, flow, place, by, caveat))];
  const targets: Target[] =
    nat.address === null
      ? [{ flow, text: null }]
      : nat.kind === "snat" && nat.address.kind === "literal"
        ? [{ flow, text: nat.address.text }]
        : evaluate(nat.address, flow, place);
  const destinations: { what: string; share: number }[] = [];
  const ways = targets.map((target): Branch<boolean> => {
    if (target.flow.verdict !== null) return settled(target.flow);
    if (nat.address !== null && target.text === null)
      return { flow: target.flow, value: false, doubt: null };
    const [address = flow.destination, ownPort] = target.text?.split(" . ") ?? [];
    if (address.includes(":") !== (place.context.node.family === 6))
      return { flow: target.flow, value: false, doubt: null };
    const port = readPort(ownPort ?? written(nat.port), target.flow.port);
    if (nat.kind === "snat") {
      addStep(place, `rewrites the source to ${address}`, caveat);
      return settled({
        ...target.flow,
        srcNatDone: true,
        snat: [...target.flow.snat, by(address)],
      });
    }
    if (port === null)
      return settled(end(target.flow, "unknown", `${ruleName(place)} picks one of several ports.`));
    const to = socket(address, port);
    destinations.push({ what: to, share: target.flow.probability / flow.probability });
    return settled(redirect(target.flow, address, port, by(to)));
  });
  if (destinations.length > 0)
    addStep(place, `rewrites the destination to ${choices(destinations)}`, caveat);
  return ways;
}

function settled(flow: Flow): Branch<boolean> {
  return { flow, value: true, doubt: null };
}

function toTheNode(
  nat: Nat,
  flow: Flow,
  place: Place,
  by: (to: string) => Translation,
  caveat: string,
): Branch<boolean> {
  const port = readPort(written(nat.port), flow.port) ?? flow.port;
  const address = redirectTarget(place.context, flow);
  addStep(place, `redirects it to the node itself, port ${String(port)}`, caveat);
  return settled(redirect(flow, address, port, by(socket(address, port))));
}

/** Replaces the network part of the address and keeps the host part. */
function mapNetwork(
  nat: Nat,
  flow: Flow,
  place: Place,
  by: (to: string) => Translation,
  caveat: string,
): Flow {
  const to = rangeOf(written(nat.address) ?? "");
  const before = rangeOf(flow.destination);
  const { hook } = place.context;
  if (hook === "postrouting" || hook === "input" || to === null || before === null) {
    addStep(place, "rewrites the network of the source", caveat);
    return { ...flow, srcNatDone: true, snat: [...flow.snat, by("another network")] };
  }
  const address = addressOf(to.low + (before.low & (to.high - to.low)), to.family);
  addStep(place, `rewrites the destination to ${socket(address, flow.port)}`, caveat);
  return redirect(flow, address, flow.port, by(socket(address, flow.port)));
}

function written(port: Expression | null): string | undefined {
  return port?.kind === "literal" ? port.text : undefined;
}

/** Null for a range of ports that the packet's own is not in. */
function readPort(text: string | undefined, own: number): number | null {
  if (text === undefined) return own;
  const port = numberOf("port", text);
  if (port !== null) return port;
  const [low, high] = text.split("-").map(Number);
  return own >= low! && own <= high! ? own : null;
}

/** The possible values of an address, each with its flow. */
function evaluate(expression: Expression, flow: Flow, place: Place): Target[] {
  if (expression.kind === "literal") return spread(expression.text, flow, place);
  if (expression.kind !== "map") {
    return [
      {
        flow: end(
          flow,
          "unknown",
          `${ruleName(place)} computes an address in a way that is not known.`,
        ),
        text: null,
      },
    ];
  }
  return branchOnMap(expression.key, expression.data, flow, place).flatMap(
    ({ flow: way, value }) =>
      value === null ? [{ flow: way, text: null }] : spread(value.value ?? "", way, place),
  );
}

/** A range of addresses, of which the kernel picks one by a secret hash of the client. */
function spread(text: string, flow: Flow, place: Place): Target[] {
  const [address = "", ...port] = text.split(" . ");
  if (!address.includes("-") && !address.includes("/")) return [{ flow, text }];
  const range = rangeOf(address);
  const count = range === null ? 0n : range.high - range.low + 1n;
  if (range === null || count > BigInt(mostAddresses)) {
    return [
      {
        flow: end(flow, "unknown", `${ruleName(place)} picks one of ${String(count)} addresses.`),
        text: null,
      },
    ];
  }
  place.context.path.note(
    `${address}: the kernel gives a client always the same of them; the shares are those of many clients.`,
  );
  return Array.from({ length: Number(count) }, (_, at) => ({
    flow: { ...flow, probability: flow.probability / Number(count) },
    text: [addressOf(range.low + BigInt(at), range.family), ...port].join(" . "),
  }));
}
