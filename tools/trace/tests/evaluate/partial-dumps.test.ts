import type { Answer } from "../../model/packet";
import { ask, brief, nodeOf, oneNode } from "../support/example";
import { goldenDump, ipvs } from "../support/kube-proxy/golden-dumps";

const plain = "pod 10.244.1.9 > 10.96.0.10:80";
const balancer = "outside 198.18.0.9 > 203.0.113.13:80";
const empty = "pod 10.244.1.9 > 10.96.0.30:80";
const noService = "pod 10.244.1.9 > 10.96.7.7:80";
const all = [
  plain,
  balancer,
  empty,
  noService,
  "node - > 10.96.0.10:80",
  "outside - > 192.0.2.1:30080",
];

const thirds = /^dnat( 10\.244\.\d\.\d:8080=0\.3333){3} masquerade=/;

interface Part {
  readonly kind: string;
  readonly name: string;
  readonly isBase: boolean;
}

type Kept = (part: Part) => boolean;

/** kube-proxy's own table with some of its chains, maps and sets. */
function listed(kept: Kept, family = "ip"): string {
  const text = goldenDump("nftables", "nft list ruleset");
  const start = text.indexOf(`table ${family} kube-proxy {\n`);
  const table = text.slice(start, text.indexOf("\n}\n", start) + 1);
  const blocks = [...table.matchAll(/\t(set|map|chain) (\S+) \{\n.*?\n\t\}\n/gs)].filter(
    ([block, kind = "", name = ""]) => kept({ kind, name, isBase: block.includes(" hook ") }),
  );
  return `table ${family} kube-proxy {\n${blocks.map(([block]) => block).join("\n")}}\n`;
}

interface Item {
  readonly family: string;
  readonly name: string;
  readonly table: string;
  readonly chain: string;
  readonly hook?: string;
}

/** The same, as `nft -j` has it. */
function listedAsJson(kept: Kept): string {
  const { nftables } = JSON.parse(goldenDump("nftables", "nft -j list ruleset")) as {
    nftables: Record<string, Item>[];
  };
  const bases = new Set(
    nftables.flatMap(({ chain }) => (chain?.hook === undefined ? [] : chain.name)),
  );
  const left = nftables.filter((object) => {
    const [[kind, item]] = Object.entries(object) as [[string, Item]];
    if (kind === "metainfo" || kind === "table" || item.family !== "ip") return true;
    const name = kind === "rule" ? item.chain : item.name;
    return kept({ kind: kind === "rule" ? "chain" : kind, name, isBase: bases.has(name) });
  });
  return JSON.stringify({ nftables: left });
}

const among =
  (...names: string[]): Kept =>
  ({ name }) =>
    names.includes(name);

const without =
  (...names: string[]): Kept =>
  ({ name }) =>
    !names.includes(name);

const service = "service-G5MP4NSY-lab/plain/tcp/http";

const noBase: Kept = ({ isBase }) => !isBase;

describe.each([
  ["text", listed],
  ["JSON", listedAsJson],
])("kube-proxy's table of nftables as %s", (_, write) => {
  it.each(all)(
    "without its base chains has kube-proxy's calls assumed, with notes: %s",
    (question) => {
      const [cut, whole] = [noBase, () => true].map((kept) => ask(nodeOf(write(kept)), question));

      expect(brief(cut!)).toBe(brief(whole!));
      expect(cut!.notes.join("\n")).toMatch(
        /Chain \S+ of table ip kube-proxy is not in the dump; it is taken to/,
      );
      expect(whole!.notes.join("\n")).not.toContain("not in the dump");
    },
  );

  it.each<[string, Kept]>([
    ["nothing", () => false],
    ["one chain and one map", among("services", "service-ips")],
    ["the chain of one Service", among(service)],
    ["maps", ({ kind }) => kind === "map"],
    ["sets", ({ kind }) => kind === "set"],
    ["base chains", ({ isBase }) => isBase],
    ["chains", ({ kind }) => kind === "chain"],
    ["filter's chains", ({ kind, name }) => kind !== "chain" || /check|filter/.test(name)],
  ])("with nothing but %s is certain of no packet", (_, kept) => {
    const verdicts = all.map((question) => ask(nodeOf(write(kept)), question).verdict);

    expect(new Set(verdicts)).toEqual(new Set(["unknown"]));
  });

  it.each<[string, Kept, Record<string, string | RegExp>]>([
    [
      "what a Service needs",
      among("services", "service-ips", service),
      { [plain]: thirds, [balancer]: "unknown" },
    ],
    [
      "nat's chains",
      ({ kind, name }) => kind !== "chain" || !/check|filter/.test(name),
      { [plain]: thirds, [empty]: "unknown", [noService]: "unknown" },
    ],
  ])("with nothing but %s is certain of what these decide", (_, kept, expected) => {
    for (const [question, answer] of Object.entries(expected))
      expect(brief(ask(nodeOf(write(kept)), question))).toMatch(answer);
  });

  it.each<[string, string, string | RegExp]>([
    [service, plain, "unknown"],
    ["service-ips", plain, "unknown"],
    ["firewall-check", plain, thirds],
    ["firewall-check", balancer, "unknown"],
    ["firewall-ips", balancer, "unknown"],
    ["filter-prerouting-pre-dnat", balancer, thirds],
    ["filter-prerouting-pre-dnat", balancer.replace("198.18.0.9", "192.0.2.9"), "drop"],
    ["filter-forward", empty, "reject"],
    ["service-endpoints-check", empty, "unknown"],
    ["service-endpoints-check", plain, thirds],
    ["cluster-ips-check", noService, "unknown"],
    ["reject-chain", empty, "unknown"],
    ["nat-postrouting", "outside 198.51.100.9 > 10.96.0.10:80", /^dnat .* masquerade=true/],
    ["masquerading", "outside 198.51.100.9 > 10.96.0.10:80", /^dnat .* masquerade=true/],
    [
      "masquerading",
      "pod 10.244.1.2 > 10.96.0.10:80",
      /10\.244\.1\.2:8080=0\.3333\(true\) .*\(false\)/,
    ],
  ])("without %s: %s", (name, question, expected) => {
    expect(brief(ask(nodeOf(write(without(name))), question))).toMatch(expected);
  });
});

it("keeps the endpoints of what may be stopped by a chain that is not there", () => {
  const { verdict, endpoints, reason } = ask(nodeOf(listed(without("firewall-check"))), balancer);

  expect([verdict, endpoints.length]).toEqual(["unknown", 3]);
  expect(reason).toContain("what chain firewall-check does, which is not in the dump");
  expect(reason).toContain("either the dumps do not say, or it goes to 10.244.1.2:8080 or");
});

it("takes sets that `nft --terse` leaves empty for such as are not there", () => {
  const terse = listed(() => true).replace(/\n\t\telements = \{.*?\}(?=\n\t\})/gs, "");

  for (const question of all) expect(ask(nodeOf(terse), question).verdict).toBe("unknown");
});

it.each([
  "pod fd00:10:244:1::9 > [fd00:10:96::10]:80",
  "outside 2001:db8::9 > [fd00:10:96::7:7]:80",
])("knows of a table ip6 alike where it was cut: %s", (question) => {
  const answers = [noBase, () => true].map((kept) =>
    brief(ask(nodeOf(listed(kept, "ip6")), question)),
  );

  expect(answers[0]).toBe(answers[1]);
  expect(ask(nodeOf(listed(among("services"), "ip6")), question).verdict).toBe("unknown");
  expect(ask(nodeOf(listed(() => true)), question).verdict).toBe("unknown");
});

it("knows the calls of earlier versions of kube-proxy", () => {
  const chains = ["endpoints-check", "firewall-check", "services", "masquerading"];
  const body: Record<string, string> = {
    services: "ip daddr . meta l4proto . th dport vmap @service-ips",
  };
  const map =
    "\tmap service-ips {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t}\n";
  const text = `table ip kube-proxy {\n${map}${chains.map((name) => `\tchain ${name} {\n\t\t${body[name] ?? ""}\n\t}\n`).join("")}}\n`;

  expect(ask(nodeOf(text), noService).verdict).toBe("pass");
});

const nat = (text: string): string =>
  text.slice(text.indexOf("*nat"), text.indexOf("COMMIT\n", text.indexOf("*nat")) + 7);

const rules = goldenDump("iptables", "iptables-save");

const grep = (pattern: RegExp, text = rules): string =>
  text
    .split("\n")
    .filter((line) => pattern.test(line))
    .join("\n");

const nft = goldenDump("iptables", "nft list ruleset");

/** A table of `nft list`, with one of its chains. */
const ofNft = (table: string, chain: string): string => {
  const own = nft.slice(nft.indexOf(`table ${table} {`));
  return `table ${table} {\n${new RegExp(`\\tchain ${chain} \\{.*?\\n\\t\\}\\n`, "s").exec(own)![0]}}\n`;
};

const verdicts = (dump: string, ...questions: string[]): string[] =>
  questions.map((question) => ask(nodeOf(dump), question).verdict);

it.each([
  ["rules of another Service's address", grep(/10\.96\.0\.11\/32/)],
  ["rules of one Service", grep(/lab\/ports/)],
  ["chains of endpoints", grep(/^-A KUBE-SEP-/)],
  ["chains of Services", grep(/^-A KUBE-SVC-/)],
  ["what is behind routing", grep(/^-A (KUBE-)?POSTROUTING/, nat(rules))],
  ["table nat", nat(rules)],
  ["table filter", rules.replace(nat(rules), "")],
  ["chain KUBE-SERVICES of nft", ofNft("ip nat", "KUBE-SERVICES")],
  ["table filter of nft", ofNft("ip filter", "FORWARD")],
  [
    "somebody else's table of nft",
    "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority 0; policy accept;\n\t}\n}\n",
  ],
])("does not say that a packet passes, by a dump of nothing but %s", (_, dump) => {
  expect(verdicts(dump, noService, "pod 10.244.1.9 > 10.96.0.30:80")).toEqual([
    "unknown",
    "unknown",
  ]);
});

it.each([
  ["iptables-save", rules],
  [
    "iptables -S",
    grep(/^-A/, nat(rules)).replace(
      /^/,
      "-P PREROUTING ACCEPT\n-P INPUT ACCEPT\n-P OUTPUT ACCEPT\n-P POSTROUTING ACCEPT\n-N KUBE-NODEPORTS\n",
    ) + "\n-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n",
  ],
])("says that a packet passes by a whole dump of %s", (_, dump) => {
  expect(verdicts(dump, "pod 10.244.1.9 > 9.9.9.9:80")).toEqual(["pass"]);
});

const texts = (parts: Partial<typeof ipvs>): string[] => Object.values(parts);

const lacking = (part: keyof typeof ipvs): string[] => {
  const { [part]: _, ...others } = ipvs;
  return texts(others);
};

const node = (dumps: readonly string[], question: string): Answer =>
  ask(nodeOf(...dumps), question);

it.each([
  ["sets", lacking("sets"), "add `ipset save`"],
  [
    "most virtual servers",
    texts({ ...ipvs, servers: ipvs.servers.split("\n").slice(0, 3).join("\n") }),
    "Set KUBE-CLUSTER-IP has the packet's destination",
  ],
  ["all virtual servers", lacking("servers"), "IPVS here, whose own table is in no dump"],
])("is not certain in IPVS mode without %s", (_, dumps, says) => {
  const { verdict, reason, notes } = node(dumps, plain);

  expect(verdict).toBe("unknown");
  expect([reason, ...notes].join("\n")).toContain(says);
});

const table = (name: string) => {
  const start = ipvs.rules.indexOf(`*${name}`);
  return ipvs.rules.slice(start, ipvs.rules.indexOf("COMMIT\n", start) + 7);
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

const toService = "outside 192.0.2.9 > 10.96.0.11:9153";
const halves = "dnat 10.244.1.2:9153=0.5 10.244.2.4:9153=0.5";

it("leaves the masquerade open where IPVS is dumped without iptables", () => {
  const answer = ask(nodeOf(ipvs.servers, ipvs.addresses), toService);

  expect(brief(answer)).toBe(`${halves} masquerade=unknown`);
  expect(answer.notes.join("\n")).toContain("are in no dump");
});

const bare = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";

it.each([
  ["the rules of iptables", [ipvs.rules, ipvs.sets, oneNode]],
  ["its interface", [bare, ipvs.addresses]],
])("says that IPVS's own table is missing where only %s show IPVS", (_, dumps) => {
  const answer = ask(nodeOf(...dumps), toService);

  expect([answer.mode, answer.verdict]).toEqual(["ipvs", "unknown"]);
  expect(answer.reason).toContain("add `ipvsadm -Sn`, or `cat /proc/net/ip_vs`");
});

it.each([
  ["nftables", [bare, listed(() => true)]],
  ["iptables", [bare.replace("[0:0]\n", "[0:0]\n:KUBE-SVC-A - [0:0]\n")]],
] as const)(
  "takes the interface that IPVS mode has left for no sign of it in %s mode",
  (mode, dumps) => {
    const answer = ask(nodeOf(...dumps, ipvs.addresses), "outside 192.0.2.9 > 192.0.2.1:9");

    expect([answer.mode, answer.verdict]).toEqual([mode, "pass"]);
  },
);

it("says that a packet passes to what is no address of the node, without IPVS's table too", () => {
  const answer = ask(nodeOf(bare, ipvs.addresses), "pod 10.244.1.9 > 9.9.9.9:80");

  expect(answer.verdict).toBe("pass");
});

it("takes nothing of IPVS mode from nft, which does not show the sets", () => {
  const answer = ask(nodeOf(ipvs.servers, ipvs.sets, ipvs.addresses, nftOfIptables), toService);

  expect(brief(answer)).toBe(`${halves} masquerade=unknown`);
  expect(answer.notes.join("\n")).toContain(
    "table ip nat is left out: nft does not show which sets",
  );
});

it.each([
  ["an IP family that no dump is of", table("nat"), "pod fd00::9 > [fd00::1]:80", "rules for IPv6"],
  ["a table filter alone", table("filter"), "pod 10.244.1.9 > 9.9.9.9:80", "Table nat"],
])("does not say that a packet passes from %s", (_, dump, question, reason) => {
  const answer = ask(nodeOf(dump, ipvs.sets, oneNode), question);

  expect(answer.verdict).toBe("unknown");
  expect(answer.reason).toContain(reason);
});

it("does not say that IPVS lets a port pass that it does not have, without table filter", () => {
  const answer = ask(
    nodeOf(table("nat"), ipvs.sets, ipvs.servers, ipvs.addresses),
    "pod 10.244.1.9 > 10.96.0.11:81",
  );

  expect(answer.verdict).toBe("unknown");
  expect(answer.reason).toContain("table filter");
});
