import type { Doubt, Flow } from "./flow";

/**
 * Merges equal flows: adds up their probabilities and drops questions whose answers made no
 * difference.
 *
 * @param keyOf equal for flows to merge; by default all state that later rules can see
 */
export function merge(flows: readonly Flow[], keyOf = stateOf): Flow[] {
  if (flows.length < 2) return [...flows];
  const alike = new Map<string, Flow[]>();
  for (const flow of flows) {
    const key = keyOf(flow);
    const others = alike.get(key);
    if (others === undefined) alike.set(key, [flow]);
    else others.push(flow);
  }
  return [...alike.values()].flatMap((group) => (group.length === 1 ? group : mergeAlike(group)));
}

function stateOf(flow: Flow): string {
  return JSON.stringify([
    flow.source,
    flow.destination,
    flow.port,
    flow.mark,
    flow.connmark,
    flow.tracked,
    flow.dstNatDone,
    flow.srcNatDone,
    flow.ipvs,
    flow.affinitySeconds,
    flow.dnat.map((each) => [each.to, each.by]),
    flow.snat.map((each) => each.by),
    flow.inDevice.name,
    flow.verdict,
  ]);
}

const doubtsKey = (doubts: readonly Doubt[]): string =>
  doubts.map((doubt) => `${doubt.taken ? "+" : "-"}${doubt.id}`).join("\n");

function mergeAlike(group: readonly Flow[]): Flow[] {
  const byDoubts = new Map<string, Flow>();
  const put = (flow: Flow): void => {
    const key = doubtsKey(flow.doubts);
    const same = byDoubts.get(key);
    if (same === undefined) byDoubts.set(key, flow);
    else byDoubts.set(key, { ...same, probability: same.probability + flow.probability });
  };
  group.forEach(put);
  // From the latest question on: if both answers lead to equal flows, it made no difference.
  const longest = Math.max(...group.map((flow) => flow.doubts.length));
  for (let length = longest; length > 0; length -= 1) {
    for (const [key, flow] of [...byDoubts]) {
      const last = flow.doubts.at(-1);
      if (flow.doubts.length !== length || last === undefined || !byDoubts.has(key)) continue;
      const before = flow.doubts.slice(0, -1);
      const otherKey = doubtsKey([...before, { ...last, taken: !last.taken }]);
      const other = byDoubts.get(otherKey);
      if (other === undefined || Math.abs(other.probability - flow.probability) > 1e-12) continue;
      byDoubts.delete(key);
      byDoubts.delete(otherKey);
      put({
        ...flow,
        doubts: before,
        inDevice: common(flow, other, "inDevice"),
        outDevice: common(flow, other, "outDevice"),
      });
    }
  }
  return [...byDoubts.values()];
}

function common(a: Flow, b: Flow, side: "inDevice" | "outDevice"): Flow["inDevice"] {
  const both = (key: "like" | "unlike"): string[] =>
    a[side][key].filter((name) => b[side][key].includes(name));
  return { name: a[side].name, like: both("like"), unlike: both("unlike") };
}
