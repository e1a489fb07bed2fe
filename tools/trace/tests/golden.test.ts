import type { Answer } from "../model/packet";
import { casesOf } from "./support/kube-proxy/cases";
import { goldenDumps, sessionText } from "./support/kube-proxy/golden-dumps";
import { nodeDump } from "../read/read-dumps";
import { trace } from "../evaluate/trace";

const modes = ["iptables", "nftables", "ipvs"] as const;
type Mode = (typeof modes)[number];

/** The dumps of a mode by the commands that fit. */
const dumps = (mode: Mode, commands: RegExp) =>
  goldenDumps(mode).filter(({ file }) => commands.test(file));

/** What a table of expectations says, with shares as far as dumps print them. */
const shown = ({ verdict, endpoints, masquerade, affinitySeconds }: Omit<Answer, "packet">) => ({
  verdict,
  endpoints: Object.fromEntries(
    endpoints.map(({ address, probability, masquerade: own = masquerade }) => [
      address,
      { share: probability.toFixed(4), masquerade: own },
    ]),
  ),
  masquerade,
  affinitySeconds,
});

/** The same rules with every chain in another place: no chain's own order changes. */
const turned = {
  iptables: (text: string) =>
    text
      .split(/(?<=^COMMIT\n)/m)
      .map((table) => {
        const lines = table.split("\n");
        const ofRule = lines.filter((line) => line.startsWith("-A "));
        const chains = [...new Set(ofRule.map((line) => line.split(" ")[1]))].reverse();
        const others = lines.filter((line) => !line.startsWith("-A "));
        const at = others.indexOf("COMMIT");
        const rules = chains.flatMap((chain) =>
          ofRule.filter((line) => line.split(" ")[1] === chain),
        );
        return [...others.slice(0, at), ...rules, ...others.slice(at)].join("\n");
      })
      .reverse()
      .join(""),
  nftables: (text: string) => {
    const chain = /\tchain [^]*?\n\t\}\n/g;
    return text
      .split(/(?<=^\}\n)/m)
      .map((table) => {
        const chains = [...table.matchAll(chain)].map(([each]) => each);
        return table.replace(chain, () => chains.pop() ?? "");
      })
      .reverse()
      .join("");
  },
};

/** As `nft -a` prints it: each block and each rule ends in its handle. */
const withHandles = (text: string) => [
  text.replace(
    /^(\t?(table|chain|set|map) .*\{|\t\t(ct|fib|goto|ip6?|jump|meta|numgen|reject|update) .*)$/gm,
    "$& # handle 7",
  ),
];

/** As kube-proxy before 1.37 writes Services of one endpoint. */
const withMapsOfOne = (text: string) => [
  text.replace(
    /^(\tchain (?:service|local)-.* \{\n\t\tmeta l4proto \w+ dnat) to (.*):(\d+)$/gm,
    (_, rule: string, address: string, port: string) => {
      const [family, bare] = address.startsWith("[")
        ? ["ip6", address.slice(1, -1)]
        : ["ip", address];
      return `${rule} ${family} to numgen random mod 1 map { 0 : ${bare} . ${port} }`;
    },
  ),
];

/** As `iptables -S` prints one table after the other what iptables-save prints at once. */
const byTables = (text: string) => {
  const tables = [...text.matchAll(/^\*(?:nat|filter)\n([^]*?)^COMMIT/gm)];
  return tables.map(([, table = ""]) =>
    table.replace(/^:(\S+) - .*$/gm, "-N $1").replace(/^:(\S+ \w+) .*$/gm, "-P $1"),
  );
};

const names: Record<string, string> = {
  "dpt:53": "dpt:domain",
  "dpt:80": "dpt:http",
  "dpt:443": "dpt:https",
};

const protocols: Record<string, string> = { 0: "all", 6: "tcp", 17: "udp", 132: "sctp" };

/** As `iptables -L` prints what -nvL does: fewer columns, and names for numbers. */
const withNames = (text: string) => [
  text
    .replace(/ \d+ packets, \d+ bytes\)/g, ")")
    .replace(/^ pkts bytes (.*) in {5}out {4}/gm, "$1 ")
    .replace(
      /^ +\d+ +\d+ (\S*) +(\d+) +-- +\* +\* +(\S+ +)(\S+ *)/gm,
      (_, target: string, protocol: string, from: string, to: string) =>
        `${target}  ${protocols[protocol]!}  --  ${from}${to}`
          .replaceAll("0.0.0.0/0", "anywhere ")
          .replace("127.0.0.0/8", "loopback/8 "),
    )
    .replace(/dpt:\d+/g, (port) => names[port] ?? port),
];

/** As `ipset list` prints what save does, and `ipvsadm -ln` what -Sn does; other dumps are as they are. */
const listed = (text: string) => {
  if (text.startsWith("create "))
    return [
      text
        .replace(/^create (\S+) (\S+) (.*)$/gm, "\nName: $1\nType: $2\nHeader: $3\nMembers:")
        .replace(/^add \S+ /gm, "")
        .trimStart(),
    ];
  if (!text.startsWith("-A ")) return [text];
  const head =
    "Prot LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";
  const options: Record<string, string> = { "-t": "TCP", "-u": "UDP", "--sctp-service": "SCTP" };
  return [
    head +
      text
        .replace(/^-A (\S+) (\S+) -s (\S+)/gm, (_, option: string, address, scheduler) =>
          [options[option], address, scheduler].join(" "),
        )
        .replace(/ -p (\d+)$/gm, " persistent $1")
        .replace(/^-a .* -r (\S+) -m -w 1$/gm, "  -> $1 Masq 1 0 0"),
  ];
};

const both = (edit: (text: string) => string[]) => (text: string) => [
  ...new Set([text, ...edit(text)]),
];

type Way = [mode: Mode, title: string, commands: RegExp, edit?: (text: string) => string[]];

const ways: Way[] = [
  ["iptables", "iptables-save", /^(ip6?tables-save|ip address)/],
  ["iptables", "iptables -S", /^(ip6?tables-save|ip address)/, byTables],
  ["iptables", "iptables -nvL", /(-nvL|^ip6tables-save|^ip address)$/],
  ["iptables", "iptables -L", /(-nvL|^ip6tables-save|^ip address)$/, withNames],
  ["iptables", "everything at once", /./, both(withNames)],
  ["ipvs", "ipvsadm -Sn and ipset save", /save|^(ipvsadm -Sn|ip address)/],
  ["ipvs", "ipvsadm -ln and ipset list", /./, listed],
  ["ipvs", "everything at once", /./, both(listed)],
  ["nftables", "nft list ruleset", /^(nft list|ip address)/],
  ["nftables", "nft -a list ruleset", /^(nft list|ip address)/, withHandles],
  ["nftables", "nft list ruleset on a node of 1.36", /^(nft list|ip address)/, withMapsOfOne],
  ["nftables", "nft -j list ruleset", /^(nft -j|ip address)/],
];

/**
 * Dumps of the real kube-proxy, made by tools/trace/tests/support/kube-proxy/golden.ts; those of ipvs in a virtual machine whose
 * kernel has it.
 */
describe.each(ways)("golden dumps of %s by %s", (mode, _, commands, edit) => {
  const node = nodeDump(
    dumps(mode, commands).flatMap(({ file, text }) => {
      const others = edit?.(text) ?? [];
      return others.length > 0
        ? others.map((text, index) => ({ file: `${file} ${index}`, text }))
        : [{ file, text }];
    }),
  );

  it.each(casesOf(mode).map((one) => [one.title, one] as const))(
    "%s",
    (_, { packet, expected }) => {
      const answer = trace(node, packet);

      expect(shown(answer)).toEqual(shown({ ...answer, ...expected }));
    },
  );
});

describe.each(modes)("any golden dump of %s", (mode) => {
  const node = nodeDump(dumps(mode, /./));

  it("gives shares that add up to one wherever there is an endpoint", () => {
    const answers = casesOf(mode).map(({ packet }) => trace(node, packet));
    const sums = answers
      .filter(({ verdict }) => verdict === "dnat")
      .map(({ endpoints }) => endpoints.reduce((sum, { probability }) => sum + probability, 0));

    expect(sums.length).toBeGreaterThan(40);
    expect(sums.filter((sum) => Math.abs(sum - 1) > 1e-6)).toEqual([]);
  });

  it("gives the same answers as a file with the commands and what they printed", () => {
    const session = nodeDump([{ file: "session", text: sessionText(dumps(mode, /./)) }]);
    const answers = (of: typeof node) =>
      casesOf(mode).map(({ packet }) => shown(trace(of, packet)));

    expect(answers(session)).toEqual(answers(node));
  });

  it("gives the same answers when tables and chains stand in another order", () => {
    const tables = mode === "nftables" ? "nftables" : "iptables";
    const files = dumps(mode, tables === "iptables" ? /tables-save/ : /^nft list/);
    const other = files.map(({ file, text }) => ({ file, text: turned[tables](text) }));
    const answers = (texts: typeof files) => {
      const one = nodeDump([...texts, ...dumps(mode, /^(ip address|ipset save|ipvsadm -Sn)/)]);
      return casesOf(mode).map(({ packet }) => trace(one, packet));
    };

    expect(other).not.toEqual(files);
    expect(answers(other)).toEqual(answers(files));
  });
});
