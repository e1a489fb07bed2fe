import { answer, ask, brief, nodeOf, oneNode, pod, tables, toPod } from "../support/example";
import { goldenDump } from "../support/kube-proxy/golden-dumps";

describe("what users write", () => {
  const filtered = (rule: string) => brief(answer({ filter: rule }, pod));

  it.each([
    ["-A FORWARD -d 10.244.2.5/32 -p tcp -m tcp --dport 8080 -j DROP", "drop"],
    ["-A FORWARD -d 10.96.0.10/32 -j DROP", toPod],
    ["-A FORWARD ! -d 10.244.0.0/16 -j DROP", toPod],
    ["-A FORWARD -m conntrack --ctorigdst 10.96.0.10/32 --ctorigdstport 80 -j DROP", "drop"],
    ["-A FORWARD -m state --state RELATED,ESTABLISHED -j DROP", toPod],
    [
      "-A FORWARD -m conntrack --ctstate DNAT -j REJECT --reject-with icmp-admin-prohibited",
      "reject",
    ],
    ["-A FORWARD -p tcp -m multiport --dports 443,8000:8100 -j DROP", "drop"],
    ["-A FORWARD -p tcp -m multiport ! --dports 443,8000:8100 -j DROP", toPod],
    ["-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP", "drop"],
    ["-A FORWARD -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -j DROP", toPod],
    ["-A FORWARD -m iprange --src-range 10.244.1.1-10.244.1.20 -j DROP", "drop"],
    ["-A FORWARD -p udp -j DROP", toPod],
    ["-A FORWARD -m addrtype --dst-type LOCAL -j DROP", toPod],
    ['-A FORWARD -j LOG --log-prefix "seen: "\n-A FORWARD -j DROP', "drop"],
    ["-A FORWARD -g CHECK\n-A FORWARD -j DROP\n-A CHECK -s 10.99.0.0/16 -j DROP", toPod],
    ["-A FORWARD -j CHECK\n-A FORWARD -j DROP\n-A CHECK -s 10.99.0.0/16 -j DROP", "drop"],
    ["-A FORWARD -i lo -j DROP", toPod],
    ["-A FORWARD -m ipvs --ipvs -j DROP", toPod],
    ["-A FORWARD -m ipvs ! --ipvs -j DROP", "drop"],
    ["-A FORWARD -m owner --uid-owner 0 -j DROP", toPod],
    ["-A FORWARD -m rpfilter --invert ! -o docker0 -j DROP", toPod],
    ["-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j DROP", "drop"],
    ["-A FORWARD -d 10.244.0.0/255.255.0.0 -j DROP", "drop"],
    ["-A FORWARD -i eth0 -j DROP", toPod],
  ])("%s", (rule, expected) => {
    expect(filtered(rule)).toBe(expected);
  });

  // What iptables-extensions(8) says of the packet: a new connection of the pod 10.244.1.9 to
  // 10.244.2.5:8080.
  it.each([
    ["-p tcp -m tcp --sport 1:65535", "drop"],
    ["-p tcp -m tcp --sport :65535", "drop"],
    ["-p tcp -m tcp --dport :8079", toPod],
    ["-p tcp -m tcp --dport 8079:", "drop"],
    ["-p tcp -m multiport --destination-ports 79,8079:8090", "drop"],
    ["-p tcp -m multiport --destination-ports 79,8081:8090", toPod],
    ["-p tcp -m multiport --ports 8080", "drop"],
    ["-p tcp --syn", "drop"],
    ["-p tcp ! --syn", toPod],
    ["-p tcp --tcp-flags ALL SYN", "drop"],
    ["-p tcp --tcp-flags ALL NONE", toPod],
    ["-m iprange --dst-range 10.244.2.1-10.244.2.5", "drop"],
    ["-m iprange --dst-range 10.244.2.6-10.244.2.20", toPod],
    ["-m iprange ! --dst-range 10.244.2.6-10.244.2.20", "drop"],
    ["-m conntrack --ctdir ORIGINAL", "drop"],
    ["-m conntrack --ctdir REPLY", toPod],
    ["-m conntrack --ctproto tcp", "drop"],
    ["-m conntrack --ctproto udp", toPod],
    ["-p 6", "drop"],
    ["-p 17", toPod],
    ["-p all", "drop"],
    ["-p icmp -m icmp --icmp-type 8", toPod],
    ["-f", toPod],
    ["! -f", "drop"],
    ["-m physdev --physdev-is-out", toPod],
    ["-m addrtype --dst-type UNICAST --limit-iface-in", "drop"],
    ["-m owner --gid-owner 0", toPod],
    ["-m recent --set --name seen", "drop"],
    ["-m rpfilter --loose --validmark", "drop"],
    ["-m connmark --mark 0x1", toPod],
    [
      "--source 10.244.1.0/24 --destination 10.244.2.5 --protocol tcp --destination-port 8080",
      "drop",
    ],
    ["--src 10.244.1.0/24 --dst 10.244.2.5 --proto tcp", "drop"],
    ["--source 198.51.100.0/24", toPod],
    ["--in-interface eth0", toPod],
    ["--out-interface lo", toPod],
    ["--fragment", toPod],
  ])("-A FORWARD %s -j DROP", (match, expected) => {
    expect(filtered(`-A FORWARD ${match} -j DROP`)).toBe(expected);
    expect(filtered(`-A FORWARD ${match} --jump DROP`)).toBe(expected);
  });

  it.each([
    ["MARK --set-xmark 0x10/0xf0", "0x4311"],
    ["MARK --set-xmark 0x11/0xf0", "0x4310"],
    ["MARK --set-mark 0x11/0xf0", "0x4311"],
    ["MARK --set-xmark 0x5", "0x5"],
    ["MARK --or-mark 0x10", "0x4331"],
    ["MARK --and-mark 0xff", "0x21"],
    ["MARK --xor-mark 0xf0", "0x43d1"],
  ])("a mark of 0x4321 after %s is %s", (target, mark) => {
    const rules = `-A FORWARD -j MARK --set-xmark 0x4321\n-A FORWARD -j ${target}`;

    expect(filtered(`${rules}\n-A FORWARD -m mark --mark ${mark} -j DROP`)).toBe("drop");
  });

  it.each([
    ["--mark 0x300/0xf00", "drop"],
    ["! --mark 0x300/0xf00", toPod],
    ["--mark 0x200/0xf00", toPod],
    ["--mark 0x321/0xf00", toPod],
    ["--mark 0x300", toPod],
  ])("a mark of 0x321 is asked by the bits of the mask only: %s", (match, expected) => {
    expect(
      filtered(`-A FORWARD -j MARK --set-xmark 0x321\n-A FORWARD -m mark ${match} -j DROP`),
    ).toBe(expected);
  });

  it.each([
    ["--save-mark --nfmask 0xf00 --ctmask 0xff0", "connmark", "0xb0f"],
    ["--save-mark --mask 0xf0", "connmark", "0xf2f"],
    ["--restore-mark --nfmask 0xff0 --ctmask 0xf00", "mark", "0xf01"],
    ["--restore-mark --mask 0xf", "mark", "0xb2f"],
    ["--set-xmark 0x10/0xf0", "connmark", "0xf1f"],
  ])("CONNMARK copies what the masks say: %s", (options, module, mark) => {
    const marks = "-A FORWARD -j MARK --set-xmark 0xb21\n-A FORWARD -j CONNMARK --set-xmark 0xfff";

    expect(
      filtered(
        `${marks}\n-A FORWARD -j CONNMARK ${options}\n-A FORWARD -m ${module} --mark ${mark} -j DROP`,
      ),
    ).toBe("drop");
  });

  it.each([
    ["-A FORWARD -m limit --limit 5/min -j DROP", "limit"],
    ["-A FORWARD -m set --match-set blocked src -j DROP", "blocked"],
    ["-A FORWARD -m u32 --u32 0x0=0x1 -j DROP", "u32"],
    ["-A FORWARD -m time --timestart 10:00 --timestop 11:00 -j DROP", "timestart"],
    ["-A FORWARD -p tcp -m tcp --sport 1024:65535 -j DROP", "client's port is 1024-65535"],
    ["-A FORWARD -p tcp -m tcp ! --sport 1:65535 -j DROP", "client's port is 1-65535"],
    ["-A FORWARD -p tcp -m multiport --sports 53,1024: -j DROP", "client's port"],
    ["-A FORWARD -p tcp -m multiport --ports 53 -j DROP", "client's port is 53"],
    ["-A FORWARD -m mac --mac-source 00:11:22:33:44:55 -j DROP", "00:11:22:33:44:55"],
    ["-A FORWARD -m physdev --physdev-is-bridged -j DROP", "behind a bridge"],
    ["-A FORWARD -m physdev --physdev-in veth+ -j DROP", "bridge port veth+"],
    ["-A FORWARD -m physdev --physdev-out veth+ -j DROP", "bridge port veth+"],
    ["-A FORWARD -p tcp --tcp-option 8 -j DROP", "TCP option 8"],
    ["-A FORWARD -m recent --update --seconds 5 --hitcount 3 --rttl --name x -j DROP", "list x"],
    ["-A FORWARD -m recent --remove --rdest --name x -j DROP", "list x"],
    ["-A FORWARD -m socket -j DROP", "socket"],
    ["-A FORWARD -j NOT-IN-THE-DUMP", "NOT-IN-THE-DUMP"],
    ["-A FORWARD -j NFQUEUE --queue-num 0", "program"],
  ])("is unknown where it decides and cannot be decided: %s", (rule, reason) => {
    const result = answer({ filter: rule }, pod);

    expect(result.verdict).toBe("unknown");
    expect(result.reason).toContain(reason);
  });

  it.each([
    "-A FORWARD -m limit --limit 5/min -j ACCEPT",
    "-A FORWARD -m limit --limit 5/min -j LOG",
    "-A FORWARD -m u32 --u32 0x0=0x1 -j MARK --set-xmark 0x1/0x1",
    "-A FORWARD -m owner --uid-owner 0 -j SOME\n-A SOME -j RETURN",
  ])("does not matter where both ways end alike: %s", (rule) => {
    expect(filtered(rule)).toBe(toPod);
  });

  it("takes two rules on the same undecided interface for one question", () => {
    const rules =
      "-A FORWARD -o tun0 -j MARK --set-xmark 0x1/0x1\n-A FORWARD -o tun0 -m mark ! --mark 0x1/0x1 -j DROP";

    expect(filtered(rules)).toBe(toPod);
  });

  it("has no effect before its own hook: REDIRECT behind KUBE-SERVICES does not touch a Service", () => {
    expect(
      brief(
        answer({ nat: "-A PREROUTING -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 3128" }, pod),
      ),
    ).toBe(toPod);
  });

  it("takes a packet away before KUBE-SERVICES", () => {
    const result = answer(
      { beforeServices: "-A PREROUTING -d 10.96.0.10/32 -j DNAT --to-destination 10.9.9.9" },
      pod,
    );

    expect(brief(result)).toBe("pass");
    expect(result.reason).toContain("10.9.9.9:80");
  });

  it("rewrites a network with NETMAP", () => {
    const result = answer(
      { nat: "-A PREROUTING -d 10.50.0.0/16 -j NETMAP --to 10.60.0.0/16" },
      "pod 10.244.1.9 > 10.50.3.4:80",
    );

    expect(result.notes.join("\n")).toContain("10.60.3.4:80");
  });

  it("deals connections out with statistic nth", () => {
    const nat = `-A PREROUTING -d 10.7.7.7/32 -j KUBE-SVC-NNNNNNNNNNNNNNNN
-A KUBE-SVC-NNNNNNNNNNNNNNNN -m statistic --mode nth --every 3 --packet 0 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-NNNNNNNNNNNNNNNN -m statistic --mode random ! --probability 0.25000000000 -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SVC-NNNNNNNNNNNNNNNN -j KUBE-SEP-CCCCCCCCCCCCCCCC
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -j DNAT --to-destination 10.244.2.6:8080
-A KUBE-SEP-CCCCCCCCCCCCCCCC -p tcp -j DNAT --to-destination 10.244.2.7:8080`;

    expect(brief(answer({ nat }, "pod 10.244.1.9 > 10.7.7.7:80"))).toBe(
      "dnat 10.244.2.5:8080=0.3333 10.244.2.6:8080=0.5 10.244.2.7:8080=0.1667 masquerade=false",
    );
  });

  it("reads the mark for masquerade from the rules, not from a constant", () => {
    const node = nodeOf(tables({}).replaceAll("0x4000", "0x100"), oneNode);

    expect(brief(ask(node, "outside 198.51.100.9 > 10.96.0.10:80"))).toBe(
      "dnat 10.244.2.5:8080=1 masquerade=true",
    );
  });
});

it("takes one of the node's own addresses for no forwarded packet's destination, without `ip addr` too", () => {
  const node = nodeOf(tables({ filter: "-A FORWARD -m addrtype --dst-type LOCAL -j DROP" }));

  expect(brief(ask(node, "outside 198.51.100.7 > 192.0.2.1:8080"))).toBe("pass");
});

describe("what users note with a rule", () => {
  it.each([
    ['-m comment --comment "block it all"', "Block it all"],
    [
      '-m comment --comment "go -j ACCEPT -d 10.0.0.0/33 instead"',
      "Go -j ACCEPT -d 10.0.0.0/33 instead",
    ],
    [
      String.raw`-m comment --comment "say \"no\" -j ACCEPT -d 300.0.0.1"`,
      'Say "no" -j ACCEPT -d 300.0.0.1',
    ],
    [String.raw`-m comment --comment "a \" alone"`, 'A " alone'],
    ["-m comment --comment block", "Block"],
    ["-m comment --comment block it all", "Block it all"],
    ["-m comment --comment 'block -j them'", "Block -j them"],
    ['-m comment --comment "comment --comment x"', "Comment --comment x"],
    ['-p tcp -m comment --comment "block it" -m tcp --dport 8080', "Block it"],
    ['-m comment --comment "cali:abc" -m comment --comment "block it"', "Block it"],
    ['-m comment --comment "cali:abc"', "The packet meets drop by table filter"],
    ['-m comment --comment ""', "The packet meets drop by table filter"],
  ])("is what a drop is told with: %s", (match, told) => {
    const rule = `-A FORWARD ${match} -j DROP`;
    const { verdict, reason } = answer({ filter: rule }, pod);

    expect(verdict).toBe("drop");
    expect(reason.startsWith(told)).toBe(true);
    expect(reason).toContain(rule);
  });

  it.each(["block it all", 'a " alone', "a -j ACCEPT"])("is read from a listing: %s", (comment) => {
    const listing = `Chain FORWARD (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination
    0     0 DROP       all  --  *      *       0.0.0.0/0            0.0.0.0/0            /* ${comment} */
`;
    const node = nodeOf(tables({}).split("*filter")[0]!, listing, oneNode);

    expect(
      ask(node, pod).reason.startsWith(
        `${comment.charAt(0).toUpperCase()}${comment.slice(1)} (drop by`,
      ),
    ).toBe(true);
  });

  it("is read from a rule of nft, not from other words of it", () => {
    const table = `table inet mine {
	chain forward {
		type filter hook forward priority 0; policy accept;
		counter log prefix "comment x " drop comment "block it all"
	}
}
`;

    expect(ask(nodeOf(tables({}), table, oneNode), pod).reason).toMatch(/^Block it all \(drop by/);
  });

  it("does not keep a long chain's rule from other destinations", () => {
    const others = Array.from({ length: 20 }, (_, at) => `-A FORWARD -d 10.9.9.${at}/32 -j DROP\n`);
    const noted = String.raw`-A FORWARD -m comment --comment "5\" -d 10.9.9.9 or so" -j DROP`;

    expect(brief(answer({ filter: others.join("") + noted }, pod))).toBe("drop");
  });

  it("says nothing of the table that a rule is of", () => {
    const note = `-A INPUT -m comment --comment "before DNAT to nat" -j DROP\n`;
    const node = nodeOf(tables({}).split("*filter")[0]!, note, oneNode);

    expect(ask(node, "outside 198.51.100.9 > 192.0.2.1:22").verdict).toBe("drop");
  });
});

it("tells kube-proxy's own drops by their comments", () => {
  const dump = goldenDump("iptables", "iptables-save")
    .replace("! --ctstate RELATED,ESTABLISHED,DNAT ", "--ctstate NEW ")
    .replace("! -s 127.0.0.0/8 ", "");
  const { reason } = ask(nodeOf(dump, oneNode), "node - > 127.0.0.1:80");

  expect(reason).toMatch(
    /^Block incoming localnet connections \(drop by table filter, chain KUBE-FIREWALL/,
  );
});
