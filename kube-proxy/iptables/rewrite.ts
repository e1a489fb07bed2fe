import { canonical, rangeOf } from "../addresses/range";
import { type Flow, redirect, socket, type Translation } from "../flow";
import type { Action } from "./act";

/** `10.0.0.1:80`, `10.0.0.1`, `[fd00::1]:80`, `:80`, `10.0.0.1-10.0.0.9:8000-8010`. */
const destination =
  /^(?:\[([0-9a-fA-F:.-]+)\]|([0-9a-fA-F.-]+|[0-9a-fA-F:]+:[0-9a-fA-F:.]*)?)(?::(\d+)(?:-\d+)?)?$/;

export function rewriteDestination(action: Action, by: Translation): Flow {
  const { target, flow, tell, walk } = action;
  const text = target.options.get("--to-destination")?.[0] ?? "";
  const read = /^\d+$/.test(text) ? null : destination.exec(text);
  const first = (read?.[1] ?? read?.[2])?.split("-")[0];
  const address = first === undefined ? flow.destination : canonical(first);
  if (read === null || address === null || text === "") {
    const why = `Where \`${action.rule.text}\` sends the packet is not to be read from it.`;
    tell("rewrites the destination, but to what is not to be read");
    return { ...flow, fate: { verdict: "unknown", why } };
  }
  if (text.includes("-"))
    walk.meeting.path.note(`\`${action.rule.text}\` picks one of ${text}; the first is followed.`);
  const port = read[3] === undefined ? flow.port : Number(read[3]);
  remarkOddEndpoint(action, address);
  tell(`the destination becomes ${socket(address, port)}`);
  return redirect(flow, address, port, { ...by, to: socket(address, port) });
}

/** An endpoint's chain names its pod twice: as the source that reaches itself, and as the destination. */
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
  walk.meeting.path.note(
    `${chain.name} sends to ${address} but marks the source ${marked}, which should be the same: one of them is mistyped; the rules are taken as they are.`,
  );
}

/** REDIRECT sends to the node itself: to loopback what it sent, else to the interface's first address. */
export function redirectHere(action: Action, by: Translation): Flow {
  const { target, flow, tell, walk } = action;
  const { node, hook, path } = walk.meeting;
  const port = Number(target.options.get("--to-ports")?.[0]?.split("-")[0] ?? flow.port);
  const loopback = node.family === 4 ? "127.0.0.1" : "::1";
  const own = (node.dump.addresses?.interfaces ?? [])
    .filter((device) => !["lo", "kube-ipvs0"].includes(device.name))
    .flatMap((device) => device.addresses.map((each) => each.address))
    .find((address) => rangeOf(address)?.family === node.family);
  const address = hook === "output" ? loopback : (own ?? flow.destination);
  if (hook !== "output" && own === undefined)
    path.note("REDIRECT sends to an address of the node; there is no `ip addr` that tells which.");
  tell(`the destination becomes the node itself, port ${port}`);
  return redirect(flow, address, port, { ...by, to: socket(address, port) });
}

/** NETMAP keeps the host's part of an address and changes the network's. */
export function mapNet(action: Action, by: Translation): Flow {
  const { target, flow, tell, walk } = action;
  const to = rangeOf(target.options.get("--to")?.[0] ?? "");
  const source = walk.meeting.hook === "postrouting" || walk.meeting.hook === "input";
  const before = rangeOf(flow.destination);
  if (source || to === null || before === null) {
    tell("rewrites the network of the source");
    return { ...flow, sourceSettled: true, snat: [...flow.snat, by] };
  }
  const address = addressOf(to.low + (before.low & (to.high - to.low)), to.family);
  tell(`the destination becomes ${socket(address, flow.port)}`);
  return redirect(flow, address, flow.port, { ...by, to: socket(address, flow.port) });
}

function addressOf(value: bigint, family: 4 | 6): string {
  const bytes = (size: bigint, count: number): bigint[] =>
    Array.from(
      { length: count },
      (_, at) => (value >> (size * BigInt(count - 1 - at))) & ((1n << size) - 1n),
    );
  if (family === 4) return bytes(8n, 4).join(".");
  return canonical(
    bytes(16n, 8)
      .map((part) => part.toString(16))
      .join(":"),
  )!;
}
