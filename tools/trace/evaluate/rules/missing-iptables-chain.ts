import type { Iptables } from "../../model/iptables";
import { end, type Flow } from "../flow";
import { branchOnDoubt } from "./branches";
import type { Outcome, Place } from "./place";

/** The outcome of a chain that a partial dump lacks, if kube-proxy always writes it alike. */
export function missingChain(
  name: string,
  flow: Flow,
  place: Place,
  iptables: Iptables,
): Outcome[] {
  const { path, hook } = place.context;
  const mark = masqueradeMark(iptables);
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
function masqueradeMark(iptables: Iptables): number {
  const rules = iptables.tables.get("nat")?.chains.get("KUBE-POSTROUTING")?.rules ?? [];
  for (const rule of rules) {
    const found = /mark (?:match )?(?:! )?(?:--mark )?(0x[0-9a-f]+)\/0x/i.exec(rule.text);
    if (found !== null) return Number(found[1]) >>> 0;
  }
  return 0x4000;
}
