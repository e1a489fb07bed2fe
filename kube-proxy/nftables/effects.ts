import type { Flow } from "../flow";
import { end } from "../flow";
import { subjectOf } from "./key";
import type { Place } from "./place";
import { ask, ruleName, tell } from "./place";
import type { Statement } from "./statement";
import { pastMap } from "./ways";

/** Marks decide what happens later; what else a rule may set does not. */
export function assign(
  { name, value }: Extract<Statement, { kind: "set" }>,
  flow: Flow,
  place: Place,
  doubt: string | null,
): Flow {
  if (/^(ip6?|tcp|udp|sctp|th) /.test(name)) {
    if (!/ ([sd]addr|[sd]port)$/.test(name)) return flow;
    tell(place, `writes ${name}: cannot be followed`, doubt);
    return end(flow, "unknown", `${ruleName(place)} writes ${name} without conntrack.`);
  }
  if (name !== "meta mark" && name !== "ct mark") return flow;
  const ways = value.kind === "map" ? pastMap(value.key, value.data, flow, place) : [];
  const only = ways.length === 1 ? ways[0]!.value : null;
  const source = only?.value == null ? value : ({ kind: "literal", text: only.value } as const);
  const mark = subjectOf(source, "number", ask("==", flow, place));
  if (mark.is !== "value") {
    tell(place, `sets ${name} to what cannot be decided`, doubt);
    return value.kind === "map" && only === null && ways.length === 1
      ? flow
      : end(flow, "unknown", `${ruleName(place)} sets a mark that the dump does not tell.`);
  }
  const number = Number(mark.value) >>> 0;
  tell(place, `sets ${name} to 0x${number.toString(16)}`, doubt);
  return name === "meta mark" ? { ...flow, mark: number } : { ...flow, connmark: number };
}

/** A set that remembers clients for a while, in a chain that chooses endpoints, is session affinity. */
export function remember(name: string, flow: Flow, place: Place, doubt: string | null): Flow {
  const seconds = place.table.sets.get(name)?.timeoutSeconds ?? null;
  tell(
    place,
    seconds === null ? `puts it into ${name}` : `puts it into ${name} for ${String(seconds)} s`,
    doubt,
  );
  return place.base.base?.type === "nat" && seconds !== null
    ? { ...flow, affinitySeconds: seconds }
    : flow;
}
