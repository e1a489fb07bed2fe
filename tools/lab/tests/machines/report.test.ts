import { chapters, notCovered } from "../../machines/chapters";
import { expectAll, expectSaid, expectSame } from "../../machines/claim";
import { markdown, stepsIn, summary } from "../../machines/report";

const results = [
  { chapter: "one", sentence: "nodes are Ready", outcome: "passed", seconds: 95, note: "3 | 3" },
  {
    chapter: "one",
    sentence: "names resolve",
    outcome: "failed",
    seconds: 4,
    note: "got\nnothing",
  },
  { chapter: "two", sentence: "it stays", outcome: "not run", note: "since nodes are not Ready" },
] as const;

test("a report counts every outcome, and has a line for each claim under its chapter", () => {
  expect(summary(results)).toBe("1 passed, 1 failed, 1 not run, 0 not covered");
  const text = markdown({ began: "now", host: "2 cores", results, steps: [] });
  expect(text).toContain("| nodes are Ready | passed | 1 min 35 s | 3 \\| 3 |");
  expect(text).toContain("| names resolve | failed | 4 s | got nothing |");
  expect(text.indexOf("## two")).toBeLessThan(text.indexOf("| it stays | not run |  |"));
});

test("steps are those of both halves that ended well", () => {
  const log = [
    "2026-01-01T00:00:00Z first boot: tools: begins",
    "2026-01-01T00:00:07Z first boot: tools: done after 7 s",
    "2026-01-01T00:00:09Z bootstrap: kubeadm join: exit code 1, next try in 5 s",
    "2026-01-01T00:01:09Z bootstrap: kubeadm join: done after 41 s",
  ].join("\n");
  expect(stepsIn(log)).toEqual([
    { step: "first boot: tools", seconds: 7, ended: "2026-01-01T00:00:07Z" },
    { step: "bootstrap: kubeadm join", seconds: 41, ended: "2026-01-01T00:01:09Z" },
  ]);
});

test("what is not as expected is reported with what it is", () => {
  expect(() => expectSame("mode", "iptables", "ipvs")).toThrow(
    'mode: got "iptables", expected "ipvs"',
  );
  expect(() => expectAll("sets", ["a"], ["a", "b"])).toThrow("sets: b missing from these 1: a");
  expect(() => expectSaid("step a failed", ["step a", "exit code"])).toThrow(
    "nothing was said of exit code, but:\nstep a failed",
  );
});

test("no claim has the sentence of another in its chapter, and none that is covered is said not to be", () => {
  for (const { claims } of chapters) {
    const sentences = claims.map(({ sentence }) => sentence);
    expect(new Set(sentences).size).toBe(sentences.length);
    for (const sentence of sentences) expect(Object.keys(notCovered)).not.toContain(sentence);
  }
});
