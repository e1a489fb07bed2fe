import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Case } from "../../faults/cases/case";
import { scenarios } from "../../faults/cases/scenarios";
import { Findings, summary } from "../../faults/report";
import type { Result } from "../../faults/trial";
import { testFolder } from "../../../../tests/support/test-folder";

let folder: string;
beforeEach(() => (folder = testFolder()));

const result = (more: Partial<Result>): Result => ({
  ...{ scenario: "first-up", kind: "429", what: "PUT machines", title: "PUT virtualMachines/cp-1" },
  ending: "converged",
  ...{ commands: 1, seconds: 40, flaws: [], ...more },
});
const caseOf = (key: string, title: string): Case => ({
  scenario: scenarios.find((one) => one.key === key)!,
  ...{ kind: "429", what: "PUT machines", title },
  disturbance: { faults: [], mustEndWell: true },
});
const left = (pid: number) => [`left running: program (process ${pid})`];

it("goes on with what an earlier run has found out", () => {
  new Findings(folder, "one").add(result({}));

  const later = new Findings(folder, "one");

  expect(later.has("first-up: 429: PUT virtualMachines/cp-1")).toBe(true);
  expect(later.has("first-up: 429: PUT virtualMachines/cp-2")).toBe(false);
});

it("begins anew when the program is another", () => {
  new Findings(folder, "one").add(result({}));

  expect(new Findings(folder, "other").report.results).toEqual([]);
});

it("tries again what it was asked to forget, and nothing else", () => {
  const findings = new Findings(folder, "one");
  findings.add(result({ title: "a" }));
  findings.add(result({ title: "b" }));

  findings.forget(new Set(["first-up: 429: a"]));

  expect(findings.report.results.map(({ title }) => title)).toEqual(["b"]);
});

it("forgets a case that a changed suite has no more, and no case of a scenario that it was not asked for", () => {
  const findings = new Findings(folder, "one");
  findings.setCases([caseOf("first-up", "a"), caseOf("destroy", "c")]);
  for (const one of [{ title: "a" }, { scenario: "destroy", title: "c" }]) {
    findings.add(result(one));
  }

  findings.setCases([caseOf("first-up", "b")]);

  expect(findings.report.cases.map(({ title }) => title)).toEqual(["c", "b"]);
  expect(findings.report.results.map(({ title }) => title)).toEqual(["c"]);
});

it("counts each kind by how it ended, and gathers under one cause what has one", () => {
  const findings = new Findings(folder, "one");
  findings.setCases([
    caseOf("first-up", "PUT virtualMachines/cp-1"),
    caseOf("first-up", "x"),
    { ...caseOf("first-up", "y"), what: "PUT groups" },
    { ...caseOf("first-up", "z"), what: "PUT networks" },
    { ...caseOf("first-up", "x"), kind: "500" },
    caseOf("destroy", "x"),
  ]);
  findings.add(result({}));
  findings.add(result({ title: "x", ending: "flawed", flaws: left(1), seconds: 90 }));
  findings.add(
    result({ what: "PUT groups", title: "y", ending: "flawed", flaws: left(2), seconds: 50 }),
  );

  const text = readFileSync(join(folder, "report.md"), "utf8");

  expect(summary(findings.report.results)).toBe("1 converged, 2 flawed");
  expect(text).toContain("3 of 6 cases tried, in 2 of 5 classes");
  expect(text).toContain("| 429 | 4 | 3 | 1 | 2 |  |  | 1 | 50 s, at most 1 min 30 s |");
  expect(text.match(/^### .*$/gm)).toEqual(["### 2 times: left running: program"]);
});
