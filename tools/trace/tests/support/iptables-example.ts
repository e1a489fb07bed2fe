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

/** A node in IPVS mode as kube-proxy 1.36 leaves it, with a Service of each kind; for tests. */
export const iptablesSave = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-LOAD-BALANCER - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-LOAD-BALANCER -m comment --comment "Kubernetes service load balancer ip + port with externalTrafficPolicy=local" -m set --match-set KUBE-LOAD-BALANCER-LOCAL dst,dst -j RETURN
-A KUBE-LOAD-BALANCER -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port with externalTrafficPolicy=local" -m set --match-set KUBE-NODE-PORT-LOCAL-TCP dst -j RETURN
-A KUBE-NODE-PORT -p tcp -m comment --comment "Kubernetes nodeport TCP port for masquerade purpose" -m set --match-set KUBE-NODE-PORT-TCP dst -j KUBE-MARK-MASQ
-A KUBE-POSTROUTING -m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" -m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SERVICES -s 127.0.0.0/8 -j RETURN
-A KUBE-SERVICES -m comment --comment "Kubernetes service lb portal" -m set --match-set KUBE-LOAD-BALANCER dst,dst -j KUBE-LOAD-BALANCER
-A KUBE-SERVICES ! -s 10.244.0.0/16 -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT
-A KUBE-SERVICES -m comment --comment "Kubernetes service external ip + port for masquerade and filter purpose" -m set --match-set KUBE-EXTERNAL-IP dst,dst -m addrtype --dst-type LOCAL -j ACCEPT
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
-A KUBE-SERVICES -m set --match-set KUBE-LOAD-BALANCER dst,dst -j ACCEPT
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-IPVS-FILTER - [0:0]
:KUBE-IPVS-OUT-FILTER - [0:0]
:KUBE-NODE-PORT - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SOURCE-RANGES-FIREWALL - [0:0]
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-A INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-IPVS-FILTER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-CLUSTER-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN
-A KUBE-IPVS-FILTER -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN
-A KUBE-IPVS-FILTER -m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT --reject-with icmp-port-unreachable
-A KUBE-IPVS-OUT-FILTER -s 203.0.113.13/32 -m ipvs --vaddr 203.0.113.13 --vproto 6 --vport 80 -j DROP
-A KUBE-NODE-PORT -m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT
-A KUBE-PROXY-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port for load balancer with sourceRange" -m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j KUBE-SOURCE-RANGES-FIREWALL
-A KUBE-SOURCE-RANGES-FIREWALL -m comment --comment "Kubernetes service load balancer ip + port + source cidr for packet filter purpose" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN
-A KUBE-SOURCE-RANGES-FIREWALL -j DROP
COMMIT
`;

export const ipsetSave = `create KUBE-LOOP-BACK hash:ip,port,ip family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1
add KUBE-LOOP-BACK 10.244.1.5,tcp:8080,10.244.1.5
create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x2
add KUBE-CLUSTER-IP 10.96.0.20,tcp:80
add KUBE-CLUSTER-IP 10.96.0.21,tcp:80
add KUBE-CLUSTER-IP 10.96.0.22,tcp:80
create KUBE-EXTERNAL-IP hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x3
add KUBE-EXTERNAL-IP 198.51.100.10,tcp:80
create KUBE-EXTERNAL-IP-LOCAL hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x4
create KUBE-LOAD-BALANCER hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x5
add KUBE-LOAD-BALANCER 203.0.113.11,tcp:80
add KUBE-LOAD-BALANCER 203.0.113.12,tcp:80
add KUBE-LOAD-BALANCER 203.0.113.13,tcp:80
create KUBE-LOAD-BALANCER-LOCAL hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x6
add KUBE-LOAD-BALANCER-LOCAL 203.0.113.12,tcp:80
create KUBE-LOAD-BALANCER-FW hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x7
add KUBE-LOAD-BALANCER-FW 203.0.113.13,tcp:80
create KUBE-LOAD-BALANCER-SOURCE-CIDR hash:ip,port,net family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x8
add KUBE-LOAD-BALANCER-SOURCE-CIDR 203.0.113.13,tcp:80,192.0.2.0/25
create KUBE-NODE-PORT-TCP bitmap:port range 0-65535
add KUBE-NODE-PORT-TCP 30080
create KUBE-NODE-PORT-LOCAL-TCP bitmap:port range 0-65535
add KUBE-NODE-PORT-LOCAL-TCP 30082
create KUBE-HEALTH-CHECK-NODE-PORT bitmap:port range 0-65535
add KUBE-HEALTH-CHECK-NODE-PORT 31000
create KUBE-IPVS-IPS hash:ip family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x9
add KUBE-IPVS-IPS 10.96.0.20
add KUBE-IPVS-IPS 10.96.0.21
add KUBE-IPVS-IPS 10.96.0.22
add KUBE-IPVS-IPS 198.51.100.10
add KUBE-IPVS-IPS 203.0.113.11
add KUBE-IPVS-IPS 203.0.113.12
add KUBE-IPVS-IPS 203.0.113.13
`;

const twoPods =
  "  -> 10.244.1.5:8080              Masq    1      0          0\n  -> 10.244.2.5:8080              Masq    1      0          0";

export const ipvsadm = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
${["10.96.0.20:80", "198.51.100.10:80", "203.0.113.11:80", "203.0.113.13:80", "192.0.2.1:30080", "192.0.2.1:30082"].map((address) => `TCP  ${address} rr\n${twoPods}`).join("\n")}
TCP  10.96.0.21:80 rr persistent 10800
${twoPods}
TCP  10.96.0.22:80 rr
TCP  203.0.113.12:80 rr
  -> 10.244.2.5:8080              Masq    1      0          0
`;

export const ipAddr = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default
    inet 192.0.2.1/24 scope global eth0
3: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default
${["10.96.0.20", "10.96.0.21", "10.96.0.22", "198.51.100.10", "203.0.113.11", "203.0.113.12", "203.0.113.13"].map((address) => `    inet ${address}/32 scope global kube-ipvs0`).join("\n")}
4: cni0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UP group default
    inet 10.244.1.1/24 scope global cni0
`;
