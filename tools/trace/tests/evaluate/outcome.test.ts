import type { Answer } from "../../model/packet";
import { ask, brief, nodeOf, oneNode } from "../support/example";

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
    says: [`It cannot be decided ${set} a,`, `it is dropped, or it goes to ${one}:80 or ${two}:80`],
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
