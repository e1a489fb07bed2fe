import { trace } from "../../evaluate/trace";
import type { Answer, Packet } from "../../model/packet";
import { parse } from "../../read/nftables/parse";
import * as rules from "../../read/nftables/rule";
import { nothing } from "../support/example";
import { kubeProxyTable } from "../support/nftables-example";

const packet: Packet = {
  from: "pod",
  source: "10.9.9.9",
  destination: "172.30.0.41",
  port: 80,
  protocol: "tcp",
};

function ask(others: string, asked: Partial<Packet> = {}): Answer {
  const nftables = parse(kubeProxyTable("1.33") + others, "nft.txt", 1);
  const dump = { ...nothing, nftables };
  return trace(dump, { ...packet, ...asked });
}

/** Another program's table with one base chain. */
const table = (
  hook: string,
  rules: readonly string[],
  { family = "inet", type = "filter", priority = "0", policy = "accept" } = {},
): string =>
  `table ${family} others {\n\tchain c {\n\t\ttype ${type} hook ${hook} priority ${priority}; policy ${policy};\n${rules.map((rule) => `\t\t${rule}\n`).join("")}\t}\n}\n`;

const verdict = (...about: Parameters<typeof table>): string => ask(table(...about)).verdict;

describe("tables of others are walked as what they are", () => {
  it("drops by a policy, and lets through what a rule accepts before it", () => {
    expect(verdict("forward", [], { policy: "drop" })).toBe("drop");
    expect(
      verdict("forward", ["ct state new ip daddr 10.180.0.0/16 accept"], { policy: "drop" }),
    ).toBe("dnat");
  });

  it("after DNAT sees the endpoint, before it the Service", () => {
    expect(verdict("prerouting", ["ip daddr 172.30.0.41 drop"], { priority: "dstnat - 1" })).toBe(
      "drop",
    );
    expect(verdict("prerouting", ["ip daddr 172.30.0.41 drop"], { priority: "dstnat + 1" })).toBe(
      "dnat",
    );
    expect(verdict("forward", ["ip daddr 10.180.0.0/16 drop"])).toBe("drop");
  });

  it("takes chains of type nat at the place that nat has in the hook, whatever their own priority", () => {
    const [early, filter] = ["dnat ip to 10.180.0.9", "ip daddr 172.30.0.41 drop"];
    const text = `table ip a {\n\tchain n {\n\t\ttype nat hook prerouting priority -200; policy accept;\n\t\tip daddr 172.30.0.41 ${early!}\n\t}\n\tchain f {\n\t\ttype filter hook prerouting priority -150; policy accept;\n\t\t${filter!}\n\t}\n}\n`;
    expect(ask(text).verdict).toBe("drop");
  });

  it("notes a DNAT that came first and is not kube-proxy's", () => {
    const answer = ask(
      table("prerouting", ["ip daddr 172.30.0.41 dnat ip to 198.51.100.9:443"], {
        type: "nat",
        priority: "-101",
      }),
    );
    expect(answer.verdict).toBe("pass");
    expect(answer.notes.join(" ")).toContain("198.51.100.9:443");
  });

  it.each([
    ["a range", "10.180.0.4-10.180.0.7", 4],
    ["a prefix", "10.180.0.4/31", 2],
  ])("divides the connections that kube-proxy's own table sends to %s", (_, range, count) => {
    const rule = `ip daddr 172.30.9.9 tcp dport 80 dnat ip to ${range}`;
    const text = kubeProxyTable("1.33").replace("chain services {", `$&\n\t\t${rule}`);
    const dump = { ...nothing, nftables: parse(text, "nft.txt", 1) };

    const { verdict, endpoints, notes } = trace(dump, { ...packet, destination: "172.30.9.9" });

    expect(verdict).toBe("dnat");
    expect(endpoints).toEqual(
      Array.from({ length: count }, (_, at) => ({
        address: `10.180.0.${4 + at}:80`,
        probability: 1 / count,
      })),
    );
    expect(notes.join(" ")).toContain("the shares are those of many clients");
  });

  it("keeps IPv4 and IPv6 apart in an inet table", () => {
    expect(
      verdict("forward", [
        "ip6 saddr ::/0 drop",
        "meta nfproto ipv6 drop",
        "ip6 daddr != fd00::/8 drop",
      ]),
    ).toBe("dnat");
    expect(verdict("forward", ["meta nfproto ipv4 drop"])).toBe("drop");
  });

  it("does not call a dormant table", () => {
    const text = table("forward", [], { policy: "drop" });
    expect(ask(text.replace("{\n", "{\n\tflags dormant\n")).verdict).toBe("dnat");
  });

  it("does not ask rules of another protocol, or about established connections", () => {
    expect(
      verdict("forward", [
        "udp dport != 53 drop",
        "ct state established,related drop",
        "ct state ! new drop",
        "icmp type echo-request drop",
      ]),
    ).toBe("dnat");
  });

  it("accepts only for its own chain", () => {
    expect(
      ask(
        table("forward", ["accept"], { priority: "-200" }) +
          table("forward", ["drop"]).replace("others", "more"),
      ).verdict,
    ).toBe("drop");
  });

  it("returns to the caller after a jump, and to the caller's caller after a goto", () => {
    const chains = (word: string): string =>
      `table ip t {\n\tchain c {\n\t\ttype filter hook forward priority 0; policy accept;\n\t\tjump a\n\t\tdrop\n\t}\n\tchain a {\n\t\t${word} b\n\t\tip daddr 0.0.0.0/0 accept\n\t}\n\tchain b {\n\t\tcontinue\n\t}\n}\n`;
    expect(ask(chains("jump")).verdict).toBe("dnat");
    expect(ask(chains("goto")).verdict).toBe("drop");
  });

  it("shares connections out over the addresses of a map, by weight", () => {
    const map =
      "dnat ip addr . port to numgen random mod 4 map { 0-2 : 10.180.0.1 . 80, 3 : 10.180.0.2 . 80 }";
    const text = kubeProxyTable("1.33").replace(/numgen random mod 3 vmap .*/, map);
    const dump = { ...nothing, nftables: parse(text, "nft.txt", 1) };
    expect(trace(dump, packet).endpoints).toEqual([
      { address: "10.180.0.1:80", probability: 0.75 },
      { address: "10.180.0.2:80", probability: 0.25 },
    ]);
  });
});

it("walks what iptables-nft keeps, where there is no dump of iptables", () => {
  const nat =
    "table ip nat {\n\tchain PREROUTING {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tmeta l4proto tcp ip daddr 192.0.2.1  tcp dport 443 counter packets 0 bytes 0 dnat to 10.0.0.1:8443\n\t}\n}\n";
  const answer = ask(nat, { destination: "192.0.2.1", port: 443 });
  expect(answer.notes.join(" ")).toContain("10.0.0.1:8443");
});

/**
 * What nft(8) says of a match for a new TCP connection of a pod, 10.9.9.9, to a Service with
 * endpoints in 10.180.0.0/16.
 */
describe.each([
  [
    "drop",
    [
      "ip saddr 10.9.9.9",
      "ip saddr { 10.9.9.0/24, 10.8.0.1 }",
      "ip saddr 10.9.9.1-10.9.9.9",
      "ip protocol tcp",
      "meta l4proto { tcp, udp }",
      "meta l4proto 6",
      "tcp flags & (fin | syn | rst | ack) == syn",
      "tcp flags syn / fin,syn,rst,ack",
      "ct state new",
      "ct state { established, new }",
      "ct status dnat",
      "ct direction original",
      "ct original ip daddr 172.30.0.41",
      "ct original proto-dst 80",
      "ct original protocol tcp",
      "ct mark 0x0",
      "meta mark set 0x5 meta mark 0x5",
      "meta mark set meta mark | 0x10 meta mark & 0x10 == 0x10",
      "meta nfproto ipv4",
      "meta protocol ip",
      'iifname != "lo"',
      "fib daddr type != local",
      "fib saddr . iif oif exists",
      "ip daddr @networks",
      'counter packets 1 bytes 2 log prefix "x drop " level warn',
      "dup to 10.0.0.1",
    ],
  ],
  [
    "dnat",
    [
      "ip saddr != 10.9.9.9",
      "ip saddr 10.9.9.1-10.9.9.8",
      "ip protocol udp",
      "ip6 nexthdr tcp",
      "meta l4proto != tcp",
      "tcp flags & (fin | syn) == (fin | syn)",
      "tcp flags ! syn",
      "ct state != new",
      "ct state invalid",
      "ct direction reply",
      "ct original proto-dst 81",
      "ct mark & 0x1 == 0x1",
      "meta mark & 0x1 == 0x1",
      "meta mark set meta mark ^ 0x10 meta mark & 0x10 == 0x0",
      "meta protocol ip6",
      "meta pkttype broadcast",
      'iifname "lo"',
      "iif lo",
      "fib daddr type local",
      "fib saddr type local",
      "fib saddr . iif oif missing",
      "ip daddr != @networks",
      "ip frag-off & 0x1fff != 0",
      "meta skuid 0",
    ],
  ],
])("ends with %s where a rule drops", (expected, matches) => {
  it.each(matches)("%s", (match) => {
    const networks =
      "\tset networks {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\telements = { 10.180.0.0/16 }\n\t}\n";
    const text = table("forward", [`${match} drop`]).replace("{\n", `{\n${networks}`);

    expect(ask(text).verdict).toBe(expected);
  });
});

describe("what the dump does not decide is said", () => {
  it("a source that is not given, where a rule asks for it", () => {
    const outside = { from: "outside", source: null, destination: "5.6.7.8" } as const;
    expect(ask("", outside)).toMatchObject({
      verdict: "unknown",
      reason: expect.stringContaining("chain firewall-ABCDEFGH-ns5/sticky/tcp/http") as string,
    });
    expect(ask("", { ...outside, from: "pod" }).verdict).toBe("drop");
    expect(ask("", { ...outside, destination: "172.30.0.41" }).masquerade).toBe(true);
  });

  it.each([
    ["a rate limit", "limit rate 10/second drop"],
    ["an unknown match", "frobnicate 7 drop"],
    ["a match of iptables that nft cannot write", "xt match recent drop"],
    ["a source port", "tcp sport 1024-2000 drop"],
  ])("%s", (_, rule) => {
    const answer = ask(table("forward", [rule]));
    expect(answer.verdict).toBe("unknown");
    expect(answer.reason).not.toBe("");
  });

  it("but only where it makes a difference", () => {
    expect(
      verdict("forward", [
        "limit rate 10/second accept",
        "frobnicate 7 counter",
        "xt match recent accept",
      ]),
    ).toBe("dnat");
  });

  it("a set, a chain or a map that is not in the dump", () => {
    expect(verdict("forward", ["ip saddr @strangers drop"])).toBe("unknown");
    expect(verdict("forward", ["jump nowhere"])).toBe("unknown");
    expect(verdict("forward", ["ip daddr vmap @nowhere"])).toBe("unknown");
  });

  it("chains that call each other in a circle", () => {
    const text =
      "table ip t {\n\tchain c {\n\t\ttype filter hook forward priority 0; policy accept;\n\t\tjump a\n\t}\n\tchain a {\n\t\tgoto a\n\t}\n}\n";
    expect(ask(text)).toMatchObject({
      verdict: "unknown",
      reason: expect.stringContaining("circle") as string,
    });
  });

  it("what a program or a proxy takes", () => {
    expect(verdict("forward", ["queue num 1"])).toBe("unknown");
    expect(
      verdict("prerouting", ["tcp dport 80 tproxy ip to 127.0.0.1:8080"], { priority: "mangle" }),
    ).toBe("unknown");
  });
});

const ip = (first: number, at: number): string =>
  `10.${String(first)}.${String(at >> 8)}.${String(at & 255)}`;

/** kube-proxy's table with many more Services of many endpoints. */
function manyServices(services: number, endpoints: number): string {
  const numbers = Array.from({ length: services }, (_, at) => at);
  const targets = Array.from({ length: endpoints }, (_, at) => `${at} : ${ip(128, at)} . 8080`);
  const pick = `numgen random mod ${endpoints} map { ${targets.join(", ")} }`;
  const elements = numbers.map((at) => `${ip(96, at)} . tcp . 80 : goto service-${at}/, `);
  const chains = numbers.map(
    (at) => `\tchain service-${at}/ {\n\t\tmeta l4proto tcp dnat ip to ${pick}\n\t}\n`,
  );
  return kubeProxyTable("1.33")
    .replace("172.30.0.41 . tcp", `${elements.join("")}$&`)
    .replace("\tchain services {", `${chains.join("")}$&`);
}

/** How many rules are looked at, how many steps are shown, and the endpoints' shares. */
function walk(services: number, endpoints: number) {
  const nftables = parse(manyServices(services, endpoints), "nft.txt", 1);
  const dump = { ...nothing, nftables };
  const read = jest.spyOn(rules, "statementsOf");
  const answer = trace(dump, { ...packet, from: "outside", destination: ip(96, services - 1) });
  const visited = new Set(read.mock.calls.map(([rule]) => rule)).size;
  read.mockRestore();
  const shares = answer.endpoints.map(({ probability }) => probability);
  return { visited, steps: answer.steps.length, shares };
}

it("looks at no more rules when there are more Services", () => {
  expect(walk(20_000, 2)).toEqual(walk(2, 2));
});

it("looks at no more rules, and reports no more steps, when a Service has more endpoints", () => {
  const [few, many] = [walk(1, 10), walk(1, 1_000)];
  expect([many.visited, many.steps]).toEqual([few.visited, few.steps]);
  expect(many.shares).toHaveLength(1_000);
  expect(many.shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
});
