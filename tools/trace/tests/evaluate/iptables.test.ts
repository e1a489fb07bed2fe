import { answer, ask, brief, nodeOf, oneNode, pod, toPod } from "../support/example";
import { nodeDump } from "../../read/read-dumps";
import { goldenDumps } from "../support/kube-proxy/golden-dumps";

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

describe("Docker", () => {
  const docker = {
    nat: `-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80`,
    filter: `-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp -m tcp --dport 80 -j ACCEPT
-A DOCKER-USER -j RETURN`,
  };

  it("changes nothing for a Service, whichever interface the packet takes", () => {
    expect(brief(answer(docker, pod))).toBe(toPod);
  });

  it("has its own forwarding, noted apart from Services", () => {
    const result = answer(docker, "outside 198.51.100.9 > 192.0.2.1:8080");

    expect(brief(result)).toBe("pass");
    expect(result.notes.join("\n")).toMatch(/Not by kube-proxy: .*DOCKER.*172\.17\.0\.2:80/);
    expect(result.steps.map((step) => step.chain)).toContain("DOCKER");
  });
});

describe("flannel", () => {
  it("masquerades what leaves the pods' range, which is noted apart from kube-proxy's masquerade", () => {
    const flannel = {
      nat: `-A POSTROUTING -m comment --comment "flanneld masq" -j FLANNEL-POSTRTG
-A FLANNEL-POSTRTG -m mark --mark 0x4000/0x4000 -m comment --comment "flanneld masq" -j RETURN
-A FLANNEL-POSTRTG -s 10.244.1.0/24 -d 10.244.0.0/16 -m comment --comment "flanneld masq" -j RETURN
-A FLANNEL-POSTRTG -s 10.244.0.0/16 ! -d 224.0.0.0/4 -m comment --comment "flanneld masq" -j MASQUERADE --random-fully`,
    };

    expect(brief(answer(flannel, pod))).toBe(toPod);
    expect(answer(flannel, pod).notes.join("\n")).not.toContain("Not by kube-proxy");
    const away = answer(flannel, "pod 10.244.1.9 > 9.9.9.9:443");
    expect(brief(away)).toBe("pass");
    expect(away.notes.join("\n")).toMatch(/Not by kube-proxy: .*FLANNEL-POSTRTG/);
  });
});

describe("Calico", () => {
  const calico = (policy: string) => ({
    filter: `-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-FORWARD -m comment --comment "cali:vjrMJCRpqwy5oRoX" -j MARK --set-xmark 0x0/0xe0000
-A cali-FORWARD -i cali+ -m comment --comment "cali:8ZoYfO5HKXWbB3pk" -j cali-from-wl-dispatch
-A cali-FORWARD -o cali+ -m comment --comment "cali:jdEuaPBe14V2hutn" -j cali-to-wl-dispatch
-A cali-from-wl-dispatch -i cali1111 -m comment --comment "cali:aaaaaaaaaaaaaaaa" -g cali-fw-cali1111
-A cali-from-wl-dispatch -i cali2222 -m comment --comment "cali:bbbbbbbbbbbbbbbb" -g cali-fw-cali2222
-A cali-from-wl-dispatch -m comment --comment "cali:cccccccccccccccc" -m comment --comment "Unknown interface" -j DROP
-A cali-to-wl-dispatch -o cali1111 -m comment --comment "cali:dddddddddddddddd" -g cali-tw-cali1111
-A cali-to-wl-dispatch -m comment --comment "cali:eeeeeeeeeeeeeeee" -m comment --comment "Unknown interface" -j DROP
-A cali-fw-cali1111 -m comment --comment "cali:ffffffffffffffff" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-fw-cali1111 -m comment --comment "cali:gggggggggggggggg" -j MARK --set-xmark 0x10000/0x10000
-A cali-fw-cali2222 -m comment --comment "cali:hhhhhhhhhhhhhhhh" -j MARK --set-xmark 0x10000/0x10000
-A cali-tw-cali1111 -m comment --comment "cali:iiiiiiiiiiiiiiii" ${policy}`,
  });

  it("lets a pod through where each workload's chain does", () => {
    expect(brief(answer(calico("-j MARK --set-xmark 0x10000/0x10000"), pod))).toBe(toPod);
  });

  it("leaves it open where the endpoint may be the workload that a policy closes", () => {
    const result = answer(calico("-j DROP"), pod);

    expect(result.verdict).toBe("unknown");
    expect(result.reason).toContain("cali");
    expect(result.endpoints).toEqual([{ address: "10.244.2.5:8080", probability: 1 }]);
  });
});

describe("connections that are not tracked", () => {
  const notrack = (rule: string) => ({
    raw: `-A PREROUTING -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j ${rule}`,
  });

  it.each(["NOTRACK", "CT --notrack"])("are seen by no rule of a Service after %s", (rule) => {
    const result = answer(notrack(rule), pod);

    expect(brief(result)).toBe("pass");
    expect(result.reason).toContain("connection tracking");
  });

  it("are not NEW but UNTRACKED", () => {
    const drop = (state: string) => ({
      ...notrack("NOTRACK"),
      filter: `-A FORWARD -m conntrack --ctstate ${state} -j DROP`,
    });

    expect(brief(answer(drop("NEW"), pod))).toBe("pass");
    expect(brief(answer(drop("UNTRACKED"), pod))).toBe("drop");
  });
});

const node = nodeDump(
  goldenDumps("iptables").filter(({ file }) => /^(nft list ruleset|ip address)$/.test(file)),
);

/** A node in iptables mode of which only `nft list ruleset` was taken. */
describe("iptables' rules as nft lists them", () => {
  it.each([
    [
      "pod - > 10.96.0.10:80",
      "dnat 10.244.1.2:8080=0.3333 10.244.1.3:8080=0.3333 10.244.2.4:8080=0.3333 masquerade=false",
    ],
    ["pod 10.244.1.2 > 10.96.0.12:80", "dnat 10.244.1.2:8080=1 masquerade=true"],
    [
      "outside 192.0.2.200 > 192.0.2.1:30081",
      "dnat 10.244.1.2:8080=0.5 10.244.1.3:8080=0.5 masquerade=false",
    ],
    ["pod 10.244.1.9 > 10.96.0.30:80", "reject"],
  ])("are walked: %s", (question, expected) => {
    expect(brief(ask(node, question))).toBe(expected);
  });

  it("are not taken for rules without a target where nft has no words for it", () => {
    const { verdict, reason } = ask(node, "pod fd00:10:244:1::9 > [fd00:10:96::12]:80");

    expect(verdict).toBe("unknown");
    expect(reason).toContain("KUBE-SEP-");
  });

  it("are said not to be all that iptables has", () => {
    const { notes } = ask(node, "outside 192.0.2.200 > [fd00:10:96::12]:80");

    expect(notes.join("\n")).toContain("nft does not show all that its rules ask");
  });
});
