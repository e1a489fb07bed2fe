import { ask, nodeOf, oneNode } from "./example";

const service = `-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "a/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-AAAAAAAAAAAAAAAA ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p tcp -m comment --comment "a/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http -> 10.244.2.5:8080" -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.244.2.5/32 -m comment --comment "a/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "a/web:http" -m tcp -j DNAT --to-destination 10.244.2.5:8080
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully`;

interface Rules {
  readonly raw?: string;
  readonly mangle?: string;
  readonly beforeServices?: string;
  readonly nat?: string;
  readonly filter?: string;
  readonly forwardPolicy?: string;
}

/** kube-proxy's rules for one Service, with others around them; for tests. */
export const tables = ({
  raw,
  mangle,
  beforeServices = "",
  nat = "",
  filter = "",
  forwardPolicy = "ACCEPT",
}: Rules): string => `
${raw === undefined ? "" : `*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n${raw}\nCOMMIT`}
${mangle === undefined ? "" : `*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n${mangle}\nCOMMIT`}
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-NODEPORTS - [0:0]
${beforeServices}
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
${nat}
${service}
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ${forwardPolicy} [0:0]
:OUTPUT ACCEPT [0:0]
${filter}
COMMIT
`;

export const pod = "pod 10.244.1.9 > 10.96.0.10:80";
export const toPod = "dnat 10.244.2.5:8080=1 masquerade=false";
export const answer = (rules: Rules, question: string) =>
  ask(nodeOf(tables(rules), oneNode), question);
