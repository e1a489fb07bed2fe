import { ofKubeProxy } from "../iptables/act";
import type { Flow } from "../flow";
import { translate } from "./nat";
import type { Outcome } from "./outcome";
import { lost } from "./outcome";
import type { Place } from "./place";
import { ruleName } from "./place";
import type { Statement } from "./statement";

/** kube-proxy writes no rule without a target, but nft has no words for some that iptables has. */
export function isLost(statements: readonly Statement[], { table, chain }: Place): boolean {
  return (
    table.ofIptables &&
    ofKubeProxy.test(chain.name) &&
    statements.every(({ kind }) => kind === "match" || kind === "idle" || kind === "open")
  );
}

/** What becomes of the packet at such a rule: only in one place it cannot be but one thing. */
export function atLost(flow: Flow, place: Place, doubt: string | null): Outcome[] {
  if (place.chain.name !== "KUBE-POSTROUTING") {
    return lost(
      flow,
      `nft does not show what is done by ${ruleName(place)}; take \`iptables-save\`.`,
    );
  }
  place.meeting.path.note(
    "nft does not show what the last rule of KUBE-POSTROUTING does; it is taken to masquerade, as kube-proxy writes it.",
  );
  const nat = { kind: "masquerade", address: null, port: null } as const;
  return translate(nat, flow, place, doubt).map(({ flow: way }) => ({ flow: way, on: "out" }));
}
