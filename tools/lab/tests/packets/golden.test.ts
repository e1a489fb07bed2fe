import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../../shared/checkout";
import type { Answer } from "../../../trace/model/answer";
import { casesOf } from "../../../trace/tests/support/kube-proxy/cases";
import { nodeDump } from "../../../trace/read/read-dumps";
import { trace } from "../../../trace/evaluate/trace";

const modes = ["iptables", "nftables", "ipvs"] as const;
const golden = (mode: string) =>
  join(checkout, "tools/trace/tests/support/kube-proxy/golden", mode);

/** The dumps of a mode whose file names fit. */
const dumps = (mode: string, names: RegExp) =>
  readdirSync(golden(mode))
    .filter((file) => names.test(file))
    .map((file) => ({ file, text: readFileSync(join(golden(mode), file), "utf8") }));

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

/** As `iptables -S` prints one table after the other what iptables-save prints at once. */
const byTables = (text: string) => {
  const tables = [...text.matchAll(/^\*(?:nat|filter)\n([^]*?)^COMMIT/gm)];
  return tables.map(([, table = ""]) =>
    table.replace(/^:(\S+) - .*$/gm, "-N $1").replace(/^:(\S+ \w+) .*$/gm, "-P $1"),
  );
};

type Way = [
  mode: (typeof modes)[number],
  command: string,
  files: RegExp,
  edit?: (text: string) => string[],
];

const ways: Way[] = [
  ["iptables", "iptables-save", /^(ip6?tables-save|ip-address)/],
  ["iptables", "iptables -S", /^(ip6?tables-save|ip-address)/, byTables],
  ["iptables", "iptables -nvL", /^(ip6?tables-\w+-nvL|ip-address)/],
  ["iptables", "iptables -L", /^(iptables-(nat-L|filter-nvL)|ip6tables-\w+-nvL|ip-address)/],
  ["iptables", "everything at once", /./],
  ["ipvs", "ipvsadm -Sn and ipset save", /^(ip6?tables-save|ipset-save|ipvsadm-Sn|ip-address)/],
  ["ipvs", "ipvsadm -ln and ipset list", /^(ip6?tables-save|ipset-list|ipvsadm-ln|ip-address)/],
  ["ipvs", "everything at once", /./],
  ["nftables", "nft list ruleset", /^(nft\.txt|ip-address)/],
  ["nftables", "nft -a list ruleset", /^(nft\.txt|ip-address)/, withHandles],
  ["nftables", "nft -j list ruleset", /^(nft\.json|ip-address)/],
];

/**
 * Dumps of the real kube-proxy, made by tools/trace/tests/support/kube-proxy/golden.ts; those of ipvs in a virtual machine whose
 * kernel has it.
 */
describe.each(ways)("golden dumps of %s by %s", (mode, _, names, edit) => {
  const node = nodeDump(
    dumps(mode, names).flatMap(({ file, text }) => {
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

  it("gives the same answers when tables and chains stand in another order", () => {
    const tables = mode === "nftables" ? "nftables" : "iptables";
    const files = dumps(mode, tables === "iptables" ? /tables-save/ : /^nft\.txt/);
    const other = files.map(({ file, text }) => ({ file, text: turned[tables](text) }));
    const answers = (texts: typeof files) => {
      const one = nodeDump([...texts, ...dumps(mode, /^(ip-ad|ipset-save|ipvsadm-Sn)/)]);
      return casesOf(mode).map(({ packet }) => trace(one, packet));
    };

    expect(other).not.toEqual(files);
    expect(answers(other)).toEqual(answers(files));
  });
});
