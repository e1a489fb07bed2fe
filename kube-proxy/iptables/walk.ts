import { type Decision, end, type Flow, fork, type Undecided } from "../flow";
import type { Meeting } from "../kernel";
import { merge } from "../merge-flows";
import { act } from "./act";
import { candidates } from "./candidates";
import type { Chain, Iptables, Rule, Table } from "./iptables";
import { missingChain } from "./missing-chain";
import { type Specification, specificationOf } from "./specification";
import { placed } from "./words";

/** One walk through the chains of one table. */
export interface Walk {
  readonly iptables: Iptables;
  readonly table: Table;
  readonly meeting: Meeting;
  depth: number;
}

/** Where flows stand after a rule or a chain. */
export interface Ways {
  /** The table is done with them: accepted, or with a fate. */
  readonly ended: Flow[];
  /** Back to the chain that called this one. */
  readonly returned: Flow[];
  /** To the next rule. */
  readonly next: Flow[];
}

/** More ways than that at once, and none of them would be worth telling. */
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
    walk.meeting.path.visited += 1;
    const specification = specificationOf(rule, chain, walk.iptables.file);
    const next: Flow[] = [];
    for (const each of active) {
      const ways = meet(rule, specification, chain, each, walk);
      ended.push(...ways.ended);
      returned.push(...ways.returned);
      next.push(...ways.next);
    }
    active = merge(next);
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

function meet(
  rule: Rule,
  specification: Specification,
  chain: Chain,
  flow: Flow,
  walk: Walk,
): Ways {
  const { path } = walk.meeting;
  const { decision, learned } = ask(specification, chain, flow, walk);
  if (decision === false) return { ended: [], returned: [], next: [flow] };
  if (specification.affinitySeconds !== null && decision === true)
    return remember(rule, specification, chain, flow, walk);
  if (decision === true) return take(rule, specification, chain, flow, walk);
  path.step(
    walk.table.name,
    chain.name,
    rule.text,
    `cannot be decided: ${decision.why}; both ways are followed`,
  );
  const id = `${walk.table.name} ${chain.name} ${rule.line} ${rule.text}`;
  const why = `${decision.why} (${placed(walk.table, chain, rule)})`;
  const { yes, no } = fork(flow, id, why);
  const taken = yes === null ? null : take(rule, specification, chain, learned(yes, true), walk);
  return {
    ended: taken?.ended ?? [],
    returned: taken?.returned ?? [],
    next: [...(taken?.next ?? []), ...(no === null ? [] : [learned(no, false)])],
  };
}

interface Asked {
  readonly decision: Decision;
  learned(flow: Flow, holds: boolean): Flow;
}

function ask(specification: Specification, chain: Chain, flow: Flow, walk: Walk): Asked {
  const open: Undecided[] = [];
  for (const test of specification.tests) {
    const decision = test(flow, walk.meeting, chain.name);
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

function remember(
  rule: Rule,
  { affinitySeconds, target }: Specification,
  chain: Chain,
  flow: Flow,
  walk: Walk,
): Ways {
  const effect = `session affinity: goes to ${target?.name ?? "it"} for a client that came within ${affinitySeconds} s; a new one goes on`;
  walk.meeting.path.step(walk.table.name, chain.name, rule.text, effect);
  walk.meeting.path.note(
    "Session affinity: which clients are remembered is in no dump; the answer is for a client that is not.",
  );
  return { ended: [], returned: [], next: [{ ...flow, affinitySeconds }] };
}

/** The rule's matches hold: chance may still pass it by. */
function take(
  rule: Rule,
  specification: Specification,
  chain: Chain,
  flow: Flow,
  walk: Walk,
): Ways {
  const { chance } = specification;
  if (chance === null || chance >= 1) return jump(rule, specification, chain, flow, walk, "");
  const share = `with probability ${Number(chance.toFixed(4))} `;
  const ways = jump(
    rule,
    specification,
    chain,
    { ...flow, probability: flow.probability * chance },
    walk,
    share,
  );
  const passed = { ...flow, probability: flow.probability * (1 - chance) };
  return { ...ways, next: [...ways.next, passed] };
}

function jump(
  rule: Rule,
  specification: Specification,
  chain: Chain,
  flow: Flow,
  walk: Walk,
  share: string,
): Ways {
  const { target } = specification;
  const { path } = walk.meeting;
  const tell = (effect: string): void =>
    path.step(walk.table.name, chain.name, rule.text, share + effect);
  if (target === null) {
    tell("counts the packet, no more");
    return { ended: [], returned: [], next: [flow] };
  }
  const called = walk.table.chains.get(target.name);
  if (called === undefined) {
    return (
      act({ rule, specification, target, chain, flow, walk, tell }) ??
      missingChain(target.name, rule, chain, flow, walk, tell)
    );
  }
  tell(target.goto ? `goes over to ${called.name}` : `goes to ${called.name}`);
  const { ended, returned } = walkChain(called, flow, walk);
  return target.goto ? { ended, returned, next: [] } : { ended, returned: [], next: returned };
}
