import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { parse, stringify } from "yaml";

import { testFolder } from "../../../tests/support/test-folder";
import { checkout } from "../../shared/checkout";
import { chapters, notCovered } from "../machines/chapters";
import { type Chapter, expectAll, expectSaid, expectSame, type Result } from "../machines/claim";
import { Findings, markdown, stepsIn, summary } from "../machines/findings";
import { chosen } from "../machines/suite";
import { byName, expectPassed } from "../machines/claims/upstream";

describe("findings", () => {
  const check = async (): Promise<void> => undefined;
  const chapter: Chapter = {
    ...{ key: "one", name: "one node", settings: {} },
    claims: ["it is Ready", "names resolve", "it stays"].map((sentence) => ({ sentence, check })),
  };
  const found = (sentence: string, outcome: Result["outcome"]): Result => ({
    ...{ chapter: chapter.name, sentence, outcome },
  });

  let folder: string;
  beforeEach(() => (folder = testFolder()));

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

    expect(
      findings.report.results.map(({ sentence, outcome }) => `${sentence}: ${outcome}`),
    ).toEqual(["it is Ready: failed", "names resolve: passed", "it stays: failed"]);
  });

  test("after a run that came to its end, the next one begins anew", () => {
    const whole = new Findings(folder);
    for (const { sentence } of chapter.claims) whole.add(found(sentence, "passed"));
    expect(whole.isWell(chapter)).toBe(true);
    whole.close();

    expect(existsSync(join(folder, "report.md"))).toBe(true);
    expect(new Findings(folder).report.results).toEqual([]);
  });

  const shown = [
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
    expect(summary(shown)).toBe("1 passed, 1 failed, 1 not run, 0 not covered");
    const text = markdown({ began: "now", host: "2 cores", results: shown, steps: [] });
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

  const read = (path: string): string => readFileSync(join(checkout, path), "utf8");

  const scriptSteps = ["bootstrap.sh", "first-boot.sh"].flatMap((script) =>
    [...read(`cloud-init/${script}`).matchAll(/\bstep "([^"]+)" .+? \d+ \w+/g)].map(
      ([, name]) => name,
    ),
  );

  const claimsFolder = "tools/lab/machines/claims";
  const sources = [
    ...readdirSync(join(checkout, claimsFolder)).map((file) => `${claimsFolder}/${file}`),
    "docs/troubleshooting.md",
  ];

  test("a claim or the documentation expects no step of a machine that no script has", () => {
    const expected = sources.flatMap((file) =>
      [...read(file).matchAll(/\bstep "([\w ]+)"/g)].map(([, name]) => ({ file, name: name! })),
    );

    expect(expected.length).toBeGreaterThan(8);
    expect(expected.filter(({ name }) => !scriptSteps.includes(name))).toEqual([]);
  });
});

const spec = (LeafNodeType: string, State: string, Message?: string) => ({
  ...{ LeafNodeType, State },
  ...(Message !== undefined && { Failure: { Message } }),
});
const others = [spec("SynchronizedBeforeSuite", "passed"), spec("It", "skipped")];

test("the chapters that nobody names are all but the one of a night, which is run where it is named", () => {
  const night = "conformance-all";
  const keys = (only: readonly string[]) => chosen(only).map(({ key }) => key);

  expect(keys([])).toEqual(chapters.map(({ key }) => key).filter((key) => key !== night));
  expect(keys([night, "one"])).toEqual(["one", night]);
});

test("one test that ran and passed has passed", () => {
  expect(() => expectPassed([...others, spec("It", "passed")])).not.toThrow();
});

test("a test that failed, or did not begin, says why", () => {
  expect(() => expectPassed([...others, spec("It", "failed", "no answer")])).toThrow(
    "it failed: no answer",
  );
  const before = spec("SynchronizedBeforeSuite", "failed", "no API");
  expect(() => expectPassed([before, spec("It", "skipped")])).toThrow("it failed: no API");
});

test("a test that did not run has not passed, nor has another beside it", () => {
  expect(() => expectPassed(others)).toThrow("got 0 tests that passed, expected one");
  expect(() => expectPassed([spec("It", "passed"), spec("It", "passed")])).toThrow("got 2 tests");
});

test("upstream's tests meet the API under its own name, and that name leads to this host", () => {
  const folder = testFolder();
  const cluster = { server: "https://api.example:6443", "certificate-authority-data": "Y2E=" };
  const kubeconfig = stringify({ clusters: [{ name: "one", cluster }] });
  const made = byName({ kubeconfig, address: { host: "127.0.0.1", port: 4242 }, folder });

  expect(parse(readFileSync(made.kubeconfig, "utf8")).clusters[0].cluster).toEqual({
    ...cluster,
    server: "https://api.example:4242",
  });
  const [command = "", ...args] = made.within;
  const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"];
  const { stdout } = spawnSync(command, [...asUser, ...args, "getent", "hosts", "api.example"], {
    encoding: "utf8",
  });
  expect(stdout).toMatch(/^127\.0\.0\.1\s.*\bapi\.example\b/);
});
