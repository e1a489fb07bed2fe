import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

import { type JestResult, verdictOf } from "../test/check";
import { endTogether } from "../test/end-together";
import { checkout, loadTypeScript } from "../../shared/checkout";
import { identityOf, isAlive } from "../../shared/pids";

describe("the verdict", () => {
  const claim = (status: string, title: string, ...ancestorTitles: string[]) => ({
    status,
    title,
    ancestorTitles,
  });

  const valid: JestResult = {
    numPassedTests: 2,
    numFailedTests: 0,
    numPendingTests: 0,
    numRuntimeErrorTestSuites: 0,
    testResults: [{ name: "a.test.ts", assertionResults: [claim("passed", "is true")] }],
  };
  const skipping = (...assertionResults: ReturnType<typeof claim>[]): JestResult => ({
    ...valid,
    numPendingTests: assertionResults.length,
    testResults: [{ name: "a.test.ts", assertionResults }],
  });
  const checks = [
    { name: "types", passed: true },
    { name: "eslint", passed: true },
  ];

  it("has a line for each check, and the counts", () => {
    expect(verdictOf(checks, valid)).toEqual({
      lines: ["types: passed", "eslint: passed", "2 passed, 0 failed, 0 skipped"],
      passed: true,
    });
  });

  it.each([
    { what: "a claim", result: { ...valid, numFailedTests: 1 } },
    {
      what: "a test file that cannot be loaded",
      result: { ...valid, numRuntimeErrorTestSuites: 1 },
    },
    { what: "jest itself", result: undefined },
  ])("fails with $what", ({ result }) => {
    const { lines, passed } = verdictOf(checks, result);

    expect(passed).toBe(false);
    expect(lines).toContainEqual(expect.stringContaining(" passed, 1 failed, 0 skipped"));
  });

  it("fails with a check, and counts it", () => {
    const { lines, passed } = verdictOf([{ name: "eslint", passed: false }], valid);

    expect(passed).toBe(false);
    expect(lines).toEqual(["eslint: FAILED, see above", "2 passed, 1 failed, 0 skipped"]);
  });

  it("fails where no test ran", () => {
    expect(verdictOf(checks, { ...valid, numPassedTests: 0 }).passed).toBe(false);
  });

  it("names what was skipped, by the reason that stands behind a claim or a group of claims", () => {
    const reason = "ZONED_MANIFESTS names no folder (of manifests)";
    const result = skipping(
      claim("pending", `installs Canal (skipped: ${reason})`, "add-ons"),
      claim("passed", "is true"),
      claim("pending", "lists chains", "where packets go (skipped: it needs Linux)"),
      claim("pending", `installs the driver (skipped: ${reason})`, "add-ons"),
      claim("pending", "is forgotten"),
    );

    expect(verdictOf([], result).lines.slice(1)).toEqual([
      `skipped, since ${reason}:`,
      "  add-ons installs Canal",
      "  add-ons installs the driver",
      "skipped, since it needs Linux:",
      "  where packets go lists chains",
      "skipped, since the test says so, without a reason:",
      "  is forgotten",
    ]);
  });

  it("names 50 claims at most for one reason", () => {
    const all = Array.from({ length: 53 }, (_, index) => claim("pending", `claim ${index}`));

    const { lines } = verdictOf([], skipping(...all));

    expect(lines.slice(-2)).toEqual(["  claim 49", "  and 3 more"]);
  });
});

/** What is in a session of its own, as a local Azure and its etcd are, and so is what that starts. */
const daemon = `require("node:child_process").spawn("setsid", ["sh", "-c", "echo $$; sleep 600"], { detached: true,
  stdio: "inherit", env: { ...process.env, ...environment } })`;

test("what tests have started ends with them, also when they fail", async () => {
  let left;
  const failing = endTogether(async (environment) => {
    const env = { ...process.env, ...environment };
    const { pid } = spawn("sleep", ["600"], { stdio: "ignore", detached: true, env });
    left = identityOf(pid!);
    throw new Error("they failed");
  });

  await expect(failing).rejects.toThrow("they failed");
  expect(isAlive(left!)).toBe(false);
});

test("it ends too when npm test is killed, with all that it has started", async () => {
  const program = `require("./tools/cli/test/end-together").endTogether((environment) => {
    ${daemon}.on("error", (error) => { throw error; });
    return new Promise(() => setInterval(() => undefined, 1000));
  });`;
  const tests = spawn(process.execPath, [...loadTypeScript, "-e", program], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [pid] = await once(tests.stdout.setEncoding("utf8"), "data");
  const left = identityOf(Number(pid));
  expect(isAlive(left)).toBe(true);

  tests.kill("SIGKILL");

  while (isAlive(left)) await wait(50);
});
