import * as words from "../../model/iptables";
import { ask, brief, nodeOf, oneNode } from "../support/example";

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
