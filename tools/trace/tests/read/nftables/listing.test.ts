import { spawnSync } from "node:child_process";

import type { Answer, Packet } from "../../../model/packet";
import { parse } from "../../../read/nftables/parse";
import { readStatements } from "../../../read/nftables/rule";
import { trace } from "../../../evaluate/trace";
import type { Statement } from "../../../model/statement";
import { nothing } from "../../support/example";
import { kubeProxyTable, type Version } from "../../support/nftables-example";
import { describeUnless } from "../../../../../tests/support/unless";

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

const ways = [["-a"], ["-n"], ["-s"], ["-y"], ["-S"], ["-n", "-a"], ["-j"]] as const;

const packets = ["10.9.9.9", "10.180.0.1", "203.0.113.9", "203.0.113.200", null].flatMap((source) =>
  [
    "172.30.0.41:80",
    "172.30.0.41:81",
    "172.30.0.45:80",
    "172.30.0.46:80",
    "1.2.3.4:80",
    "5.6.7.8:80",
    "192.168.0.2:30003",
    "198.51.100.1:443",
  ].map((to): Packet => ({
    from: source?.startsWith("203") === true ? "outside" : source === null ? "node" : "pod",
    source,
    destination: to.split(":")[0]!,
    port: Number(to.split(":")[1]),
    protocol: "tcp",
  })),
);

function answers(text: string): unknown[] {
  const nftables = parse(text, "nft.txt", 1);
  const shown = ({ verdict, endpoints, masquerade, affinitySeconds, steps }: Answer): unknown => ({
    verdict,
    endpoints,
    masquerade,
    affinitySeconds,
    steps: steps.map(({ chain }) => chain),
  });
  return packets.map((packet) => shown(trace({ ...nothing, nftables }, packet)));
}

whereNftIs("what nft lists of kube-proxy's table", () => {
  describe.each<Version>(["1.29", "1.33", "1.34"])("of %s", (version) => {
    const ruleset = kubeProxyTable(version);
    let plain: unknown[];
    beforeAll(() => (plain = answers(listed(ruleset))));

    it.each(ways.map((way) => [way]))("answers alike with %j and without", (way) => {
      expect(answers(listed(ruleset, ...way))).toEqual(plain);
    });
  });

  it("answers as what was loaded", () => {
    const ruleset = kubeProxyTable("1.34");
    expect(answers(listed(ruleset))).toEqual(answers(ruleset));
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
