import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Chapter, Result } from "../../machines/claim";
import { Findings } from "../../machines/findings";

const check = async (): Promise<void> => undefined;
const chapter: Chapter = {
  ...{ key: "one", name: "one node", settings: {} },
  claims: ["it is Ready", "names resolve", "it stays"].map((sentence) => ({ sentence, check })),
};
const found = (sentence: string, outcome: Result["outcome"]): Result => ({
  ...{ chapter: chapter.name, sentence, outcome },
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-findings-"))));
afterEach(() => rmSync(folder, { recursive: true }));

test("a run that was interrupted is gone on with: what was true is known, the rest is asked again", () => {
  const interrupted = new Findings(folder);
  interrupted.add(found("it is Ready", "passed"));
  interrupted.add(found("names resolve", "failed"));

  const next = new Findings(folder);

  expect(chapter.claims.map((claim) => next.hasPassed(chapter, claim))).toEqual([
    true,
    false,
    false,
  ]);
  expect(next.isWell(chapter)).toBe(false);
});

test("a chapter is well when all of it was asked and is true, and is asked again otherwise", () => {
  const findings = new Findings(folder);
  const [first, ...others] = chapter.claims.map(({ sentence }) => sentence);

  for (const sentence of others) findings.add(found(sentence, "passed"));
  expect(findings.isWell(chapter)).toBe(false);
  findings.add(found(first!, "failed"));
  expect(findings.isWell(chapter)).toBe(false);
  findings.add(found(first!, "passed"));
  expect(findings.isWell(chapter)).toBe(true);
});

test("a claim that is asked again stays in its place in the report", () => {
  const findings = new Findings(folder);
  for (const { sentence } of chapter.claims) findings.add(found(sentence, "failed"));

  findings.add(found("names resolve", "passed"));

  expect(findings.report.results.map(({ sentence, outcome }) => `${sentence}: ${outcome}`)).toEqual(
    ["it is Ready: failed", "names resolve: passed", "it stays: failed"],
  );
});

test("after a run that came to its end, the next one begins anew", () => {
  const whole = new Findings(folder);
  for (const { sentence } of chapter.claims) whole.add(found(sentence, "passed"));
  expect(whole.isWell(chapter)).toBe(true);
  whole.close();

  expect(existsSync(join(folder, "report.md"))).toBe(true);
  expect(new Findings(folder).report.results).toEqual([]);
});
