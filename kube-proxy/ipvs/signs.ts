import type { NodeDump } from "../node-dump";

/** Whether the interface is there on which kube-proxy puts every Service's address in IPVS mode. */
export const hasDummy = ({ addresses }: NodeDump): boolean =>
  addresses?.interfaces.some(({ name }) => name === "kube-ipvs0") === true;

/** Whether what is beside IPVS's own table shows that kube-proxy works with IPVS on this node. */
export const isForIpvs = (dump: NodeDump): boolean =>
  hasDummy(dump) ||
  [dump.iptables4, dump.iptables6].some((iptables) =>
    ["nat", "filter"].some((table) =>
      iptables?.tables
        .get(table)
        ?.chains.get("KUBE-SERVICES")
        ?.rules.some(({ text }) => /match-set KUBE-(6-)?CLUSTER-IP\b/.test(text)),
    ),
  );
