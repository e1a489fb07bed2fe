import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

import { locate } from "../../mirror/mirrored-programs";
import {
  controllerManager,
  credentialProvider,
  diskDriver,
  nodeManager,
} from "../../programs/controllers";
import { debianPackages } from "../../programs/debian";
import { prepareBinaries } from "../../programs/engine";
import { install } from "../../programs/installs";
import { clusterTools, nodeTool } from "../../programs/tools";
import { checkout } from "../../shared/checkout";
import type { Progress } from "../../shared/progress";
import { exitCodeOf } from "../../shared/run";
import { endTogether } from "./end-together";

interface Command {
  readonly name: string;
  readonly words: readonly string[];
}

const onNode = (name: string, script: string, ...args: string[]): Command => ({
  name,
  words: [process.execPath, join(checkout, "node_modules", script), ...args],
});

/**
 * ESLint's own cache is not used: it keeps a file's result although a function in another file has
 * become asynchronous.
 */
const lintCommands = [
  onNode("eslint", "eslint/bin/eslint.js", "."),
  onNode("prettier", "prettier/bin/prettier.cjs", "--check", "--cache", "--log-level=warn", "."),
];

const typeCheck = onNode(
  "types",
  "typescript/bin/tsc",
  ...["--noEmit", "--noCheck", "false", "--incremental"],
  ...["--tsBuildInfoFile", "node_modules/.cache/types.tsbuildinfo"],
);

const shellCheck = (): Command => ({
  name: "shellcheck",
  words: [
    ...["shellcheck", "--external-sources", "--check-sourced"],
    ...readdirSync(join(checkout, "cloud-init"))
      .filter((file) => file.endsWith(".sh"))
      .map((file) => join("cloud-init", file)),
    join(".ci", "run"),
  ],
});

/** `npm run lint`; returns the exit code. */
export async function lint(progress: Progress, signal: AbortSignal): Promise<number> {
  const checks = await staticChecks(lintCommands, progress, signal);
  for (const { name, passed } of checks) progress.line(`${name}: ${passed ? "passed" : "FAILED"}`);
  return checks.every(({ passed }) => passed) ? 0 : 1;
}

/** What `npm run test:day-2` runs. */
const dayTwo = "/tests/e2e/day-2/";

/**
 * `npm test`: what can be checked without Azure, but for living clusters unless these arguments name
 * them; returns the exit code.
 */
export async function test(
  jestArguments: readonly string[],
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  await debianPackages(progress, signal);
  // Packets are sent through a real kube-proxy's rules.
  const tools = [...clusterTools, nodeTool, locate("metrics-server").tool];
  const binaries = await prepareBinaries({ progress, signal }, tools);
  // They share most packages, which builds side by side would both compile.
  for (const tool of [controllerManager, nodeManager, credentialProvider, ...diskDriver]) {
    await install([tool], { progress, signal });
  }
  // Who names tests works on these, or has them run after all others.
  const checks =
    jestArguments.length > 0
      ? []
      : await staticChecks([...lintCommands, typeCheck, shellCheck()], progress, signal);
  const result = await runJest(jestArguments, binaries, signal);
  const { lines, passed } = verdictOf(checks, result);
  for (const line of lines) progress.line(line);
  return passed ? 0 : 1;
}

/** Runs these side by side, and shows the output of each that fails. */
async function staticChecks(
  commands: readonly Command[],
  progress: Progress,
  signal: AbortSignal,
): Promise<StaticCheck[]> {
  const names = commands.map(({ name }) => name).join(", ");
  return progress.during(`checking ${names}`, () =>
    Promise.all(
      commands.map(async ({ name, words }) => {
        const output = { stdout: "", stderr: "" };
        const env = environment();
        const code = await exitCodeOf(words, { cwd: checkout, env, output, signal });
        if (code !== 0) progress.line(`${name}:\n${`${output.stdout}${output.stderr}`.trimEnd()}`);
        return { name, passed: code === 0 };
      }),
    ),
  );
}

async function runJest(
  args: readonly string[],
  binaries: string,
  signal: AbortSignal,
): Promise<JestResult | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "zoned-test-"));
  try {
    const file = join(folder, "results.json");
    const chosen = args.length > 0 ? args : ["--testPathIgnorePatterns", dayTwo];
    const words = ["--json", `--outputFile=${file}`, ...chosen];
    const jest = onNode("jest", "jest/bin/jest.js", ...words);
    await endTogether((mark) => {
      const env = environment({ ...mark, ZONED_BINARIES: binaries });
      return exitCodeOf(jest.words, { cwd: checkout, env, output: "inherit", signal });
    });
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as JestResult) : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The environment of a command, with the Node that this one runs on before all others. */
const environment = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  ...more,
});

/** What jest reports by `--json`, as far as it is needed. */
export interface JestResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly {
    /** The test file. */
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly title: string;
      readonly ancestorTitles: readonly string[];
    }[];
  }[];
}

export interface StaticCheck {
  readonly name: string;
  readonly passed: boolean;
}

/** How many claims are named for one reason: with `-t`, jest skips all others. */
const namedAtMost = 50;

/**
 * The last lines of `npm test`: the checks, the counts, and what was skipped and why.
 *
 * @param result undefined when jest ended before it could report
 */
export function verdictOf(
  checks: readonly StaticCheck[],
  result: JestResult | undefined,
): { readonly lines: readonly string[]; readonly passed: boolean } {
  const passed = result?.numPassedTests ?? 0;
  const failed =
    (result ? result.numFailedTests + result.numRuntimeErrorTestSuites : 1) +
    checks.filter((check) => !check.passed).length;
  const lines = [
    ...checks.map((check) => `${check.name}: ${check.passed ? "passed" : "FAILED, see above"}`),
    ...(result ? [] : ["tests: jest ended without a result, see above"]),
    `${passed} passed, ${failed} failed, ${result?.numPendingTests ?? 0} skipped`,
    ...(result ? skipped(result) : []),
  ];
  return { lines, passed: failed === 0 && passed > 0 };
}

function skipped({ testResults }: JestResult): string[] {
  const claims = new Map<string, string[]>();
  for (const { assertionResults } of testResults) {
    for (const { status, title, ancestorTitles } of assertionResults) {
      if (status !== "pending") continue;
      const { reason, claim } = split([...ancestorTitles, title]);
      claims.set(reason, [...(claims.get(reason) ?? []), claim]);
    }
  }
  return [...claims].flatMap(([reason, names]) => [
    `skipped, since ${reason}:`,
    ...names.slice(0, namedAtMost).map((name) => `  ${name}`),
    ...(names.length > namedAtMost ? [`  and ${names.length - namedAtMost} more`] : []),
  ]);
}

/** Takes the reason, which `tests/support/unless.ts` puts behind a title, out of a test's titles. */
function split(titles: readonly string[]): { reason: string; claim: string } {
  const mark = / \(skipped: (.*)\)$/;
  const reason = titles.map((title) => mark.exec(title)?.[1]).find((one) => one !== undefined);
  return {
    reason: reason ?? "the test says so, without a reason",
    claim: titles.map((title) => title.replace(mark, "")).join(" "),
  };
}
