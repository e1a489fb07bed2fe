import { spawnSync } from "node:child_process";

import { DumpProblem } from "../../model/dump";
import type { Ruleset } from "../../model/nftables";
import { parse } from "../../read/nftables/parse";
import { readStatements } from "../../read/nftables/rule";
import { nodeDump } from "../../read/read-dumps";
import { trace } from "../../evaluate/trace";
import type { Statement } from "../../model/statement";
import { casesOf } from "../support/kube-proxy/cases";
import { goldenDump } from "../support/kube-proxy/golden-dumps";
import { describeUnless } from "../../../../tests/support/unless";

const read = (text: string): Ruleset => parse(text, "nft.txt", 11);

function problem(text: string): DumpProblem {
  try {
    read(text);
  } catch (error) {
    if (error instanceof DumpProblem) return error;
    throw error;
  }
  throw new Error("was taken for a whole listing");
}

const table = (...lines: string[]): string =>
  ["table ip t {", ...lines.map((line) => `\t${line}`), "}", ""].join("\n");

describe("a listing as text", () => {
  it("keeps rules as they are written, without their handles", () => {
    const { tables } = read(
      "table ip t { # handle 7\n\tchain c { # handle 3\n\t\ttcp dport 80 accept # handle 12\n\t}\n}\n",
    );
    expect(tables.get("ip t")?.chains.get("c")?.rules).toEqual([
      { text: "tcp dport 80 accept", line: 13 },
    ]);
  });

  it.each([
    ["-110", -110],
    ["dstnat - 10", -110],
    ["srcnat + 5", 105],
    ["raw", -300],
    ["filter", 0],
  ])("reads priority %s", (written, priority) => {
    const text = table(
      "chain c {",
      `\ttype filter hook forward priority ${written}; policy drop;`,
      "}",
    );
    expect(read(text).tables.get("ip t")?.chains.get("c")?.base).toEqual({
      type: "filter",
      hook: "forward",
      priority,
      policy: "drop",
    });
  });

  it.each([
    ["3h", 10800],
    ["10800s", 10800],
    ["1m30s", 90],
    ["1d1s", 86401],
  ])("reads timeout %s", (written, seconds) => {
    const text = table(
      "set s {",
      "\ttype ipv4_addr",
      "\tflags dynamic,timeout",
      `\ttimeout ${written}`,
      "}",
    );
    expect(read(text).tables.get("ip t")?.sets.get("s")?.timeoutSeconds).toBe(seconds);
  });

  it("reads elements over several lines, with comments and counters", () => {
    const text = table(
      "map m {",
      "\ttype ipv4_addr . inet_proto . inet_service : verdict",
      '\telements = { 10.0.0.1 . tcp . 80 comment "a, b : {c}" : goto x/y,',
      "\t\t     10.0.0.2 . udp . 53 counter packets 3 bytes 4 timeout 1m expires 30s : drop }",
      "}",
    );
    expect(read(text).tables.get("ip t")?.sets.get("m")?.elements()).toEqual([
      { key: ["10.0.0.1", "tcp", "80"], value: "goto x/y", comment: "a, b : {c}" },
      { key: ["10.0.0.2", "udp", "53"], value: "drop", comment: null },
    ]);
  });

  it("passes over objects that decide nothing", () => {
    const text = table(
      "counter n {",
      "\tpackets 0 bytes 0",
      "}",
      "flowtable f {",
      "\thook ingress priority filter",
      "\tdevices = { eth0 }",
      "}",
      "chain c {",
      "\taccept",
      "}",
    );
    expect([...read(text).tables.get("ip t")!.chains.keys()]).toEqual(["c"]);
  });

  it("keeps a brace, a semicolon and a hash in a comment as words", () => {
    const text = table("chain c {", '\taccept comment "a; {b} # c"', "}");
    expect(read(text).tables.get("ip t")?.chains.get("c")?.rules[0]?.text).toBe(
      'accept comment "a; {b} # c"',
    );
  });

  it("recognises tables of iptables-nft by nft's warning and by their built-in chains", () => {
    const chain =
      "chain FORWARD {\n\ttype filter hook forward priority filter; policy accept;\n}\n";
    expect(read(`table ip filter {\n${chain}}\n`).tables.get("ip filter")?.ofIptables).toBe(true);
    expect(read(`table inet filter {\n${chain}}\n`).tables.get("inet filter")?.ofIptables).toBe(
      false,
    );
    const warned =
      "# Warning: table ip6 other is managed by iptables-nft, do not touch!\ntable ip6 other {\n}\n";
    expect(read(warned).tables.get("ip6 other")?.ofIptables).toBe(true);
  });
});

describe("a listing that cannot be", () => {
  const whole = table(
    "chain c {",
    "\ttcp dport { 80, 443 } accept",
    "}",
    "set s {",
    "\ttype ipv4_addr",
    "\telements = { 10.0.0.1 }",
    "}",
  );

  it("is refused wherever it is cut off", () => {
    const lines = whole.trimEnd().split("\n");
    for (let count = 1; count < lines.length; count++) {
      const { line, expected, got, fix } = problem(`${lines.slice(0, count).join("\n")}\n`);
      expect({ line, got }).toEqual({ line: 10 + count, got: "the end of the text" });
      expect(expected).toContain("}");
      expect(fix).toContain("cut off");
    }
  });

  it("is refused where it is cut off within a line", () => {
    expect(problem("table ip t {\n\tchain c {\n\t\ttcp dport { 80, 4").line).toBe(13);
    expect(problem('table ip t {\n\tchain c {\n\t\taccept comment "ab').line).toBe(13);
  });

  it.each([
    ["tables", `${whole}${whole}`, "one table ip t", 20],
    ["chains", table("chain c {", "}", "chain c {", "}"), "one chain c in table ip t", 14],
    [
      "sets",
      table("set s {", "\ttype mark", "}", "set s {", "\ttype mark", "}"),
      "one set s in table ip t",
      15,
    ],
  ])("is refused when it has two %s of one name", (_, text, expected, line) => {
    expect(problem(text)).toMatchObject({ expected, line, file: "nft.txt" });
  });

  it("is refused when it begins with something else", () => {
    expect(problem("tabel ip t {\n}\n")).toMatchObject({ line: 11, got: "tabel ip t" });
  });

  it("is refused when a priority is none", () => {
    expect(
      problem(table("chain c {", "\ttype filter hook input priority soon; policy accept;", "}"))
        .line,
    ).toBe(13);
  });
});

describe("a listing as JSON", () => {
  const json = (...objects: object[]): string => JSON.stringify({ nftables: objects });
  const base = { family: "ip", table: "t" };

  it("is cut off, or has a name twice, and is refused", () => {
    const whole = json({ table: { family: "ip", name: "t" } });
    expect(problem(whole.slice(0, -9)).expected).toContain("JSON");
    expect(
      problem(json({ table: { family: "ip", name: "t" } }, { table: { family: "ip", name: "t" } }))
        .expected,
    ).toBe("one table ip t");
    expect(
      problem(json({ chain: { ...base, name: "c" } }, { chain: { ...base, name: "c" } })).expected,
    ).toBe("one chain c in table ip t");
    expect(problem(json({ rule: { ...base, chain: "c", handle: 4, expr: [] } })).got).toContain(
      "handle 4",
    );
  });
});

const said = (text: string): string => JSON.stringify(readStatements(text));

describe("spellings of one thing are read alike", () => {
  it.each([
    ["meta mark set meta mark | 0x00004000", "mark set mark or 0x4000"],
    ["meta mark set meta mark ^ 0x00004000", "meta mark set mark xor 0x4000"],
    ['iifname "eth0" accept', 'meta iifname "eth0" accept'],
    [
      "tcp flags & (fin | syn | rst | ack) == syn accept",
      "tcp flags & (fin,syn,rst,ack) == syn accept",
    ],
    [
      "dnat ip addr . port to numgen random mod 1 map { 0 : 10.0.0.1 . 80 }",
      "dnat ip to numgen random mod 1 offset 0 map { 0 : 10.0.0.1 . 80 }",
    ],
    ["meta l4proto tcp dnat ip to 10.0.0.1:80", "meta l4proto tcp dnat to 10.0.0.1:80"],
    ["reject with icmp type host-prohibited", "reject with icmp host-prohibited"],
    ["masquerade fully-random", "masquerade"],
    ["tcp dport vmap { 80 : accept }", "tcp dport vmap { 80: accept }"],
  ])("%s", (one, other) => {
    const numbers = (text: string): string => said(text).replace(/0x0*([0-9a-f]+)/g, "0x$1");
    expect(numbers(one)).toBe(numbers(other));
  });
});

describe("a rule", () => {
  const kinds = (text: string): string[] => readStatements(text).map(({ kind }) => kind);

  it("may count, log and remark without changing what it does", () => {
    const text =
      'counter packets 0 bytes 0 log prefix "a { b" level info flags all tcp dport 80 accept comment "c"';
    expect(kinds(text).filter((kind) => kind !== "noop")).toEqual(["match", "verdict"]);
  });

  it("keeps both addresses of a target in brackets apart from the port", () => {
    expect(readStatements("dnat ip6 to [fd00::1]:80")).toMatchObject([
      { nat: { address: { text: "fd00::1" }, port: { text: "80" } } },
    ]);
  });

  it("may say what nobody knows: that is kept as a doubt, and the rest is read", () => {
    expect(readStatements("frobnicate 7 counter packets 0 bytes 0 jump c")).toMatchObject([
      { kind: "undecidable", text: "frobnicate 7" },
      { kind: "noop" },
      { kind: "verdict", verdict: { kind: "jump", chain: "c" } },
    ]);
  });

  it.each([
    ["xt match recent counter packets 0 bytes 0 drop", ["undecidable", "noop", "verdict"]],
    ['xt match "comment" counter packets 0 bytes 0 drop', ["noop", "noop", "verdict"]],
    [
      "meta l4proto tcp # match-set KUBE-LOOP-BACK dst,dst,src counter packets 0 bytes 0 accept",
      ["match", "undecidable", "noop", "verdict"],
    ],
    ['counter packets 0 bytes 0 xt target "SECMARK"', ["noop", "untraceable"]],
  ])("of iptables-nft shows what nft has no words for: %s", (text, expected) => {
    expect(kinds(text)).toEqual(expected);
  });

  it("may have a person's note behind its end", () => {
    expect(kinds("tcp dport 80 accept # for the web")).toEqual(["match", "verdict"]);
  });

  it("reads masks of flags in both ways that nft has written them", () => {
    expect(readStatements("tcp flags syn / fin,syn,rst,ack accept")[0]).toMatchObject({
      left: { op: "&", right: { text: "fin,syn,rst,ack" } },
      right: { elements: [{ key: ["syn"] }] },
    });
  });
});

/** A ruleset loaded into a network namespace of its own, and how nft lists it there. */
function listed(ruleset: string, ...options: string[]): string {
  const command = `nft -f - && nft ${options.join(" ")} list ruleset`;
  const { stdout, stderr, status } = spawnSync("unshare", ["-rn", "sh", "-c", command], {
    input: ruleset,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

const available = spawnSync("unshare", ["-rn", "nft", "list", "ruleset"]).status === 0;
const whereNftIs = describeUnless(
  available ? undefined : "it takes nft and the right to make a network namespace",
);

const ways = [[], ["-a"], ["-n"], ["-s"], ["-y"], ["-S"], ["-n", "-a"], ["-j"]] as const;

/** What becomes of every packet of the golden cases, and by which chains. */
function answers(text: string): unknown[] {
  const node = nodeDump([
    { file: "nft", text },
    { file: "ip", text: goldenDump("nftables", "ip address") },
  ]);
  return casesOf("nftables").map(({ packet }) => {
    const { verdict, endpoints, masquerade, affinitySeconds, steps } = trace(node, packet);
    return [verdict, endpoints, masquerade, affinitySeconds, steps.map(({ chain }) => chain)];
  });
}

whereNftIs("what nft lists of kube-proxy's table", () => {
  const ruleset = goldenDump("nftables", "nft list ruleset");
  let expected: unknown[];
  beforeAll(() => (expected = answers(ruleset)));

  it.each(ways.map((way) => [way]))("with %j is answered as what was loaded", (way) => {
    expect(answers(listed(ruleset, ...way))).toEqual(expected);
  });
});

/** Rules of all kinds, as people and other programs write them. */
const rules = [
  'ct state { invalid, new } counter accept comment "a; {b}"',
  "ct state established,related accept",
  'iifname "eth0" oifname != "cali*" accept',
  'iifname . tcp dport vmap { "eth0" . 80 : accept }',
  "meta mark and 0xff != 0x1 accept",
  "tcp flags & (fin | syn | rst | ack) == syn accept",
  "ip saddr . tcp dport { 10.0.0.1 . 80, 10.1.0.0/16 . 90-100 } accept",
  "meta mark set tcp dport map { 80 : 0x1, 443 : 0x2 }",
  "ct mark set meta mark",
  "meta mark set mark and 0xfffffff0 xor 0x18",
  "numgen random mod 10 < 3 drop",
  "jhash ip saddr . tcp dport mod 4 seed 0x5 vmap { 0-1 : accept, 2-3 : drop }",
  "fib daddr . iif type local accept",
  "fib saddr . iif oif missing drop",
  "ct original ip daddr 10.0.0.1 accept",
  "reject with icmp type host-prohibited",
  "limit rate over 10/second burst 5 packets drop",
  "ip protocol != { 6, 17 } accept",
  'log prefix "x y: " level info flags all tcp dport 22 accept',
  'iifname { "eth#0", "a;b" } accept',
  'dup to 10.0.0.1 device "lo"',
  'ct helper set "ftp"',
  "quota over 25 mbytes drop",
  "ct count over 20 drop",
  "meter m { ip saddr limit rate 10/second } accept",
  "update @clients { ip saddr } accept",
];

const undecidable = /^(limit|quota|ct count|meter) /;

whereNftIs("what nft lists of a rule", () => {
  let text: (readonly Statement[])[];
  let json: (readonly Statement[])[];
  beforeAll(() => {
    const objects =
      '\tct helper ftp {\n\t\ttype "ftp" protocol tcp\n\t}\n\tset clients {\n\t\ttype ipv4_addr\n\t\tflags dynamic\n\t}\n';
    const chain = `\tchain c {\n\t\ttype filter hook forward priority 0;\n${rules.join("\n")}\n\t}\n`;
    const read = (...options: string[]): (readonly Statement[])[] => {
      const listing = listed(`table ip t {\n${objects}${chain}}\n`, ...options);
      const { chains } = parse(listing, "nft", 1).tables.get("ip t")!;
      return chains.get("c")!.rules.map((rule) => readStatements(rule.text));
    };
    text = read();
    json = read("-j");
  });

  it.each(rules.map((rule, at) => [rule, at] as const))(
    "is read whole, as text and as JSON alike: %s",
    (rule, at) => {
      expect(text[at]!.filter(({ kind }) => kind === "undecidable")).toHaveLength(
        undecidable.test(rule) ? 1 : 0,
      );
      // JSON has no quotes around names, and other details of what cannot be decided.
      const same = (said: readonly Statement[]): string =>
        JSON.stringify(said.map((each) => (each.kind === "undecidable" ? each.why : each))).replace(
          /\\"/g,
          "",
        );
      expect(same(json[at]!)).toBe(same(text[at]!));
    },
  );
});
