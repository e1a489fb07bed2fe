import { ask, brief, nodeOf, oneNode } from "../support/example";
import { ipAddr, ipsetSave, iptablesSave, ipvsadm } from "../support/ipvs-example";
import { kubeProxyTable } from "../support/nftables-example";

const table = (name: string) => {
  const start = iptablesSave.indexOf(`*${name}`);
  return iptablesSave.slice(start, iptablesSave.indexOf("COMMIT\n", start) + 7);
};

const nftOfIptables = `table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
		counter packets 1 bytes 60 jump KUBE-SERVICES
	}
	chain KUBE-SERVICES {
		counter packets 1 bytes 60 jump KUBE-MARK-MASQ
	}
	chain KUBE-MARK-MASQ {
		counter packets 1 bytes 60 meta mark set mark or 0x4000
	}
}
`;

const toService = "outside 192.0.2.9 > 10.96.0.20:80";
const halves = "dnat 10.244.1.5:8080=0.5 10.244.2.5:8080=0.5";

it("leaves the masquerade open where IPVS is dumped without iptables", () => {
  const answer = ask(nodeOf(ipvsadm, ipAddr), toService);

  expect(brief(answer)).toBe(`${halves} masquerade=unknown`);
  expect(answer.notes.join("\n")).toContain("are in no dump");
});

const bare = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";

it.each([
  ["the rules of iptables", [iptablesSave, ipsetSave, oneNode]],
  ["its interface", [bare, ipAddr]],
])("says that IPVS's own table is missing where only %s show IPVS", (_, dumps) => {
  const answer = ask(nodeOf(...dumps), toService);

  expect([answer.mode, answer.verdict]).toEqual(["ipvs", "unknown"]);
  expect(answer.reason).toContain("add `ipvsadm -Sn`, or `cat /proc/net/ip_vs`");
});

it.each([
  ["nftables", [bare, kubeProxyTable("1.34")]],
  ["iptables", [bare.replace("[0:0]\n", "[0:0]\n:KUBE-SVC-A - [0:0]\n")]],
] as const)(
  "takes the interface that IPVS mode has left for no sign of it in %s mode",
  (mode, dumps) => {
    const answer = ask(nodeOf(...dumps, ipAddr), "outside 192.0.2.9 > 10.96.0.20:9");

    expect([answer.mode, answer.verdict]).toEqual([mode, "pass"]);
  },
);

it("says that a packet passes to what is no address of the node, without IPVS's table too", () => {
  const answer = ask(nodeOf(bare, ipAddr), "pod 10.244.1.9 > 9.9.9.9:80");

  expect(answer.verdict).toBe("pass");
});

it("takes nothing of IPVS mode from nft, which does not show the sets", () => {
  const answer = ask(nodeOf(ipvsadm, ipsetSave, ipAddr, nftOfIptables), toService);

  expect(brief(answer)).toBe(`${halves} masquerade=unknown`);
  expect(answer.notes.join("\n")).toContain(
    "table ip nat is left out: nft does not show which sets",
  );
});

it.each([
  ["an IP family that no dump is of", table("nat"), "pod fd00::9 > [fd00::1]:80", "rules for IPv6"],
  [
    "a table filter alone",
    table("filter").replace("FORWARD DROP", "FORWARD ACCEPT"),
    "pod 10.244.1.9 > 9.9.9.9:80",
    "Table nat",
  ],
])("does not say that a packet passes from %s", (_, dump, question, reason) => {
  const answer = ask(nodeOf(dump, ipsetSave, oneNode), question);

  expect(answer.verdict).toBe("unknown");
  expect(answer.reason).toContain(reason);
});

it("does not say that IPVS lets a port pass that it does not have, without table filter", () => {
  const answer = ask(
    nodeOf(table("nat"), ipsetSave, ipvsadm, ipAddr),
    "pod 10.244.1.9 > 10.96.0.20:81",
  );

  expect(answer.verdict).toBe("unknown");
  expect(answer.reason).toContain("table filter");
});
