import type { Flow } from "../flow";
import type { Place } from "./place";
import { isKubeProxy, ruleName } from "./place";

/** Why kube-proxy drops or rejects by a map of its own, or in a chain of its own. */
const reasons: readonly { readonly verdict: string; readonly by: RegExp; readonly why: string }[] =
  [
    { verdict: "reject", by: /^no-endpoint-/, why: "The Service has no endpoints" },
    {
      verdict: "drop",
      by: /^no-endpoint-/,
      why: "The Service's traffic policy is Local and it has no endpoint on this node",
    },
    {
      verdict: "drop",
      by: /^firewall-/,
      why: "The source is in none of the Service's source ranges",
    },
    { verdict: "reject", by: /^cluster-ips-check$/, why: "The cluster IP has no such port" },
    {
      verdict: "drop",
      by: /^cluster-ips-check$/,
      why: "The address is in the range of Services, and no Service has it",
    },
  ];

/** One sentence for a fate: kube-proxy's reason where it is its rule, and which rule it is. */
export function why(
  verdict: string,
  map: string | null,
  place: Place,
  otherwise: string | null = null,
): string {
  const by = map ?? place.chain.name;
  const reason = isKubeProxy(place.table)
    ? reasons.find((each) => each.verdict === verdict && each.by.test(by))
    : undefined;
  const rule = `${verdict} by ${ruleName(place)}`;
  if (reason !== undefined) return `${reason.why} (${rule}).`;
  return otherwise ?? `The packet meets ${rule}.`;
}

/** What a map sends to a chain that drops or rejects is dropped or rejected because of the map. */
export function explained(flow: Flow, map: string, place: Place): Flow {
  const { fate } = flow;
  return fate === null
    ? flow
    : { ...flow, fate: { ...fate, why: why(fate.verdict, map, place, fate.why) } };
}
