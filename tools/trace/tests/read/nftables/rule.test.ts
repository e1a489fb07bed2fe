import { readStatements } from "../../../read/nftables/rule";

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
