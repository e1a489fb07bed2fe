import { type Iptables, placed } from "../../model/iptables";
import { end, fork } from "../flow";
import { hex } from "./mark";
import { type Action, type Branches, next } from "./targets";

/** What kube-proxy's chains do that are always written alike, where a cut-down dump lacks them. */
export function missingChain(action: Action): Branches {
  const { target, rule, chain, flow, walk, step } = action;
  const { name } = target;
  const { path, hook } = walk.context;
  if (name === "KUBE-MARK-MASQ") {
    const mark = masqueradeMark(walk.iptables);
    step(`goes to ${name}, which marks the packet for masquerade`);
    path.note(
      `Chain ${name} is in no dump; it is taken for what kube-proxy writes there: it sets mark ${hex(mark)}.`,
    );
    return next({ ...flow, mark: (flow.mark | mark) >>> 0 });
  }
  if (name === "KUBE-NODE-PORT" && (flow.port < 30_000 || flow.port > 32_767)) {
    step(`goes to ${name}, which is about NodePorts`);
    path.note(
      `Chain ${name} is in no dump; port ${flow.port} is taken for no NodePort, since those are 30000–32767 unless the API server is configured otherwise.`,
    );
    return next(flow);
  }
  if (name === "KUBE-POSTROUTING") return masquerade(action);
  if (walk.table.name === "nat" && hook === "postrouting") {
    step(`goes to ${name}, which is in no dump`);
    path.note(
      `Chain ${name} is in no dump; it can change the source, if kube-proxy does not, and nothing else.`,
    );
    return next(flow);
  }
  if (walk.table.name === "nat" && (name === "KUBE-NODE-PORT" || name === "KUBE-LOAD-BALANCER")) {
    return mayMark(action);
  }
  const why = `what \`${name}\` does, which is neither a chain of the dump nor a known target`;
  step(`cannot be decided: ${why}; both ways are followed`);
  const { yes, no } = fork(
    flow,
    `missing ${walk.table.name} ${name}`,
    `${why} (${placed(walk.table, chain, rule)})`,
  );
  return {
    ended:
      yes === null
        ? []
        : [end(yes, "unknown", `Chain ${name} of table ${walk.table.name} is in no dump.`)],
    returned: [],
    next: no === null ? [] : [no],
  };
}

/** A dump of the rules of one Service lacks the chain that masquerades what is marked. */
function masquerade({ target: { name }, flow, walk, step }: Action): Branches {
  if ((flow.mark & masqueradeMark(walk.iptables)) === 0) return next(flow);
  step(`goes to ${name}, which masquerades what is marked`);
  walk.context.path.note(
    `Chain ${name} is in no dump; what is marked for masquerade is taken to be masqueraded there.`,
  );
  const by = {
    to: "the address of the outgoing interface",
    by: `table nat, chain ${name}, which is in no dump`,
    kubeProxy: true,
  };
  return {
    ended: [{ ...flow, sourceSettled: true, snat: [...flow.snat, by] }],
    returned: [],
    next: [],
  };
}

/**
 * These chains of IPVS mode mark for masquerade where the policy is Cluster, and do nothing else.
 */
function mayMark({ target: { name }, rule, chain, flow, walk, step }: Action): Branches {
  const why = `whether the policy of the Service is Local: chain ${name} is in no dump`;
  step(`goes to ${name}, which may mark the packet for masquerade; both ways are followed`);
  const { yes, no } = fork(flow, `missing ${name}`, `${why} (${placed(walk.table, chain, rule)})`);
  const marked =
    yes === null ? [] : [{ ...yes, mark: (yes.mark | masqueradeMark(walk.iptables)) >>> 0 }];
  return { ended: [], returned: [], next: [...marked, ...(no === null ? [] : [no])] };
}

/**
 * The bit that kube-proxy uses, as its postrouting rules show it; 0x4000 by
 * default.
 */
export function masqueradeMark(iptables: Iptables): number {
  const rules = iptables.tables.get("nat")?.chains.get("KUBE-POSTROUTING")?.rules ?? [];
  for (const rule of rules) {
    const found = /mark (?:match )?(?:! )?(?:--mark )?(0x[0-9a-f]+)\/0x/i.exec(rule.text);
    if (found !== null) return Number(found[1]) >>> 0;
  }
  return 0x4000;
}
