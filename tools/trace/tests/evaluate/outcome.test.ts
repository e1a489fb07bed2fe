import type { Answer } from "../../model/packet";
import { ask, brief, nodeOf, oneNode } from "../support/example";
import * as words from "../../model/iptables";

describe("an outcome", () => {
  /** A Service with two endpoints, and what table filter has in FORWARD. */
  const forwarding = (...rules: string[]): Answer => {
    const dump = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-A -m statistic --mode random --probability 0.5 -j KUBE-SEP-A
-A KUBE-SVC-A -j KUBE-SEP-B
-A KUBE-SEP-A -p tcp -j DNAT --to-destination 10.244.1.2:80
-A KUBE-SEP-B -p tcp -j DNAT --to-destination 10.244.1.3:80
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
${rules.map((rule) => `-A FORWARD ${rule}\n`).join("")}COMMIT
`;
    return ask(nodeOf(dump, oneNode), "pod 10.244.2.9 > 10.96.0.1:80");
  };

  const [one, two] = ["10.244.1.2", "10.244.1.3"];
  const halves = `unknown ${one}:80=0.5 ${two}:80=0.5`;
  const set = "whether the packet is in set";

  it.each([
    {
      of: "a set for all",
      rules: ["-m set --match-set a dst -j DROP"],
      is: halves,
      says: [
        `It cannot be decided ${set} a,`,
        `it is dropped, or it goes to ${one}:80 or ${two}:80`,
      ],
    },
    {
      of: "a set for one endpoint",
      rules: [`-d ${one} -m set --match-set a dst -j DROP`],
      is: halves,
      says: [
        "Of 50 % of new connections it cannot be decided",
        `Of 50 % it holds that it goes to ${two}:80`,
      ],
    },
    {
      of: "two sets",
      rules: ["-m set --match-set a dst -j DROP", "-m set --match-set b dst -j REJECT"],
      is: halves,
      says: [`${set} a,`, `or ${set} b,`, "it is dropped, or it is rejected, or it goes to"],
    },
    {
      of: "a set for what is not dropped before",
      rules: [`-d ${one} -j DROP`, "-m set --match-set a dst -j DROP"],
      is: `unknown ${two}:80=0.5`,
      says: [
        `Of 50 % of new connections it cannot be decided ${set} a,`,
        `drop by table filter, chain FORWARD: \`-A FORWARD -d ${one} -j DROP\``,
      ],
    },
    {
      of: "a chain that is not there",
      rules: ["-j MISSING"],
      is: halves,
      says: ["It cannot be decided what `MISSING` does", "the dumps do not say, or it goes to"],
    },
    {
      of: "no doubt, but two rules",
      rules: [`-d ${one} -j DROP`, `-d ${two} -j REJECT`],
      is: "unknown",
      says: [
        `Of 50 % it holds that the packet meets drop by`,
        `Of 50 % it holds that the packet meets reject by`,
      ],
    },
  ])("tells of every way where connections to two endpoints meet $of", ({ rules, is, says }) => {
    const answer = forwarding(...rules);

    expect(brief(answer)).toBe(is);
    for (const words of says) expect(answer.reason).toContain(words);
  });

  it("names each rule that drops, where it cannot be decided which does", () => {
    const { verdict, reason } = forwarding("-m set --match-set a dst -j DROP", "-p tcp -j DROP");

    expect(verdict).toBe("drop");
    expect(reason).toContain("--match-set a dst -j DROP`. Or: The packet meets drop by");
  });

  it("is certain where what cannot be decided changes nothing", () => {
    const answer = forwarding(
      "-m set --match-set a dst -j ACCEPT",
      "-m set --match-set b dst -j LOG",
    );

    expect(brief(answer)).toBe(`dnat ${one}:80=0.5 ${two}:80=0.5 masquerade=false`);
  });

  it("has no endpoints where it cannot be decided which of them it would be", () => {
    const rule = "-m set --match-set a src -j DNAT --to-destination";
    const dump = `*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES ${rule} ${one}:80
-A KUBE-SERVICES -j DNAT --to-destination ${two}:80
COMMIT
`;
    const { verdict, endpoints, reason } = ask(
      nodeOf(dump, oneNode),
      "pod 10.244.2.9 > 10.96.0.1:80",
    );

    expect({ verdict, endpoints }).toEqual({ verdict: "unknown", endpoints: [] });
    expect(reason).toContain(`either it goes to ${one}:80 or ${two}:80.`);
  });

  it("decides of each of a thousand endpoints, though each doubles the ways", () => {
    const count = 1000;
    const at = (index: number): string => `10.244.${index >> 8}.${index & 255}`;
    const sep = Array.from({ length: count }, (_, index) => index);
    const dump = [
      "*nat",
      ":PREROUTING ACCEPT [0:0]",
      "-A PREROUTING -j KUBE-SVC-A",
      ...sep.map(
        (each) =>
          `-A KUBE-SVC-A -m statistic --mode random --probability ${1 / (count - each)} -j KUBE-SEP-${each}`,
      ),
      ...sep.map((each) => `-A KUBE-SEP-${each} -p tcp -j DNAT --to-destination ${at(each)}:80`),
      "COMMIT",
      "*filter",
      ":FORWARD ACCEPT [0:0]",
      "-A FORWARD -m set --match-set a dst -j DROP",
      "COMMIT",
      "",
    ].join("\n");

    const { verdict, endpoints } = ask(nodeOf(dump, oneNode), "pod 10.244.2.9 > 10.96.0.1:80");

    expect(verdict).toBe("unknown");
    expect(endpoints).toHaveLength(count);
  });
});

describe("probabilities", () => {
  /** A dump of `services` Services with `endpoints` each, as kube-proxy writes it. */
  function dumpOf(services: number, endpoints: number): { chains: string[]; rules: string[][] } {
    const chains: string[] = [];
    const own: string[] = [];
    const rules: string[][] = [];
    for (let at = 0; at < services; at += 1) {
      const [service, address] = [
        `KUBE-SVC-${at}`,
        `10.96.${Math.floor(at / 250)}.${(at % 250) + 1}`,
      ];
      chains.push(service);
      own.push(
        `-A KUBE-SERVICES -d ${address}/32 -p tcp -m comment --comment "a/s${at} cluster IP" -m tcp --dport 80 -j ${service}`,
      );
      const balancing = [
        `-A ${service} ! -s 10.244.0.0/16 -d ${address}/32 -p tcp -m comment --comment "a/s${at} cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ`,
      ];
      rules.push(balancing);
      for (let pod = 0; pod < endpoints; pod += 1) {
        const chain = `KUBE-SEP-${at}-${pod}`;
        const left = endpoints - pod;
        const chance =
          left === 1 ? "" : `-m statistic --mode random --probability ${(1 / left).toFixed(11)} `;
        const to = `10.244.${pod % 250}.${(at % 250) + 1}`;
        chains.push(chain);
        balancing.push(
          `-A ${service} -m comment --comment "a/s${at} -> ${to}:${8000 + pod}" ${chance}-j ${chain}`,
        );
        rules.push([
          `-A ${chain} -s ${to}/32 -j KUBE-MARK-MASQ`,
          `-A ${chain} -p tcp -m tcp -j DNAT --to-destination ${to}:${8000 + pod}`,
        ]);
      }
    }
    const last =
      '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS';
    return { chains, rules: [...rules, [...own, last]] };
  }

  const whole = ({ chains, rules }: ReturnType<typeof dumpOf>): string =>
    [
      "*nat",
      ...["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"].map((name) => `:${name} ACCEPT [0:0]`),
      ...["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-MARK-MASQ", "KUBE-POSTROUTING", ...chains].map(
        (name) => `:${name} - [0:0]`,
      ),
      "-A PREROUTING -j KUBE-SERVICES",
      "-A OUTPUT -j KUBE-SERVICES",
      "-A POSTROUTING -j KUBE-POSTROUTING",
      "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
      "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
      "-A KUBE-POSTROUTING -j MASQUERADE",
      ...rules.flat(),
      "COMMIT",
      "",
    ].join("\n");

  const sum = (endpoints: readonly { probability: number }[]) =>
    endpoints.reduce((all, { probability }) => all + probability, 0);

  it.each([1, 2, 3, 7, 14, 50, 333, 1000])(
    "gives %i endpoints equal shares that add up to one",
    (count) => {
      const { endpoints } = ask(
        nodeOf(whole(dumpOf(1, count)), oneNode),
        "pod 10.244.1.9 > 10.96.0.1:80",
      );

      expect(endpoints).toHaveLength(count);
      expect(sum(endpoints)).toBeCloseTo(1, 9);
      expect(
        Math.max(...endpoints.map(({ probability }) => Math.abs(probability * count - 1))),
      ).toBeLessThan(1e-3);
    },
  );

  it("adds up to one for any probabilities", () => {
    let seed = 1;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let round = 0; round < 20; round += 1) {
      const dump = whole(dumpOf(1, 6)).replace(
        /--probability \S+/g,
        () => `--probability ${random().toFixed(11)}`,
      );
      const { verdict, endpoints } = ask(
        nodeOf(dump, oneNode),
        "outside 198.51.100.1 > 10.96.0.1:80",
      );

      expect([verdict, sum(endpoints)]).toEqual(["dnat", expect.closeTo(1, 9)]);
    }
  });

  it("gives the same answer whichever way chains, and Services within KUBE-SERVICES, are shuffled", () => {
    const { chains, rules } = dumpOf(20, 3);
    const asked = [
      "pod 10.244.1.9 > 10.96.0.7:80",
      "outside 198.51.100.1 > 10.96.0.20:80",
      "node 192.0.2.1 > 10.96.0.1:80",
      "pod 10.244.1.9 > 10.96.0.7:81",
    ];
    const answers = (node: ReturnType<typeof nodeOf>) =>
      asked.map((question) => brief(ask(node, question)));
    const expected = answers(nodeOf(whole({ chains, rules }), oneNode));
    const services = rules.at(-1)!;
    const shuffled = [
      { chains: chains.toReversed(), rules: rules.toReversed() },
      {
        chains,
        rules: [[...services.slice(0, -1).toReversed(), services.at(-1)!], ...rules.slice(0, -1)],
      },
    ];

    expect(expected[0]).toMatch(/^dnat 10\.244\.0\.7:8000=0\.3333 10\.244\.1\.7:8001=0\.3333/);
    for (const dump of shuffled) expect(answers(nodeOf(whole(dump), oneNode))).toEqual(expected);
  });

  it("takes no more rules apart where there are more Services", () => {
    const takenApart = (services: number) => {
      const node = nodeOf(whole(dumpOf(services, 3)), oneNode);
      const read = jest.spyOn(words, "wordsOf");
      ask(node, "pod 10.244.1.9 > 10.96.0.7:80");
      const { length } = read.mock.calls;
      read.mockRestore();
      return length;
    };

    expect(takenApart(100)).toBeGreaterThan(5);
    expect(takenApart(2_000)).toBe(takenApart(100));
  });
});
