import { nodeDump } from "../../../read/read-dumps";
import { ask, brief } from "../../support/example";
import { answer, pod, toPod } from "../../support/iptables-example";
import { goldenDumps } from "../../support/kube-proxy/golden-dumps";

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
    const { verdict, reason } = ask(node, "pod fd00:10:244:1::9 > [fd00:10:96::11]:9153");

    expect(verdict).toBe("unknown");
    expect(reason).toContain("KUBE-SEP-");
  });

  it("are said not to be all that iptables has", () => {
    const { notes } = ask(node, "outside 192.0.2.200 > [fd00:10:96::12]:80");

    expect(notes.join("\n")).toContain("nft does not show all that its rules ask");
  });
});
