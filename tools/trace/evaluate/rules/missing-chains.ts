import type { Iptables } from "../../model/iptables";
import { type Base, type Chain, isKubeProxy, type Table, tableName } from "../../model/nftables";
import { type Outcome, type Place, unknownOutcome } from "../context";
import { end, type Flow } from "../flow";
import { isClusterAddress } from "../services";
import { branchOnDoubt } from "./branches";

/** The outcome of a chain that a partial dump lacks, if kube-proxy always writes it alike. */
export function missingIptablesChain(
  name: string,
  flow: Flow,
  place: Place,
  iptables: Iptables,
): Outcome[] {
  const { path, hook } = place.context;
  const mark = iptablesMark(iptables);
  const isMarked = (flow.mark & mark) !== 0;
  const marked = (way: Flow): Flow => ({ ...way, mark: (way.mark | mark) >>> 0 });
  const isNat = place.table.name === "nat";
  const back = (note: string, way = flow): Outcome[] => {
    path.note(`Chain ${name} is in no dump; ${note}`);
    return [{ flow: way, on: "caller" }];
  };
  if (name === "KUBE-MARK-MASQ") {
    return back(
      `it is taken for what kube-proxy writes there: it sets mark 0x${mark.toString(16)}.`,
      marked(flow),
    );
  }
  if (name === "KUBE-NODE-PORT" && (flow.port < 30_000 || flow.port > 32_767)) {
    return back(
      `port ${flow.port} is taken for no NodePort, since those are 30000–32767 unless the API server is configured otherwise.`,
    );
  }
  // A dump of the rules of one Service lacks the chain that masquerades what is marked.
  if (name === "KUBE-POSTROUTING" && isMarked) {
    path.note(
      `Chain ${name} is in no dump; what is marked for masquerade is taken to be masqueraded there.`,
    );
    const by = {
      to: "the address of the interface",
      by: `table nat, chain ${name}, which is in no dump`,
      kubeProxy: true,
    };
    return [{ flow: { ...flow, srcNatDone: true, snat: [...flow.snat, by] }, on: "out" }];
  }
  if (name === "KUBE-POSTROUTING") return [{ flow, on: "caller" }];
  if (isNat && hook === "postrouting") {
    return back("it can change the source, if kube-proxy does not, and nothing else.");
  }
  // These chains of IPVS mode mark for masquerade where the policy is Cluster, and do nothing else.
  const mayMark = isNat && (name === "KUBE-NODE-PORT" || name === "KUBE-LOAD-BALANCER");
  const why = mayMark
    ? `whether the policy of the Service is Local: chain ${name} is in no dump`
    : `what \`${name}\` does, which is neither a chain of the dump nor a known target`;
  const id = `missing ${place.table.name} ${name}`;
  return branchOnDoubt({ why, id }, flow, place).map(({ flow: way, value }) => {
    if (!value) return { flow: way, on: "caller" };
    if (mayMark) return { flow: marked(way), on: "caller" };
    const unknown = `Chain ${name} of table ${place.table.name} is in no dump.`;
    return { flow: end(way, "unknown", unknown), on: "out" };
  });
}

/**
 * The bit that kube-proxy uses, as its postrouting rules show it; 0x4000 by
 * default.
 */
function iptablesMark(iptables: Iptables): number {
  const rules = iptables.tables.get("nat")?.chains.get("KUBE-POSTROUTING")?.rules ?? [];
  for (const rule of rules) {
    const found = /mark (?:match )?(?:! )?(?:--mark )?(0x[0-9a-f]+)\/0x/i.exec(rule.text);
    if (found !== null) return Number(found[1]) >>> 0;
  }
  return 0x4000;
}

type Call = Pick<Chain, "name"> & { readonly base: Base; readonly asks: readonly string[] };

const call = (name: string, priority: number, ...asks: string[]): Call => {
  const [type = "", hook = ""] = name.split("-");
  return { name, base: { type, hook, priority, policy: "accept" }, asks };
};

const always: readonly Call[] = [
  call("filter-prerouting-pre-dnat", -110, "firewall-check"),
  call("filter-output-pre-dnat", -110, "firewall-check"),
  call("nat-prerouting", -100, "services"),
  call("nat-output", -100, "services"),
  call("nat-postrouting", 100, "masquerading"),
];

/** Up to 1.30 some versions have one chain for what others do in several. */
const early: readonly Call[] = ["input", "forward", "output"].map((hook) =>
  call(`filter-${hook}`, 0, "endpoints-check"),
);

const late: readonly Call[] = [
  call("filter-input", 0, "nodeport-endpoints-check", "service-endpoints-check"),
  call("filter-forward", 0, "service-endpoints-check", "cluster-ips-check"),
  call("filter-output", 0, "service-endpoints-check", "cluster-ips-check"),
];

/** kube-proxy's base chains that a partial dump of its table lacks. */
export function missingBaseChains(table: Table): (Chain & { readonly base: Base })[] {
  if (!isKubeProxy(table)) return [];
  const calls = [...always, ...(table.chains.has("endpoints-check") ? early : late)];
  return calls.flatMap(({ name, base, asks }) => {
    const missing = asks.filter((chain) => isMissing(table, chain, base.hook));
    if (missing.length === 0) return [];
    return [
      { name, line: 0, base, rules: missing.map((each) => ({ text: `jump ${each}`, line: 0 })) },
    ];
  });
}

function isMissing({ chains, sets }: Table, chain: string, hook: string): boolean {
  const callsAt = (at: string): Chain[] =>
    [...chains.values()].filter(({ base }) => base?.hook === at && base.type !== "route");
  const asked = (at: string): boolean =>
    callsAt(at).some(({ rules }) => rules.some(({ text }) => text.split(/\s+/).includes(chain)));
  if (asked(hook)) return false;
  // 1.29 asks in input and forward what later versions ask in prerouting.
  if (chain === "firewall-check" && hook === "prerouting") return !asked("input");
  // 1.31 brought it, together with the set.
  if (chain === "cluster-ips-check") {
    const has = chains.has(chain) || sets.has("cluster-ips");
    return has || !callsAt(hook).some(({ base }) => base?.type === "filter");
  }
  return true;
}

/** These match addresses of Services only, which no endpoint has. */
const checks =
  /^(firewall-check|endpoints-check|(nodeport|service)-endpoints-check|cluster-ips-check)$/;

/** The outcome of a chain that a partial dump lacks, if kube-proxy always writes it alike. */
export function missingNftablesChain(
  name: string,
  flow: Flow,
  place: Place,
  table: Table,
): Outcome[] {
  const { node, path } = place.context;
  const of = `Chain ${name} of table ${tableName(table)} is not in the dump`;
  const on = (way: Flow, sentence = ""): Outcome[] => {
    if (sentence !== "") path.note(`${of}; ${sentence}`);
    return [{ flow: way, on: "caller" }];
  };
  if (!isKubeProxy(table)) return unknownOutcome(flow, `${of}.`);
  const mark = nftablesMark(table);
  if (name === "mark-for-masquerade") {
    const hex = `0x${mark.toString(16)}`;
    const marked = { ...flow, mark: (flow.mark | mark) >>> 0 };
    return on(marked, `it is taken for what kube-proxy writes there: it sets mark ${hex}.`);
  }
  if (name === "masquerading") {
    if (!flow.dnat.some((each) => each.kubeProxy)) return on(flow);
    const sentence =
      "it is taken for what kube-proxy writes there: it masquerades what is marked, and a pod that reaches itself.";
    if ((flow.mark & mark) === 0 && flow.source !== flow.destination) return on(flow, sentence);
    const to = "the address of the interface";
    const by = `chain ${name} of table ${tableName(table)}, which is not in the dump`;
    const snat = [...flow.snat, { to, by, kubeProxy: true }];
    return on({ ...flow, srcNatDone: true, snat }, sentence);
  }
  if (!checks.test(name)) return unknownOutcome(flow, `${of}.`);
  if (flow.dnat.some((each) => each.kubeProxy)) return on(flow);
  if (name === "firewall-check" && isClusterAddress(node.dump, node.family, flow.destination)) {
    return on(flow, "it asks for addresses of load balancers only.");
  }
  const undecided = {
    why: `what chain ${name} does, which is not in the dump`,
    id: `missing ${name}`,
  };
  return branchOnDoubt(undecided, flow, place).map(({ flow: way, value }) =>
    value ? { flow: end(way, "unknown", `${of}.`), on: "out" } : { flow: way, on: "caller" },
  );
}

/** The bit that kube-proxy uses, as its rules show it; 0x4000 by default. */
function nftablesMark({ chains }: Table): number {
  for (const { rules } of chains.values()) {
    for (const { text } of rules) {
      const found = /mark set (?:meta )?mark (?:\||or) (0x[0-9a-f]+)/i.exec(text);
      if (found !== null) return Number(found[1]) >>> 0;
    }
  }
  return 0x4000;
}

/**
 * The table without sets and maps whose content the dump left out, as `nft --terse` does: there is
 * no cluster without a Service that has endpoints.
 */
export function withoutTerseSets(table: Table): Table {
  const isOfService = (name: string): boolean =>
    /^(service|external|local)-[A-Z2-7]{8}-/.test(name);
  const content = ["service-ips", "service-nodeports"].flatMap(
    (name) => table.sets.get(name)?.elements() ?? [],
  );
  const isTerse =
    isKubeProxy(table) && content.length === 0 && [...table.chains.keys()].some(isOfService);
  if (!isTerse) return table;
  // Sets of clients are filled by rules, and are asked for a client that is new.
  const kept = [...table.sets].filter(([, set]) => set.timeoutSeconds !== null);
  return { ...table, sets: new Map(kept) };
}
