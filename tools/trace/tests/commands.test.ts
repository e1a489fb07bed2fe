import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../tests/support/test-folder";
import { svg } from "../commands/svg";
import { readBatch } from "../commands/trace";
import { coloursFor, plain, share, words } from "../commands/words";
import { countsOf } from "../model/dump";
import { destination, origin, serviceName, source } from "../model/packet";
import { answerOf, nodeOf } from "./support/example";

it("shows the hooks in the order in which the kernel calls them, with the rules below each", () => {
  const lines = words(answerOf(2), plain).split("\n");

  const titles = lines.filter((line) => / · /.test(line));
  expect(titles).toEqual(["prerouting · nat", "forward · filter", "postrouting · nat"]);
  expect(lines).toContain("  KUBE-SERVICES  -d 10.96.0.41/32 -j KUBE-SVC-A");
  expect(lines).toContain("    → goes on in KUBE-SVC-A");
});

it("finds the hook in the name of a base chain of nftables, and in no chain of a Service", () => {
  const table = "ip kube-proxy";
  const steps = [
    { table, chain: "nat-prerouting", rule: "jump services", effect: "goes on" },
    { table, chain: "service-AAAAAAAA-default/output/tcp/", rule: "numgen", effect: "picks" },
    { table, chain: "filter-forward", rule: "ct state new", effect: "goes on" },
  ];

  const text = words(answerOf(1, { mode: "nftables", steps }), plain);

  expect(text.match(/^.* · .*$/gm)).toEqual([
    "prerouting · ip kube-proxy",
    "forward · ip kube-proxy",
  ]);
});

it("shows the hook from kube-proxy's own chain where the built-in one is not shown", () => {
  const steps = [{ table: "nat", chain: "KUBE-POSTROUTING", rule: "-j RETURN", effect: "returns" }];

  expect(words(answerOf(1, { steps }), plain)).toContain("postrouting · nat");
});

it("gives each endpoint its share, and says what differs between them", () => {
  const endpoints = [
    { address: "10.244.1.6:80", probability: 0.5, masquerade: true },
    { address: "10.244.2.4:8080", probability: 0.5, masquerade: false },
  ];

  const text = words(answerOf(2, { endpoints, masquerade: "unknown" }), plain);

  expect(text).toMatch(/^ {2}10\.244\.1\.6:80 {4}1\/2 +50\.00 % {2}masqueraded$/m);
  expect(text).toMatch(/^ {2}10\.244\.2\.4:8080 {2}1\/2 +50\.00 % {2}not masqueraded$/m);
  expect(text).toContain("the source is masqueraded for some endpoints");
});

it("ends with the verdict and its reason", () => {
  const text = words(answerOf(0, { verdict: "reject", reason: "It has no endpoints." }), plain);

  expect(text).toMatch(/\n\nreject {2}It has no endpoints\.\n$/);
});

it("says how long a client stays with its endpoint", () => {
  expect(words(answerOf(1, { affinitySeconds: 10_800 }), plain)).toContain("for 10800 s");
});

it("has colours on a terminal only, and none where NO_COLOR asks for none", () => {
  expect(coloursFor({ isTTY: true }, {}).bold("x")).not.toBe("x");
  expect(coloursFor({}, {}).bold("x")).toBe("x");
  expect(coloursFor({ isTTY: true }, { NO_COLOR: "1" }).bold("x")).toBe("x");
  expect(coloursFor({ isTTY: true }, { TERM: "dumb" }).bold("x")).toBe("x");
});

it.each([
  [1, "all"],
  [1 / 3, "1/3"],
  [2 / 7, "2/7"],
  [1 / 5000, "1/5000"],
  [0.33333333349, "1/3"],
  [0.1234, "12.34 %"],
  [0.00123, "0.12 %"],
])("says %d as %s", (probability, said) => {
  expect(share(probability)).toBe(said);
});

it("does not call a share a third that is only near one", () => {
  expect(share(0.3334)).toBe("33.34 %");
});

const heightOf = (picture: string): number => Number(/ height="([\d.]+)"/.exec(picture)?.[1]);
const bottoms = (picture: string): number[] =>
  [...picture.matchAll(/<rect [^>]*y="([\d.]+)"[^>]*height="([\d.]+)"/g)].map(
    ([, y, height]) => Number(y) + Number(height),
  );

it.each([1, 3, 50])(
  "draws a line and a box for each of %d endpoints, all within the picture",
  (count) => {
    const picture = svg(answerOf(count));

    expect(picture.match(/<path d="M\d+ [\d.]+C/g)).toHaveLength(count);
    for (const { address } of answerOf(count).endpoints)
      expect(picture).toContain(`>${address}</text>`);
    expect(Math.max(...bottoms(picture))).toBeLessThan(heightOf(picture));
  },
);

it("says how many rules a crowded hook has beyond those it shows", () => {
  expect(svg(answerOf(50))).toContain(">and 46 more rules</text>");
});

it.each(["drop", "reject", "pass", "unknown"] as const)(
  "draws where a packet ends by %s",
  (verdict) => {
    const picture = svg(answerOf(0, { verdict }));

    expect(picture.match(/<path d="M\d+ [\d.]+C/g)).toHaveLength(1);
    expect(picture).toContain(`>${verdict}</text>`);
  },
);

it("stays XML whatever a comment in a rule says", () => {
  const rule = '-m comment --comment "<a & b>\u0007"';
  const steps = [{ table: "nat", chain: "PREROUTING", rule, effect: rule }];

  const picture = svg(answerOf(1, { steps }));

  expect(picture).toContain("&lt;a &amp; b&gt;");
  expect(picture).not.toMatch(/<a |&(?!\w+;)/);
  expect(picture).not.toContain("\u0007");
});

describe("a batch of queries", () => {
  let folder: string;
  beforeEach(() => {
    folder = testFolder();
  });

  function read(text: string) {
    const file = join(folder, "queries.json");
    writeFileSync(file, text);
    return readBatch(file);
  }

  it("reads a query a line, with pod as the usual origin", () => {
    const batch = `{"to":"10.96.0.10:53/udp"}

{"from":"outside","source":"2001:db8::7","to":"[fd00::a]:80"}
{"from":"node","source":null,"to":"10.96.0.10:53"}
`;

    expect(read(batch)).toEqual([
      { from: "pod", source: null, destination: "10.96.0.10", port: 53, protocol: "udp" },
      { from: "outside", source: "2001:db8::7", destination: "fd00::a", port: 80, protocol: "tcp" },
      { from: "node", source: null, destination: "10.96.0.10", port: 53, protocol: "tcp" },
    ]);
  });

  it.each([
    ['{"to":"10.96.0.10:53"', "expected one query as JSON"],
    ['["10.96.0.10:53"]', "expected one query as JSON"],
    ['{"to":"10.96.0.10:53","form":"pod"}', 'got "form"'],
    ["{}", "to: expected text"],
    ['{"to":"10.96.0.10:53","from":"moon"}', "one of pod, node, outside"],
    ['{"to":"10.96.0.10:53","source":7}', "source: expected text"],
    ['{"to":"[fd00::a]:80","source":"10.0.0.1"}', "an IPv6 address"],
  ])("names the line of a bad query: %s", (line, expected) => {
    const batch = `{"to":"10.96.0.10:53"}\n${line}\n`;

    expect(() => read(batch)).toThrow("queries.json: line 2: ");
    expect(() => read(batch)).toThrow(expected);
  });

  it("says that there is no such file", () => {
    expect(() => readBatch(join(folder, "gone"))).toThrow(
      /^batch: expected a file of queries, got .*gone/,
    );
  });
});

const count = (...texts: string[]) => countsOf(nodeOf(...texts));

const nat =
  "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n";
const nft = (family: string, name: string) => `table ${family} ${name} {
	set cluster-ips {
		type ipv4_addr
		elements = { 10.96.0.1, 10.96.0.10 }
	}

	chain services {
		ip daddr @cluster-ips accept
	}
}
`;

it("counts both IP families together", () => {
  const nat6 = nat.replace("*nat", "# Generated by ip6tables-save\n*nat");

  expect(count(nat, nat6)).toMatchObject({ chains: 4, rules: 2 });
});

it("counts sets and their members, ipset's and nftables'", () => {
  const ipset =
    "create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP 10.96.0.1,tcp:443\n";

  expect(count(ipset, nft("ip", "kube-proxy"))).toMatchObject({ sets: 2, members: 3 });
});

it("counts IPVS services and their destinations", () => {
  const ipvs =
    "-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.244.1.6:80 -m -w 1\n-a -t 10.96.0.1:80 -r 10.244.2.4:80 -m -w 1\n";

  expect(count(ipvs)).toEqual({
    chains: null,
    rules: null,
    sets: null,
    members: null,
    services: 1,
    destinations: 2,
  });
});

it("counts once what iptables-nft shows both as iptables and as nftables", () => {
  expect(count(nat, nft("ip", "nat"))).toMatchObject({ chains: 2, rules: 1 });
  expect(count(nat, nft("ip", "kube-proxy"))).toMatchObject({ chains: 3, rules: 2 });
});

it.each([
  ["10.96.0.10:53", { destination: "10.96.0.10", port: 53, protocol: "tcp" }],
  ["10.96.0.10:53/udp", { destination: "10.96.0.10", port: 53, protocol: "udp" }],
  ["10.96.0.10:53/SCTP", { destination: "10.96.0.10", port: 53, protocol: "sctp" }],
  ["[FD00:0::A]:443/tcp", { destination: "fd00::a", port: 443, protocol: "tcp" }],
])("reads %s", (text, expected) => {
  expect(destination(text)).toEqual(expected);
});

it.each([
  ["10.96.0.10", "ADDRESS:PORT"],
  ["10.96.0.300:80", '"10.96.0.300" is no address'],
  ["web:80", '"web" is no address, and names are not resolved'],
  ["fd00::a:443", "an IPv6 address in brackets"],
  ["[10.96.0.10]:80", '"10.96.0.10" is no address'],
  ["[fe80::1%eth0]:80", "is no address"],
  ["10.96.0.10:0", "a port from 1 to 65535"],
  ["10.96.0.10:65536", "a port from 1 to 65535"],
  ["10.96.0.10:80/icmp", "one of /tcp, /udp, /sctp"],
])("refuses %s, and says what was expected", (text, expected) => {
  expect(() => destination(text)).toThrow(expected);
  expect(() => destination(text)).toThrow(`got "${text}"`);
});

const v4 = destination("10.96.0.10:53");

it("takes a source only of the destination's family", () => {
  expect(source("10.244.1.6", v4)).toBe("10.244.1.6");
  expect(source("[fd00::1]", destination("[fd00::a]:80"))).toBe("fd00::1");
  expect(() => source("fd00::1", v4)).toThrow("an IPv4 address, since the destination is one");
  expect(() => source("10.244.0.0/16", v4)).toThrow("without a prefix length");
});

it("knows three origins", () => {
  expect(origin("outside")).toBe("outside");
  expect(() => origin("inside")).toThrow("one of pod, node, outside");
});

it("reads the name of a Service, with or without a port", () => {
  expect(serviceName("kube-system/kube-dns:dns-tcp")).toEqual({
    namespace: "kube-system",
    name: "kube-dns",
    port: "dns-tcp",
  });
  expect(serviceName("default/web")).toEqual({ namespace: "default", name: "web", port: null });
  expect(() => serviceName("web")).toThrow("NAMESPACE/NAME");
});
