import { trace } from "../../evaluate/trace";
import type { NodeDump } from "../../model/dump";
import { type Answer, canonical, type Packet, type Step } from "../../model/packet";
import { nodeDump } from "../../read/read-dumps";

/** A node of which no dump says anything; for tests. */
export const nothing: NodeDump = {
  iptables4: null,
  iptables6: null,
  ipsets: null,
  ipvs: null,
  nftables: null,
  addresses: null,
  routes: null,
  notes: [],
};

/** A node from texts as a person would paste them; for tests. */
export const nodeOf = (...texts: string[]): NodeDump =>
  nodeDump(texts.map((text, at) => ({ file: `dump-${at + 1}`, text })));

/** `pod 10.244.1.9 > 10.96.0.10:53/udp`; `-` is a source that is not given. */
export function ask(node: NodeDump, question: string): Answer {
  const [, from, source, destination, port, protocol] =
    /^(\w+) (\S+) > \[?([^\]]*?)\]?:(\d+)(?:\/(\w+))?$/.exec(question) ?? [];
  return trace(node, {
    from: from as Packet["from"],
    source: source === "-" ? null : source!,
    destination: canonical(destination!)!,
    port: Number(port),
    protocol: (protocol ?? "tcp") as Packet["protocol"],
  });
}

/** An answer in one line: `dnat 10.244.1.5:80=0.5 10.244.2.5:80=0.5 masquerade=true`. */
export function brief({ verdict, endpoints, masquerade }: Answer): string {
  const shares = endpoints.map(({ address, probability, masquerade: own }) => {
    const differs = own === undefined ? "" : `(${own})`;
    return ` ${address}=${Number(probability.toFixed(4))}${differs}`;
  });
  return `${verdict}${shares.join("")}${verdict === "dnat" ? ` masquerade=${masquerade}` : ""}`;
}

export const oneNode = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default
    inet 127.0.0.1/8 scope host lo
    inet6 ::1/128 scope host
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default
    inet 192.0.2.1/24 scope global eth0
    inet6 2001:db8::1/64 scope global
`;

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

const step = (table: string, chain: string, rule: string, effect: string): Step => ({
  table,
  chain,
  rule: `-A ${chain} ${rule}`,
  effect,
});

/** An answer as iptables gives it, with as many endpoints as wanted. */
export function answerOf(count: number, changes: Partial<Answer> = {}): Answer {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    address: `10.244.${index}.2:80`,
    probability: 1 / count,
  }));
  return {
    mode: "iptables",
    packet: { from: "pod", source: null, destination: "10.96.0.41", port: 80, protocol: "tcp" },
    steps: [
      step("nat", "PREROUTING", "-j KUBE-SERVICES", "goes on in KUBE-SERVICES"),
      step("nat", "KUBE-SERVICES", "-d 10.96.0.41/32 -j KUBE-SVC-A", "goes on in KUBE-SVC-A"),
      ...endpoints.map(({ address }, index) =>
        step("nat", `KUBE-SEP-${index}`, `-j DNAT --to-destination ${address}`, `to ${address}`),
      ),
      step("filter", "FORWARD", "-j KUBE-FORWARD", "goes on in KUBE-FORWARD"),
      step("nat", "POSTROUTING", "-j KUBE-POSTROUTING", "goes on in KUBE-POSTROUTING"),
      step("nat", "KUBE-POSTROUTING", "-m mark ! --mark 0x4000/0x4000 -j RETURN", "goes back"),
    ],
    verdict: "dnat",
    endpoints,
    masquerade: false,
    affinitySeconds: null,
    reason: "Service default/web has endpoints.",
    notes: [],
    ...changes,
  };
}
