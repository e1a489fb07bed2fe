import type { Answer, Packet } from "../../model/packet";
import { parse } from "../../read/nftables/parse";
import { trace } from "../../evaluate/trace";
import { nothing } from "../support/example";
import { kubeProxyTable, type Version } from "../support/nftables-example";
import { installed, output } from "../../../../tests/support/tools";
import {
  intervalOf,
  type Kind,
  kindOf,
  known,
  numberOf,
  type Subject,
  undecidable,
} from "../../evaluate/rules/match/kinds";
import { find } from "../../evaluate/rules/match/match";
import { readElements } from "../../read/nftables/expression";

/** That of today is in the golden dumps. */
const versions: readonly Version[] = ["1.29", "1.33", "1.34"];

/** The node's addresses, as `ip addr` prints them. */
const addresses = {
  file: "ip.txt",
  interfaces: [
    { name: "lo", addresses: [{ address: "127.0.0.1", prefix: 8 }] },
    { name: "eth0", addresses: [{ address: "192.168.0.2", prefix: 24 }] },
  ],
};

function ask(version: Version, from: Packet["from"], source: string | null, to: string): Answer {
  const [destination = "", port] = to.split(":");
  const nftables = parse(kubeProxyTable(version), "nft.txt", 1);
  const packet: Packet = { from, source, destination, port: Number(port), protocol: "tcp" };
  return trace({ ...nothing, nftables, addresses }, packet);
}

const shown = ({ verdict, endpoints, masquerade }: Answer): string =>
  [verdict, endpoints.map((each) => each.address).join(" "), String(masquerade)].join(" | ");

describe.each(versions)("kube-proxy %s in nftables mode", (version) => {
  it("sends a pod to each endpoint with the same chance, unmasqueraded", () => {
    const { verdict, endpoints, masquerade, mode } = ask(
      version,
      "pod",
      "10.9.9.9",
      "172.30.0.41:80",
    );
    expect({ verdict, masquerade, mode }).toEqual({
      verdict: "dnat",
      masquerade: false,
      mode: "nftables",
    });
    expect(endpoints.map((each) => each.address)).toEqual([
      "10.180.0.1:80",
      "10.180.0.2:80",
      "10.180.0.3:8080",
    ]);
    endpoints.forEach((each) => expect(each.probability).toBeCloseTo(1 / 3, 9));
  });

  it("masquerades who is not a pod on the way to a cluster IP", () => {
    expect(ask(version, "outside", "203.0.113.9", "172.30.0.41:80").masquerade).toBe(true);
    expect(ask(version, "node", null, "172.30.0.41:80").masquerade).toBe(true);
  });

  it("masquerades a pod that reaches itself, and only then", () => {
    const { masquerade, endpoints } = ask(version, "pod", "10.180.0.1", "172.30.0.41:80");
    expect(masquerade).toBe("unknown");
    expect(endpoints.map((each) => each.masquerade)).toEqual([true, false, false]);
  });

  it("rejects what has no endpoints, at cluster and external IPs", () => {
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.46:80").verdict).toBe("reject");
    expect(ask(version, "node", null, "172.30.0.46:80").verdict).toBe("reject");
    expect(ask(version, "outside", "203.0.113.9", "1.2.3.6:80").verdict).toBe("reject");
  });

  it("drops clients from outside where the policy is Local and no endpoint is", () => {
    expect(ask(version, "outside", "203.0.113.9", "1.2.3.4:80").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.9", "192.168.0.2:30001").verdict).toBe("drop");
  });

  it("takes a pod past a Local policy without masquerading it", () => {
    expect(shown(ask(version, "pod", "10.9.9.9", "1.2.3.4:80"))).toBe(
      "dnat | 10.180.1.2:80 | false",
    );
  });

  it("masquerades everybody at a NodePort with policy Cluster", () => {
    expect(shown(ask(version, "outside", "203.0.113.9", "192.168.0.2:30003"))).toBe(
      "dnat | 10.180.0.3:80 | true",
    );
    expect(shown(ask(version, "pod", "10.9.9.9", "192.168.0.2:30003"))).toBe(
      "dnat | 10.180.0.3:80 | true",
    );
  });

  it("has no NodePorts on 127.0.0.1", () => {
    expect(ask(version, "node", null, "127.0.0.1:30003").verdict).toBe("pass");
  });

  it("drops who is outside the source ranges of a load balancer, but not at its NodePort", () => {
    expect(ask(version, "outside", "203.0.113.9", "5.6.7.8:80").verdict).toBe("dnat");
    expect(ask(version, "outside", "203.0.113.200", "5.6.7.8:80").verdict).toBe("drop");
    expect(ask(version, "node", "192.168.0.2", "5.6.7.8:80").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.200", "192.168.0.2:30005").verdict).toBe("dnat");
  });

  it("recognises session affinity by the set that remembers clients", () => {
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.45:80").affinitySeconds).toBe(10800);
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.41:80").affinitySeconds).toBeNull();
  });

  it("passes what is no Service", () => {
    expect(ask(version, "pod", "10.9.9.9", "198.51.100.1:443").verdict).toBe("pass");
  });
});

it.each([
  ["1.29", "pass"],
  ["1.33", "reject"],
] as const)("an undefined port of a cluster IP: kube-proxy %s %ss it", (version, verdict) => {
  expect(ask(version, "pod", "10.9.9.9", "172.30.0.41:81").verdict).toBe(verdict);
  expect(ask(version, "node", null, "172.30.0.41:81").verdict).toBe(verdict);
});

it("drops what goes to a cluster IP that no Service has", () => {
  expect(ask("1.33", "pod", "10.9.9.9", "172.30.7.7:80").verdict).toBe("drop");
});

it.each([
  ["1.33", "drop"],
  ["1.34", "dnat"],
] as const)(
  "the node to a Local load balancer without local endpoints: %s by the priorities of %s",
  (version, verdict) => {
    expect(ask(version, "node", "192.168.0.2", "1.2.3.4:80").verdict).toBe(verdict);
  },
);

it("a client that the affinity set of an endpoint holds goes there", () => {
  const set = "affinity-ABCDEFGH-ns5/sticky/tcp/http__10.180.0.5/80 {";
  const text = kubeProxyTable("1.33").replace(
    `${set}\n`,
    `${set}\n\t\telements = { 10.9.9.9 timeout 3h expires 2h }\n`,
  );
  const packet: Packet = {
    from: "pod",
    source: "10.9.9.9",
    destination: "172.30.0.45",
    port: 80,
    protocol: "tcp",
  };
  const nftables = parse(text, "nft.txt", 1);
  expect(shown(trace({ ...nothing, nftables, addresses }, packet))).toBe(
    "dnat | 10.180.0.5:80 | false",
  );
  const anybody = trace({ ...nothing, nftables, addresses }, { ...packet, source: null });
  expect(anybody.endpoints).toHaveLength(2);
  expect(anybody.notes.join(" ")).toMatch(/not in affinity-ABCDEFGH/);
});

const address = (text: string): Subject => ({
  is: "value",
  value: intervalOf("address", text)!.low,
  text,
});

const asked = (
  text: string,
  kinds: readonly Kind[],
  subjects: readonly Subject[],
): (string | null)[] =>
  find(readElements(text), kinds, subjects).map(
    ({ element }) => element.value ?? element.key.join(" . "),
  );

describe("a set with prefixes and ranges", () => {
  const text =
    "{ 10.0.0.0/8 : a, 11.0.0.1-11.0.0.5 : b, 11.0.0.9 : c, 192.0.2.0/31 : d, fd00::/64 : e }";

  it.each([
    ["10.255.255.255", ["a"]],
    ["11.0.0.0", []],
    ["11.0.0.5", ["b"]],
    ["11.0.0.6", []],
    ["11.0.0.9", ["c"]],
    ["192.0.2.1", ["d"]],
    ["192.0.2.2", []],
  ])("finds %s in %j", (ip, expected) => {
    expect(asked(text, ["address"], [address(ip)])).toEqual(expected);
  });

  it("finds an IPv6 address", () => {
    expect(
      asked(text.replace(/10\.[^:]*: a, .*(?=fd00)/, ""), ["address"], [address("fd00::7")]),
    ).toEqual(["e"]);
  });

  it("has an element for everything else", () => {
    const withRest = "{ 10.0.0.0/8 : a, * : rest }";
    expect(asked(withRest, ["address"], [address("10.1.1.1")])).toEqual(["a"]);
    expect(asked(withRest, ["address"], [address("172.16.0.1")])).toEqual(["rest"]);
  });
});

it("a concatenation is found by all of its parts, ranges and names among them", () => {
  const text =
    '{ 10.0.0.1 . tcp . 80 : a, 10.0.0.1 . "udp" . 53-60 : b, 10.1.0.0/16 . 6 . "http" : c }';
  const kinds: Kind[] = ["address", "protocol", "port"];
  expect(asked(text, kinds, [address("10.0.0.1"), known(6), known(80)])).toEqual(["a"]);
  expect(asked(text, kinds, [address("10.0.0.1"), known(17), known(55)])).toEqual(["b"]);
  expect(asked(text, kinds, [address("10.1.9.9"), known(6), known(80)])).toEqual(["c"]);
  expect(asked(text, kinds, [address("10.0.0.1"), known(17), known(80)])).toEqual([]);
});

it("a number that is picked meets each element with its share", () => {
  const numgen: Subject = { is: "numgen", mode: "random", mod: 100, offset: 5 };
  const found = find(readElements("{ 5-54 : a, 55-79 : b, 80-200 : c }"), ["number"], [numgen]);
  expect(found.map(({ holds }) => holds)).toEqual([
    { share: 0.5 },
    { share: 0.25 },
    { share: 0.25 },
  ]);
});

it("what is not known may be any element that the known parts allow", () => {
  const text = "{ 10.0.0.1 . 80 : a, 10.0.0.2 . 80 : b, 10.0.0.3 . 81 : c }";
  expect(asked(text, ["address", "port"], [undecidable("which address"), known(80)])).toEqual([
    "a",
    "b",
  ]);
});

/** Symbols of a selector and their values, as the real nft knows them. */
const byNft = (selector: string): [string, number][] =>
  [
    ...output(installed("nft", "nftables"), ["describe", ...selector.split(" ")]).matchAll(
      /^\t([\w.-]+)\s+(0x[0-9a-f]+|\d+)$/gm,
    ),
  ].map(([, name, value]) => [name!, Number(value)]);

const ours = (selector: string, symbols: readonly [string, number][]) =>
  symbols.map(([name]) => [name, numberOf(kindOf(selector), name)]);

const whole = ["ct state", "ct status", "ct direction", "tcp flags", "fib daddr type"];
for (const selector of [...whole, "meta pkttype", "meta nfproto"]) {
  it(`knows each symbol of ${selector} by nft's own value`, () => {
    const symbols = byNft(selector);

    expect(symbols.length).toBeGreaterThan(1);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}

for (const selector of ["meta l4proto", "meta protocol"]) {
  it(`knows no symbol of ${selector} by another value than nft's`, () => {
    const symbols = byNft(selector).filter(([name]) => numberOf(kindOf(selector), name) !== null);

    expect(symbols.length).toBeGreaterThan(3);
    expect(ours(selector, symbols)).toEqual(symbols);
  });
}
