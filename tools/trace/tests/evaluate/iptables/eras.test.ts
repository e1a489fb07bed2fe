import { ask, brief, nodeOf, oneNode } from "../../support/example";

const nat = (rules: string): string => `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -m mark --mark 0x4000/0x4000 -j MASQUERADE
${rules}
COMMIT
`;

const filter = (policy: string, rules: string): string => `*filter
:INPUT ACCEPT [0:0]
:FORWARD ${policy} [0:0]
:OUTPUT ACCEPT [0:0]
${rules}
COMMIT
`;

describe("Kubernetes 1.11", () => {
  const services =
    nat(`-A KUBE-SERVICES ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p tcp -m comment --comment "a/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "a/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http" -m statistic --mode random --probability 0.33332999982 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http" -j KUBE-SEP-CCCCCCCCCCCCCCCC
-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.244.1.5/32 -m comment --comment "a/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "a/web:http" -m tcp -j DNAT --to-destination 10.244.1.5:8080
-A KUBE-SEP-BBBBBBBBBBBBBBBB -s 10.244.2.5/32 -m comment --comment "a/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m comment --comment "a/web:http" -m tcp -j DNAT --to-destination 10.244.2.5:8080
-A KUBE-SEP-CCCCCCCCCCCCCCCC -s 10.244.3.5/32 -m comment --comment "a/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-CCCCCCCCCCCCCCCC -p tcp -m comment --comment "a/web:http" -m tcp -j DNAT --to-destination 10.244.3.5:8080`);
  const forward = `-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-SERVICES -d 10.96.0.11/32 -p tcp -m comment --comment "a/none: has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable`;
  const thirds = "10.244.1.5:8080=0.3333 10.244.2.5:8080=0.3333 10.244.3.5:8080=0.3333";

  it("spreads over three endpoints alike, though it prints a third with five digits", () => {
    const node = nodeOf(services, filter("ACCEPT", forward), oneNode);

    expect(brief(ask(node, "pod 10.244.1.9 > 10.96.0.10:80"))).toBe(
      `dnat ${thirds} masquerade=false`,
    );
    expect(
      ask(node, "pod 10.244.1.9 > 10.96.0.10:80").endpoints.map((each) => each.probability),
    ).toEqual([expect.closeTo(1 / 3, 12), expect.closeTo(1 / 3, 12), expect.closeTo(1 / 3, 12)]);
  });

  it("masquerades outside clients by the mark rule that stands in KUBE-SERVICES", () => {
    const node = nodeOf(services, filter("ACCEPT", forward), oneNode);

    expect(brief(ask(node, "outside 198.51.100.9 > 10.96.0.10:80"))).toBe(
      `dnat ${thirds} masquerade=true`,
    );
  });

  it("drops unmarked packets where Docker set FORWARD's policy to DROP, and lets marked ones pass", () => {
    const node = nodeOf(services, filter("DROP", forward), oneNode);

    expect(brief(ask(node, "pod 10.244.1.9 > 10.96.0.10:80"))).toBe("drop");
    expect(ask(node, "pod 10.244.1.9 > 10.96.0.10:80").reason).toContain("policy of chain FORWARD");
    expect(brief(ask(node, "outside 198.51.100.9 > 10.96.0.10:80"))).toBe(
      `dnat ${thirds} masquerade=true`,
    );
  });

  it("rejects a Service without endpoints only from the node, since FORWARD does not go to KUBE-SERVICES", () => {
    const node = nodeOf(services, filter("ACCEPT", forward), oneNode);

    expect(brief(ask(node, "pod 10.244.1.9 > 10.96.0.11:80"))).toBe("pass");
    expect(brief(ask(node, "node 192.0.2.1 > 10.96.0.11:80"))).toBe("reject");
  });
});

describe("KUBE-XLB, of Kubernetes before 1.24", () => {
  const services = (last: string): string =>
    nat(`-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-NODEPORTS -s 127.0.0.0/8 -p tcp -m comment --comment "a/web:http" -m tcp --dport 30080 -j KUBE-MARK-MASQ
-A KUBE-NODEPORTS -p tcp -m comment --comment "a/web:http" -m tcp --dport 30080 -j KUBE-XLB-AAAAAAAAAAAAAAAA
-A KUBE-XLB-AAAAAAAAAAAAAAAA -s 10.244.0.0/16 -m comment --comment "Redirect pods trying to reach external loadbalancer VIP to clusterIP" -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-XLB-AAAAAAAAAAAAAAAA -m comment --comment "masquerade LOCAL traffic for a/web:http LB IP" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
-A KUBE-XLB-AAAAAAAAAAAAAAAA -m comment --comment "route LOCAL traffic for a/web:http LB IP to service chain" -m addrtype --src-type LOCAL -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-XLB-AAAAAAAAAAAAAAAA -m comment --comment "${last}
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.244.1.5/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m tcp -j DNAT --to-destination 10.244.1.5:8080
-A KUBE-SEP-BBBBBBBBBBBBBBBB -s 10.244.2.5/32 -j KUBE-MARK-MASQ
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination 10.244.2.5:8080`);
  const firewall = filter(
    "ACCEPT",
    `-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP`,
  );
  const none = 'a/web:http has no local endpoints" -j KUBE-MARK-DROP';
  const some = 'Balancing rule 0 for a/web:http" -j KUBE-SEP-AAAAAAAAAAAAAAAA';

  it("drops outside clients by mark 0x8000 where no endpoint is local", () => {
    const answer = ask(
      nodeOf(services(none), firewall, oneNode),
      "outside 198.51.100.9 > 192.0.2.1:30080",
    );

    expect(brief(answer)).toBe("drop");
    expect(answer.reason).toContain("KUBE-FIREWALL");
  });

  it("sends outside clients to local endpoints only, unmasked", () => {
    const node = nodeOf(services(some), firewall, oneNode);

    expect(brief(ask(node, "outside 198.51.100.9 > 192.0.2.1:30080"))).toBe(
      "dnat 10.244.1.5:8080=1 masquerade=false",
    );
  });

  it("sends pods and the node to all endpoints, the node masqueraded", () => {
    const node = nodeOf(services(none), firewall, oneNode);
    const halves = "10.244.1.5:8080=0.5 10.244.2.5:8080=0.5";

    expect(brief(ask(node, "pod 10.244.1.9 > 192.0.2.1:30080"))).toBe(
      `dnat ${halves} masquerade=false`,
    );
    expect(brief(ask(node, "node 192.0.2.1 > 192.0.2.1:30080"))).toBe(
      `dnat ${halves} masquerade=true`,
    );
    expect(brief(ask(node, "node - > 127.0.0.1:30080"))).toBe(`dnat ${halves} masquerade=true`);
  });

  it("cannot say whether a NodePort applies where no dump has the node's addresses", () => {
    const answer = ask(nodeOf(services(some), firewall), "outside 198.51.100.9 > 192.0.2.1:30080");

    expect(answer.verdict).toBe("unknown");
    expect(answer.reason).toContain("ip addr");
  });

  it.each([
    ["no endpoint is local", none],
    ["an endpoint is local", some],
  ])("cannot say so of an address in the pods' range either, where %s", (_, last) => {
    const node = nodeOf(services(last), firewall);

    for (const from of ["outside 198.51.100.9", "outside -", "pod 10.244.1.9", "pod -"]) {
      const answer = ask(node, `${from} > 10.244.0.4:30080`);

      expect([from, answer.verdict]).toEqual([from, "unknown"]);
      expect(answer.reason).toContain("ip addr");
    }
  });

  it("passes a packet to a pod where the port is no NodePort, whoever has the address", () => {
    const node = nodeOf(services(some), firewall);

    expect(brief(ask(node, "pod 10.244.1.9 > 10.244.0.4:8080"))).toBe("pass");
  });

  it("finds a NodePort on a node whose address lies in the pods' range", () => {
    const inRange = oneNode.replace("192.0.2.1/24", "10.244.0.4/16");

    expect(
      brief(ask(nodeOf(services(none), firewall, inRange), "outside - > 10.244.0.4:30080")),
    ).toBe("drop");
    expect(
      brief(ask(nodeOf(services(some), firewall, inRange), "outside - > 10.244.0.4:30080")),
    ).toBe("dnat 10.244.1.5:8080=1 masquerade=false");
  });
});
