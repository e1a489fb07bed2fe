import { type Chain, placed } from "../../model/iptables";
import { type Decision, end, type Flow, fork, type Undecided } from "../flow";
import { merge } from "../merge-flows";
import { candidates } from "./candidates";
import { missingChain } from "./missing-chain";
import { specificationOf } from "./specification";
import { act, type Branches, next, type Place, type Walk } from "./targets";

/** More branches than that at once are given up. */
const tooMany = 512;

/** The kernel refuses loops; a dump put together by hand may have one. */
const tooDeep = 64;

export function walkChain(
  chain: Chain,
  flow: Flow,
  walk: Walk,
): { ended: Flow[]; returned: Flow[] } {
  const ended: Flow[] = [];
  const returned: Flow[] = [];
  if (walk.depth > tooDeep) {
    return {
      ended: [
        end(flow, "unknown", `Chain ${chain.name} of table ${walk.table.name} calls itself.`),
      ],
      returned,
    };
  }
  walk.depth += 1;
  let active = [flow];
  for (const rule of candidates(chain, flow)) {
    walk.context.path.visited += 1;
    const specification = specificationOf(rule, chain, walk.iptables.file);
    const following: Flow[] = [];
    for (const each of active) {
      const ways = meet({ rule, specification, chain, walk }, each);
      ended.push(...ways.ended);
      returned.push(...ways.returned);
      following.push(...ways.next);
    }
    active = merge(following);
    if (active.length > tooMany) {
      ended.push(
        ...active.map((each) =>
          end(each, "unknown", `Too many rules of chain ${chain.name} cannot be decided.`),
        ),
      );
      active = [];
    }
    if (active.length === 0) break;
  }
  walk.depth -= 1;
  return { ended, returned: merge([...returned, ...active]) };
}

function meet(place: Place, flow: Flow): Branches {
  const { rule, specification, chain, walk } = place;
  const { decision, learned } = ask(place, flow);
  if (decision === false) return next(flow);
  if (decision === true)
    return specification.affinitySeconds === null ? take(place, flow) : remember(place, flow);
  stepOf(place)(`cannot be decided: ${decision.why}; both ways are followed`);
  const id = `${walk.table.name} ${chain.name} ${rule.line} ${rule.text}`;
  const why = `${decision.why} (${placed(walk.table, chain, rule)})`;
  const { yes, no } = fork(flow, id, why);
  const taken = yes === null ? null : take(place, learned(yes, true));
  return {
    ended: taken?.ended ?? [],
    returned: taken?.returned ?? [],
    next: [...(taken?.next ?? []), ...(no === null ? [] : [learned(no, false)])],
  };
}

/** Adds to the path what the rule does. */
const stepOf =
  ({ rule, chain, walk }: Place, share = "") =>
  (effect: string): void =>
    walk.context.path.step(walk.table.name, chain.name, rule.text, share + effect);

interface Asked {
  readonly decision: Decision;
  learned(flow: Flow, holds: boolean): Flow;
}

function ask({ specification, chain, walk }: Place, flow: Flow): Asked {
  const open: Undecided[] = [];
  for (const test of specification.tests) {
    const decision = test(flow, walk.context, chain.name);
    if (decision === false) return { decision: false, learned: (each) => each };
    if (typeof decision === "object") open.push(decision);
  }
  if (open.length === 0) return { decision: true, learned: (each) => each };
  return {
    decision: { why: open.map((each) => each.why).join(", and ") },
    learned: (each, holds) => {
      if (!holds && open.length > 1) return each;
      return open.reduce((known, { learn }) => learn?.(known, holds) ?? known, each);
    },
  };
}

function remember(place: Place, flow: Flow): Branches {
  const { affinitySeconds, target } = place.specification;
  stepOf(place)(
    `session affinity: goes to ${target?.name ?? "it"} for a client that came within ${affinitySeconds} s; a new one goes on`,
  );
  place.walk.context.path.note(
    "Session affinity: which clients are remembered is in no dump; the answer is for a client that is not.",
  );
  return next({ ...flow, affinitySeconds });
}

/** The rule's matches hold: chance may still pass it by. */
function take(place: Place, flow: Flow): Branches {
  const { chance } = place.specification;
  if (chance === null || chance >= 1) return jump(place, flow, "");
  const share = `with probability ${Number(chance.toFixed(4))} `;
  const branches = jump(place, { ...flow, probability: flow.probability * chance }, share);
  const passed = { ...flow, probability: flow.probability * (1 - chance) };
  return { ...branches, next: [...branches.next, passed] };
}

function jump(place: Place, flow: Flow, share: string): Branches {
  const { walk, specification } = place;
  const { target } = specification;
  const step = stepOf(place, share);
  if (target === null) {
    step("counts the packet, no more");
    return next(flow);
  }
  const called = walk.table.chains.get(target.name);
  if (called === undefined) {
    const action = { ...place, target, flow, step };
    return act(action) ?? missingChain(action);
  }
  step(target.goto ? `goes over to ${called.name}` : `goes to ${called.name}`);
  const { ended, returned } = walkChain(called, flow, walk);
  return target.goto ? { ended, returned, next: [] } : { ended, returned: [], next: returned };
}
