import { parse } from "../../read/ipset";
import { ask, brief, nodeOf, oneNode } from "../support/example";

const saved = `create clients hash:net family inet hashsize 1024 maxelem 65536
add clients 10.244.0.0/16
add clients 10.244.1.0/24 nomatch
add clients 10.244.1.9
`;
const listed = `Name: clients
Type: hash:net
Revision: 7
Header: family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1
Size in memory: 600
References: 1
Number of entries: 3
Members:
10.244.0.0/16
10.244.1.0/24 nomatch
10.244.1.9
`;

it("reads ipset save and ipset list alike", () => {
  expect([...parse(saved, "ipset", 1).sets]).toEqual([...parse(listed, "ipset", 1).sets]);
});

it("names file and line of what is cut off", () => {
  expect(() => parse(listed.replace("10.244.1.9\n", ""), "ipset", 10)).toThrow(
    /^ipset:10: expected 3 members of set clients, got 2; the dump is cut off/,
  );
  expect(() => parse(listed.slice(0, listed.indexOf("Header")), "ipset", 1)).toThrow(
    /expected the members of set clients/,
  );
  expect(() => parse("add clients 10.0.0.1", "ipset", 1)).toThrow(
    /`create clients` before its members/,
  );
});

describe("a packet is in a set", () => {
  const drops = (sets: string, match: string, question: string): string => {
    const filter = `*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -m set ${match} -j DROP\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n`;
    return brief(ask(nodeOf(filter, sets, oneNode), question));
  };
  const to = (destination: string) => `pod 10.244.1.9 > ${destination}`;

  it.each([
    ["pod 10.244.1.9 > 9.9.9.9:80", "drop"],
    ["pod 10.244.1.8 > 9.9.9.9:80", "pass"],
    ["pod 10.244.2.8 > 9.9.9.9:80", "drop"],
    ["outside 198.51.100.1 > 9.9.9.9:80", "pass"],
    ["outside - > 9.9.9.9:80", "unknown"],
  ])("by the closest of nested ranges: %s", (question, expected) => {
    expect(drops(saved, "--match-set clients src", question)).toBe(expected);
  });

  it.each([
    ["hash:ip,port", "9.9.9.9,tcp:80", "dst,dst", to("9.9.9.9:80"), "drop"],
    ["hash:ip,port", "9.9.9.9,tcp:80", "dst,dst", to("9.9.9.9:80/udp"), "pass"],
    ["hash:ip,port", "9.9.9.9,udp:80-90", "dst,dst", to("9.9.9.9:85/udp"), "drop"],
    ["hash:ip,port,net", "9.9.9.9,tcp:80,10.244.1.0/24", "dst,dst,src", to("9.9.9.9:80"), "drop"],
    ["hash:ip,port,net", "9.9.9.9,tcp:80,10.244.2.0/24", "dst,dst,src", to("9.9.9.9:80"), "pass"],
    ["bitmap:port", "80", "dst", to("9.9.9.9:80"), "drop"],
    ["bitmap:port", "80", "dst", to("9.9.9.9:80/sctp"), "pass"],
    ["bitmap:port", "80-82", "dst", to("9.9.9.9:83"), "pass"],
    ["hash:net,iface", "9.9.9.0/24,eth0", "dst,dst", to("9.9.9.9:80"), "unknown"],
    ["hash:ip,port", "9.9.9.9,tcp:80", "dst,src", to("9.9.9.9:80"), "unknown"],
  ])("%s %s by %s", (type, member, sides, question, expected) => {
    const range = type === "bitmap:port" ? "range 0-65535" : "family inet";
    expect(
      drops(
        `create some ${type} ${range}\nadd some ${member}\n`,
        `--match-set some ${sides}`,
        question,
      ),
    ).toBe(expected);
  });

  it("of sets, and not where the match is negated", () => {
    const sets = `${saved}create all list:set size 8\nadd all clients\n`;

    expect(drops(sets, "--match-set all src", "pod 10.244.2.8 > 9.9.9.9:80")).toBe("drop");
    expect(drops(sets, "! --match-set all src", "pod 10.244.2.8 > 9.9.9.9:80")).toBe("pass");
  });
});
