import { Address4, Address6 } from "ip-address";

import { rangeOf } from "../addresses/range";
import type { Flow, Translation } from "../flow";
import { end, redirect, socket } from "../flow";
import { numberOf } from "./kinds";
import type { Place } from "./place";
import { choices, isByKubeProxy, ruleName, tell } from "./place";
import type { Expression, Nat } from "./statement";
import type { Way } from "./ways";
import { pastMap } from "./ways";

/** What an expression may give: text as elements have it; null where the rule ends without a value. */
interface Target {
  readonly flow: Flow;
  readonly text: string | null;
}

const mostAddresses = 64;

/** Rewrites the packet; a way whose value is false goes on to the next rule. */
export function translate(
  nat: Nat,
  flow: Flow,
  place: Place,
  doubt: string | null,
): Way<boolean>[] {
  const by = (to: string): Translation => ({
    to,
    by: ruleName(place),
    kubeProxy: isByKubeProxy(place),
  });
  if (nat.kind === "masquerade") {
    tell(place, "masquerades the source", doubt);
    return [
      settled({
        ...flow,
        sourceSettled: true,
        snat: [...flow.snat, by("the address of the interface")],
      }),
    ];
  }
  if (nat.kind === "redirect") return [toTheNode(nat, flow, place, by, doubt)];
  const targets: Target[] =
    nat.address === null ? [{ flow, text: null }] : evaluate(nat.address, flow, place);
  const told: { what: string; share: number }[] = [];
  const ways = targets.map((target): Way<boolean> => {
    if (target.flow.fate !== null) return settled(target.flow);
    if (nat.address !== null && target.text === null)
      return { flow: target.flow, value: false, doubt };
    const [address = flow.destination, ownPort] = target.text?.split(" . ") ?? [];
    if (address.includes(":") !== (place.meeting.node.family === 6))
      return { flow: target.flow, value: false, doubt };
    const port = readPort(ownPort ?? written(nat.port), target.flow.port);
    if (nat.kind === "snat") {
      tell(place, `rewrites the source to ${address}`, doubt);
      return settled({
        ...target.flow,
        sourceSettled: true,
        snat: [...target.flow.snat, by(address)],
      });
    }
    if (port === null)
      return settled(end(target.flow, "unknown", `${ruleName(place)} picks one of several ports.`));
    const to = socket(address, port);
    told.push({ what: to, share: target.flow.probability / flow.probability });
    return settled(redirect(target.flow, address, port, by(to)));
  });
  if (told.length > 0) tell(place, `rewrites the destination to ${choices(told)}`, doubt);
  return ways;
}

function settled(flow: Flow): Way<boolean> {
  return { flow, value: true, doubt: null };
}

/** `redirect`: what the node sent goes to loopback, all else to the interface's first address. */
function toTheNode(
  nat: Nat,
  flow: Flow,
  place: Place,
  by: (to: string) => Translation,
  doubt: string | null,
): Way<boolean> {
  const { hook, node, path } = place.meeting;
  const port = readPort(written(nat.port), flow.port) ?? flow.port;
  const own = (node.dump.addresses?.interfaces ?? [])
    .filter((device) => device.name !== "lo" && device.name !== "kube-ipvs0")
    .flatMap((device) => device.addresses.map((each) => each.address))
    .find((address) => address.includes(":") === (node.family === 6));
  if (hook !== "output" && own === undefined) {
    path.note("redirect sends to an address of the node; there is no `ip addr` that tells which.");
  }
  const loopback = node.family === 4 ? "127.0.0.1" : "::1";
  const address = hook === "output" ? loopback : (own ?? flow.destination);
  tell(place, `redirects it to the node itself, port ${String(port)}`, doubt);
  return settled(redirect(flow, address, port, by(socket(address, port))));
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

/** The values that an address may take, each with the flow that takes it. */
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
  return pastMap(expression.key, expression.data, flow, place).flatMap(({ flow: way, value }) =>
    value === null ? [{ flow: way, text: null }] : spread(value.value ?? "", way, place),
  );
}

/** A range of addresses: which one a client gets hangs on a number that the kernel keeps to itself. */
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
  place.meeting.path.note(
    `${address}: the kernel gives a client always the same of them; the shares are those of many clients.`,
  );
  return Array.from({ length: Number(count) }, (_, at) => ({
    flow: { ...flow, probability: flow.probability / Number(count) },
    text: [writeAddress(range.low + BigInt(at), range.family), ...port].join(" . "),
  }));
}

function writeAddress(value: bigint, family: 4 | 6): string {
  return (family === 4 ? Address4.fromBigInt(value) : Address6.fromBigInt(value)).correctForm();
}
