import { remarkOn, sharesOf } from "../evaluate/ipvs";
import { parse as parseSets } from "../read/ipset";
import { parse } from "../read/ipvs";
import { ask, brief, nodeOf, oneNode } from "./support/example";
import { ipvs } from "./support/kube-proxy/golden-dumps";

const listed = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.0.10:53 wrr persistent 600 mask 255.255.255.0
  -> 10.244.0.3:53                Masq    3      0          0
  -> 10.244.0.4:53                Route   1      4          9
UDP  [fd00:96::10]:53 mh (mh-fallback,mh-port)
  -> [fd00::3]:53                 Tunnel  1      0          0
FWM  5 IPv6 rr
  -> [fd00::4]:0                  Masq    1      0          0
`;
const saved = `-A -t 10.96.0.10:53 -s wrr -p 600 -M 255.255.255.0
-a -t 10.96.0.10:53 -r 10.244.0.3:53 -m -w 3
-a -t 10.96.0.10:53 -r 10.244.0.4:53 -g -w 1
-A -u [fd00:96::10]:53 -s mh -b mh-fallback,mh-port
-a -u [fd00:96::10]:53 -r [fd00::3]:53 -i -w 1
-A -f 5 -6 -s rr
-a -f 5 -6 -r [fd00::4]:0 -m -w 1
`;
const withoutLines = (text: string) =>
  [...parse(text, "ipvsadm", 1).servers].map(([key, { line: _line, ...server }]) => [key, server]);

it("reads ipvsadm -Sn and ipvsadm -ln alike", () => {
  expect(withoutLines(saved)).toEqual(withoutLines(listed));
  expect(withoutLines(listed)[0]).toEqual([
    "tcp 10.96.0.10 53",
    {
      protocol: "tcp",
      address: "10.96.0.10",
      port: 53,
      family: 4,
      scheduler: "wrr",
      flags: [],
      persistentSeconds: 600,
      persistencePrefix: 24,
      realServers: [
        { address: "10.244.0.3", port: 53, forward: "masq", weight: 3 },
        { address: "10.244.0.4", port: 53, forward: "route", weight: 1 },
      ],
    },
  ]);
});

it("reads the kernel's own list as ipvsadm's, but for flags, and takes its ticks for seconds", () => {
  const kernel = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A60000A:0035 wrr persistent 150000 FFFFFF00
  -> 0AF40003:0035      Masq    3      0          0
  -> 0AF40004:0035      Route   1      4          9
UDP  [fd00:0096:0000:0000:0000:0000:0000:0010]:0035 mh persistent 10800000 80000000
  -> [fd00:0000:0000:0000:0000:0000:0000:0003]:0035      Tunnel  1      0          0
FWM  00004000 rr
  -> 0AF40004:0000      Masq    1      0          0
`;
  const asKernelHas = listed
    .replace("(mh-fallback,mh-port)", "persistent 10800 mask 128")
    .replace("FWM  5 IPv6 rr\n  -> [fd00::4]:0 ", "FWM  16384 rr\n  -> 10.244.0.4:0 ");
  const ticks = [150_000, 10_800_000, undefined];

  expect(withoutLines(kernel)).toEqual(
    withoutLines(asKernelHas).map(([key, server], at) => [
      key,
      { ...Object(server), persistentTicks: ticks[at] },
    ]),
  );
});

it("reads ipvsadm's ports as decimal also behind an address that fills all of IPv6", () => {
  const long = "2001:1db8:1000:2000:3000:4000:5000:6000";
  const servers = parse(listed.replace("fd00:96::10]:53", `${long}]:8080`), "ipvsadm", 1).servers;

  expect([...servers.keys()]).toContain(`udp ${long} 8080`);
});

it("names file and line of what cannot be", () => {
  expect(() => parse(listed.replace("10.96.0.10:53", "kube-dns:domain"), "ipvsadm", 3)).toThrow(
    /^ipvsadm:6: expected an address and a port .*got kube-dns:domain; take the dump with `ipvsadm -ln`/,
  );
  expect(() => parse(listed.replace("Route   1 ", "Rou"), "ipvsadm", 1)).toThrow(/^ipvsadm:6: /);
  expect(() => parse("-a -t 10.96.0.10:53 -r 10.244.0.3:53 -m -w 1", "ipvsadm", 1)).toThrow(
    /before its real servers/,
  );
});

describe("the share of each real server", () => {
  const server = (scheduler: string, ...weights: number[]) => ({
    ...parse(saved, "ipvsadm", 1).servers.get("tcp 10.96.0.10 53")!,
    scheduler,
    realServers: weights.map((weight, at) => ({
      address: `10.244.0.${at}`,
      port: 80,
      forward: "masq" as const,
      weight,
    })),
  });
  const shares = (scheduler: string, ...weights: number[]) =>
    sharesOf(server(scheduler, ...weights)).map(({ server: real, probability }) => [
      real.address.slice(-1),
      Number(probability.toFixed(4)),
    ]);

  it.each(["rr", "lc", "dh"])(
    "is the same under %s, whichever weight above zero it has",
    (scheduler) => {
      expect(shares(scheduler, 3, 1)).toEqual([
        ["0", 0.5],
        ["1", 0.5],
      ]);
    },
  );

  it.each(["wrr", "wlc", "sh", "mh", "sed", "nq", "lblc", "lblcr", "twos"])(
    "is by weight under %s",
    (scheduler) => {
      expect(shares(scheduler, 3, 1)).toEqual([
        ["0", 0.75],
        ["1", 0.25],
      ]);
    },
  );

  it.each(["fo", "ovf"])("is all of it for the highest weight under %s", (scheduler) => {
    expect(shares(scheduler, 1, 3, 2)).toEqual([["1", 1]]);
  });

  it.each(["rr", "wrr", "lc", "sh"])("is nothing for a drained one under %s", (scheduler) => {
    expect(shares(scheduler, 0, 1, 1)).toEqual([
      ["1", 0.5],
      ["2", 0.5],
    ]);
    expect(shares(scheduler, 0, 0)).toEqual([]);
  });

  it("is remarked upon where more than weights decides", () => {
    expect(["rr", "wrr", "fo"].map((scheduler) => remarkOn(server(scheduler, 1)))).toEqual([
      null,
      null,
      null,
    ]);
    expect(remarkOn(server("sh", 1))).toContain("hash of the source");
    expect(remarkOn(server("wlc", 1))).toContain("number of connections");
    expect(remarkOn(server("quic", 1))).toContain("not a known one");
  });
});

const savedSets = `create clients hash:net family inet hashsize 1024 maxelem 65536
add clients 10.244.0.0/16
add clients 10.244.1.0/24 nomatch
add clients 10.244.1.9
`;
const listedSets = `Name: clients
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
  expect([...parseSets(savedSets, "ipset", 1).sets]).toEqual([
    ...parseSets(listedSets, "ipset", 1).sets,
  ]);
});

it("names file and line of what is cut off", () => {
  expect(() => parseSets(listedSets.replace("10.244.1.9\n", ""), "ipset", 10)).toThrow(
    /^ipset:10: expected 3 members of set clients, got 2; the dump is cut off/,
  );
  expect(() => parseSets(listedSets.slice(0, listedSets.indexOf("Header")), "ipset", 1)).toThrow(
    /expected the members of set clients/,
  );
  expect(() => parseSets("add clients 10.0.0.1", "ipset", 1)).toThrow(
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
    expect(drops(savedSets, "--match-set clients src", question)).toBe(expected);
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
    const sets = `${savedSets}create all list:set size 8\nadd all clients\n`;

    expect(drops(sets, "--match-set all src", "pod 10.244.2.8 > 9.9.9.9:80")).toBe("drop");
    expect(drops(sets, "! --match-set all src", "pod 10.244.2.8 > 9.9.9.9:80")).toBe("pass");
  });
});

/** Besides where packets go, which golden.test.ts has. */
describe("a node in IPVS mode", () => {
  const asked = (question: string, changes: Partial<typeof ipvs> = {}) =>
    ask(nodeOf(...Object.values({ ...ipvs, ...changes })), question);
  const service = "10.96.0.11:9153";
  const halves = "10.244.1.2:9153=0.5 10.244.2.4:9153=0.5";

  it.each([
    ["to a cluster IP, masqueraded", service, `dnat ${halves} masquerade=true`],
    ["to a load balancer that has ranges", "203.0.113.13:80", "drop"],
  ])("takes the node's own packet %s, whatever its address", (_, to, expected) => {
    expect(brief(asked(`node - > ${to}`))).toBe(expected);
  });

  it("takes a forwarded client's packet through input, IPVS, output and postrouting", () => {
    const base = asked(`outside 192.0.2.9 > ${service}`)
      .steps.filter(({ chain, table }) => table === "ipvs" || /^[A-Z]+$/.test(chain))
      .map(({ table, chain }) => (table === "ipvs" ? table : `${table} ${chain}`));

    expect([...new Set(base)]).toEqual([
      "nat PREROUTING",
      "filter INPUT",
      "ipvs",
      "filter OUTPUT",
      "nat POSTROUTING",
    ]);
  });

  it.each([
    ["203.0.113.12:80", true],
    ["192.0.2.1:30082", true],
    ["192.0.2.1:30081", false],
  ])("warns where the policy is Local and no endpoint is: %s", (to, warns) => {
    const notes = asked(`outside 192.0.2.9 > ${to}`).notes.join("\n");

    expect(notes.includes("none of the endpoints is on this node")).toBe(warns);
  });

  it.each([
    ["rr", "gets no new ones"],
    ["sh", "whose hash gives it are rejected"],
    ["sh -b sh-fallback", "gets no new ones"],
  ])("says what becomes of a drained real server with %s", (scheduler, expected) => {
    const servers = ipvs.servers
      .replace(`${service} -s rr`, `${service} -s ${scheduler}`)
      .replace(`${service} -r 10.244.1.2:9153 -m -w 1`, `${service} -r 10.244.1.2:9153 -m -w 0`);
    const answer = asked(`pod 10.244.1.9 > ${service}`, { servers });

    expect(brief(answer)).toBe("dnat 10.244.2.4:9153=1 masquerade=false");
    expect(answer.notes.join("\n")).toContain(expected);
  });

  it("masquerades the node by its virtual source where kube-proxy knows no pods' range, and no pod", () => {
    const rules = ipvs.rules.replace(
      /! -s 10\.244\.0\.0\/16 (.*KUBE-CLUSTER-IP) dst,dst/,
      "$1 src,dst",
    );
    const masquerade = (from: string) => asked(`${from} > ${service}`, { rules }).masquerade;

    expect(["node -", "pod -", "pod 10.244.1.9"].map(masquerade)).toEqual([true, false, false]);
  });

  it("sends to a real server of its own without postrouting, so unmasked whatever the mark", () => {
    expect(brief(asked("outside 192.0.2.9 > 10.96.0.1:443"))).toBe(
      "dnat 192.0.2.1:6443=1 masquerade=false",
    );
  });

  it("serves a firewall mark before an address", () => {
    const rules = ipvs.rules.replace(
      "-A KUBE-SERVICES -s",
      "-A PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 8443 -j MARK --set-xmark 0x7/0xffffffff\n$&",
    );
    const marked =
      "-A -f 7 -s wrr\n-a -f 7 -r 10.244.1.5:0 -m -w 3\n-a -f 7 -r 10.244.2.5:0 -m -w 1\n";
    const servers = ipvs.servers + marked;

    expect(brief(asked("outside 192.0.2.9 > 192.0.2.1:8443", { rules, servers }))).toBe(
      "dnat 10.244.1.5:8443=0.75 10.244.2.5:8443=0.25 masquerade=false",
    );
  });
});
