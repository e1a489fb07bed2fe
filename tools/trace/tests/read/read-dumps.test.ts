import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../../tests/support/test-folder";
import { nodeDump, readDumps } from "../../read/read-dumps";
import { sectionsOf } from "../../read/sections";

const nat = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j ACCEPT\nCOMMIT\n";
const filter = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n";
const set = (member: string) =>
  `create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP ${member}\n`;
const listedSet = `Name: KUBE-CLUSTER-IP
Type: hash:ip,port
Header: family inet hashsize 1024 maxelem 65536
Number of entries: 1
Members:
10.96.0.2,tcp:80
`;
const servers = "-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.244.1.6:80 -m -w 1\n";
const nft = (chain: string) => `table ip kube-proxy {\n\tchain ${chain} {\n\t\taccept\n\t}\n}\n`;
const eth0 = (address: string, kind = "inet") =>
  `2: eth0: <UP> mtu 1500\n    ${kind} ${address} scope global\n`;

const files = (texts: Record<string, string>) =>
  nodeDump(Object.entries(texts).map(([file, text]) => ({ file, text })));

describe("a folder", () => {
  let folder: string;
  beforeEach(() => {
    folder = testFolder();
  });
  const write = (name: string, text: string | Buffer): void =>
    writeFileSync(join(folder, name), text);

  it("is read by what the files say, whatever they are called", () => {
    write("of course.docx", nat);
    write("a b.ipset", servers);
    write(".DS_Store", "\u0000");

    const { iptables4, ipvs, ipsets } = readDumps([folder]);

    expect([...(iptables4?.tables.keys() ?? [])]).toEqual(["nat"]);
    expect(ipvs?.servers.size).toBe(1);
    expect(ipsets).toBeNull();
  });

  it.each([
    ["with Windows' line ends", Buffer.from(nat.replaceAll("\n", "\r\n"))],
    ["with a byte order mark", Buffer.from(`\ufeff${nat}`)],
    ["as PowerShell writes it", Buffer.from(`\ufeff${nat}`, "utf16le")],
  ])("may have text %s", (_, bytes) => {
    write("dump", bytes);

    expect(
      readDumps([folder]).iptables4?.tables.get("nat")?.chains.get("PREROUTING")?.rules,
    ).toHaveLength(1);
  });

  it("may have an empty file, which says that nothing is known from it", () => {
    write("a", nat);
    write("b", "\n");

    expect(readDumps([folder]).notes).toContain(
      `${join(folder, "b")} is empty, so nothing is known from it.`,
    );
  });

  it.each([
    [
      "has nothing but a file that is no dump",
      () => write("notes.md", "\n# Notes\n"),
      /notes\.md:2: expected the output of iptables-save, .*got "# Notes"/,
    ],
    ["is empty", () => undefined, /expected dumps in .*, got an empty folder/],
    [
      "has only folders",
      () => mkdirSync(join(folder, "worker-1")),
      /only folders: name the one of the node, such as .*worker-1/,
    ],
    ["has only empty files", () => write("a", ""), /something in it, got none: .*a is empty/],
  ])("is refused when it %s", (_, given, message) => {
    given();

    expect(() => readDumps([folder])).toThrow(message);
  });
});

describe("what is no dump", () => {
  let folder: string;
  beforeEach(() => {
    folder = testFolder();
    writeFileSync(join(folder, "nat"), nat);
  });

  it.each([
    [
      "ip link",
      "2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq state UP\n    link/ether 22:76:01:f0:71:9f\n",
    ],
    ["ip rule", "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n"],
    ["ip neigh", "192.0.2.1 dev eth0 lladdr 22:76:01:f0:71:9f REACHABLE\n"],
    [
      "conntrack -L",
      "tcp      6 431999 ESTABLISHED src=10.0.0.4 dst=10.96.0.1 sport=1 dport=443 [ASSURED] mark=0\n",
    ],
    ["sysctl -a", "net.ipv4.conf.all.forwarding = 1\nnet.ipv4.conf.all.rp_filter = 2\n"],
  ])("is passed over with a note, and named, where it is of %s", (command, text) => {
    const file = join(folder, "other");
    writeFileSync(file, text);

    for (const paths of [[folder], [join(folder, "nat"), file]]) {
      const { iptables4, notes } = readDumps(paths);

      expect(iptables4?.tables.size).toBe(1);
      expect(notes).toEqual([
        `${file} is passed over: nothing in the output of \`${command}\` decides where a packet goes.`,
      ]);
    }
  });

  it("is passed over with a note in a folder, and refused where it is named itself", () => {
    const file = join(folder, "notes.md");
    writeFileSync(file, "\n# Notes\n");

    expect(readDumps([folder]).notes).toEqual([
      `${file} is passed over: it is not recognised as a dump.`,
    ]);
    expect(() => readDumps([folder, file])).toThrow(/notes\.md:2: expected the output of/);
  });
});

it("finds several commands' outputs in one file", () => {
  const { iptables4, ipsets, ipvs } = files({
    a: `# iptables-save\n${nat}$ ipset save\n${set("10.96.0.1,tcp:80")}$ ipvsadm -Sn\n${servers}`,
  });

  expect([iptables4?.tables.size, ipsets?.sets.size, ipvs?.servers.size]).toEqual([1, 1, 1]);
});

it("puts tables of several files together", () => {
  expect([...(files({ a: nat, b: filter }).iptables4?.tables.keys() ?? [])]).toEqual([
    "nat",
    "filter",
  ]);
});

it("puts pieces of one nftables table together", () => {
  const { nftables } = files({ a: nft("services"), b: nft("masquerading") });

  expect([...(nftables?.tables.get("ip kube-proxy")?.chains.keys() ?? [])]).toEqual([
    "services",
    "masquerading",
  ]);
});

it("puts IPv4 and IPv6 addresses of one interface together", () => {
  const { addresses } = files({ a: eth0("10.0.0.4/24"), b: eth0("fd00::4/64", "inet6") });

  expect(addresses?.interfaces[0]?.addresses.map(({ address }) => address)).toEqual([
    "10.0.0.4",
    "fd00::4",
  ]);
});

it.each([
  ["addresses", { a: eth0("10.0.0.4/24"), b: eth0("10.0.0.5/24") }, "interface eth0"],
  ["tables", { a: nat, b: nat.replace("ACCEPT\nCOMMIT", "DROP\nCOMMIT") }, "table nat"],
])("does not take the %s of two nodes for one node's", (_, dumps, what) => {
  expect(() => files(dumps)).toThrow(
    new RegExp(`^b:1: expected ${what} once.* than in a:1; give the dumps of one node`),
  );
});

it("takes the more exact of two dumps of one thing, and says so", () => {
  const { ipsets, notes } = files({ listed: listedSet, saved: set("10.96.0.1,tcp:80") });

  expect(ipsets?.sets.get("KUBE-CLUSTER-IP")?.members).toEqual(["10.96.0.1,tcp:80"]);
  expect(notes).toEqual(["saved is taken, not listed, which says the same less exactly."]);
});

it("takes ipvsadm's lists before the kernel's own, which gives times in ticks", () => {
  const heading = "Prot LocalAddress:Port Scheduler Flags\n";
  const kernel =
    heading +
    "TCP  0A600001:01BB rr persistent 2700000 FFFFFFFF\n  -> 0A000005:192B      Masq    1      0          0\n";
  const listed =
    heading + "TCP  10.96.0.1:443 rr persistent 10800\n  -> 10.0.0.5:6443  Masq  1  0  0\n";

  const { ipvs, notes } = files({ kernel, listed });

  expect(ipvs?.servers.get("tcp 10.96.0.1 443")?.persistentSeconds).toBe(10800);
  expect(notes).toEqual(["listed is taken, not kernel, which says the same less exactly."]);
});

it("takes the same twice for once", () => {
  expect(files({ a: set("10.96.0.1,tcp:80"), b: set("10.96.0.1,tcp:80") }).ipsets?.sets.size).toBe(
    1,
  );
});

it("does not choose between two equally exact dumps that contradict each other", () => {
  const contradicting = { a: set("10.96.0.1,tcp:80"), b: set("10.96.0.2,tcp:80") };

  expect(() => files(contradicting)).toThrow(
    /^b:1: expected set KUBE-CLUSTER-IP once, or the same again, got it with something else than in a:1/,
  );
});

it("says where a last line may be cut off, since a shorter port is a port too", () => {
  const cutOff = set("10.96.0.1,tcp:443").slice(0, -2);

  expect(files({ a: cutOff }).notes).toEqual([
    "a ends without a line end, so its last line may be cut off.",
  ]);
  expect(files({ a: nat.trimEnd() }).notes).toEqual([]);
});

it("does not take ip link for a list of all addresses", () => {
  const link =
    "7: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n    link/ether 22:76:01:f0:71:9f brd ff:ff:ff:ff:ff:ff\n";

  expect(files({ a: link + nat }).addresses).toBeNull();
});

describe("a file of several outputs", () => {
  const listing = `Chain KUBE-SERVICES (2 references)
target     prot opt source               destination
KUBE-SVC-A  tcp  --  anywhere             10.96.0.41           tcp dpt:http`;

  const save = `# Generated by iptables-save v1.8.9
*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -j ACCEPT
COMMIT`;

  const ipset = `Name: KUBE-CLUSTER-IP
Type: hash:ip,port
Header: family inet hashsize 1024 maxelem 65536
Members:
10.96.0.41,tcp:80`;

  const ipvs = `Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.0.41:80 rr
  -> 10.244.1.6:80                Masq    1      0          0`;

  const nft = `table ip kube-proxy {
	chain services {
		comment "braces in quotes: }{"
	}
}`;

  const address = `1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever`;

  const json = `{"nftables": [
  {"metainfo": {"version": "1.0.6"}}
]}`;

  const outputs = { listing, save, ipset, ipvs, nft, address, json };
  const texts = (text: string): string[] => sectionsOf(text).map((section) => section.text);

  it.each(Object.entries(outputs))("takes a %s by itself whole", (_, output) => {
    expect(texts(`${output}\n`)).toEqual([output]);
  });

  it.each(Object.entries(outputs))(
    "takes a %s out of prose, with the line it begins in",
    (_, output) => {
      const article = `Let's see the rules now.\n\n$ command\n${output}\n\nAs we know, all rules are processed in order.\n`;

      expect(sectionsOf(article)).toEqual([
        { kind: expect.any(String) as string, text: output, firstLine: 4, endsWithinLine: false },
      ]);
    },
  );

  it.each([
    ["iptables", save],
    ["iptables", listing],
    ["iptables", "[12:720] -A KUBE-SERVICES -j ACCEPT"],
    ["iptables", "-N KUBE-SVC-A"],
    ["ipset", ipset],
    ["ipset", "create KUBE-X hash:ip"],
    ["ipvs", ipvs],
    ["ipvs", "-A -t 10.96.0.1:443 -s rr"],
    ["ipvs", "TCP  0A60000A:0035 wrr persistent 150000 FFFFFF00"],
    ["nftables", nft],
    [
      "nftables",
      "# Warning: table ip nat is managed by iptables-nft, do not touch!\ntable ip nat {\n}",
    ],
    ["nftables", json],
    ["addresses", address],
    ["addresses", "eth0@if7         UP             192.0.2.1/24 2001:db8::1/64"],
    ["addresses", "2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0"],
    ["addresses", '[{"ifindex":1,"ifname":"lo","addr_info":[]}]'],
    ["routes", "default via 192.0.2.254 dev eth0"],
    ["routes", '[{"dst":"default","gateway":"192.0.2.254","dev":"eth0"}]'],
  ])("sees by the first lines that an output is of %s: %j", (kind, output) => {
    expect(sectionsOf(`${output}\n`).map((section) => section.kind)).toEqual([kind]);
  });

  it("takes the outputs of several commands apart", () => {
    const pasted = Object.values(outputs)
      .map((output) => `root@worker:~# command\n${output}`)
      .join("\n");

    expect(texts(pasted)).toEqual(Object.values(outputs));
  });

  it("takes off quoting, indentation and bullets", () => {
    const indented = listing.replace(/^/gm, "    ").replace("    KUBE-SVC-A", "  • KUBE-SVC-A");

    expect(texts(indented)).toEqual([listing]);
    expect(texts(save.replace(/^/gm, "> "))).toEqual([save]);
  });

  it("reads a chain on over the blank lines that an editor put between its rules", () => {
    expect(texts(listing.replaceAll("\n", "\n\n"))).toEqual([listing.replaceAll("\n", "\n\n")]);
  });

  it("leaves what stands between *table and COMMIT to the parser, sense or not", () => {
    const odd = save.replace("-A PREROUTING", "no rule at all\n-A PREROUTING");

    expect(texts(odd)).toEqual([odd]);
  });

  it("gives the parser the line in which a file ends", () => {
    expect(texts(`${ipset}\n10.96.0.4`)).toEqual([`${ipset}\n10.96.0.4`]);
  });

  it("does not take the next prompt for a line that was cut off", () => {
    expect(texts(`${ipset}\n[root@worker ~]#`)).toEqual([ipset]);
  });

  it("finds nothing in prose", () => {
    expect(sectionsOf("# Notes\n\nThe table is in the kitchen.\nAll rules -> are off.\n")).toEqual(
      [],
    );
  });
});
