import type { Node } from "../addresses/node";
import { rulesFor } from "./candidates";
import { tablesOf } from "./tables";

/** Whether kube-proxy's own rules name `address` as a Service's cluster IP, which no interface has. */
export function clusterAddress(node: Node, address: string): boolean {
  const tables = tablesOf(node);
  return ["nat", "filter"].some((name) => {
    const chain = tables?.tables.get(name)?.chains.get("KUBE-SERVICES");
    return (
      chain !== undefined &&
      rulesFor(chain, address).some((rule) => /cluster IP|has no endpoints/.test(rule.text))
    );
  });
}
