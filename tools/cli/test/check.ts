import { spawn } from "node:child_process";
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
import { Interrupted } from "../../shared/user-error";
import { endTogether } from "./end-together";
import { type JestResult, type StaticCheck, verdictOf } from "./verdict";

interface Command {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
}

const onNode = (name: string, script: string, ...args: string[]): Command => ({
  name,
  program: process.execPath,
  args: [join(checkout, "node_modules", script), ...args],
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
  program: "shellcheck",
  args: [
    ...["--external-sources", "--check-sourced"],
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
      commands.map(async (command) => {
        let output = "";
        const code = await run(command, signal, (text) => (output += text));
        if (code !== 0) progress.line(`${command.name}:\n${output.trimEnd()}`);
        return { name: command.name, passed: code === 0 };
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
    await endTogether((environment) =>
      run({ ...jest, environment: { ...environment, ZONED_BINARIES: binaries } }, signal),
    );
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as JestResult) : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a command to its end and returns its exit code; its output is the user's, or `take`s. */
function run(
  { program, args, environment }: Command & { readonly environment?: NodeJS.ProcessEnv },
  signal: AbortSignal,
  take?: (text: string) => void,
): Promise<number> {
  if (signal.aborted) return Promise.reject(new Interrupted());
  return new Promise((resolve, reject) => {
    const into = take ? "pipe" : "inherit";
    const child = spawn(program, args, {
      cwd: checkout,
      env: {
        ...process.env,
        PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
        ...environment,
      },
      stdio: ["ignore", into, into],
    });
    if (take) {
      for (const stream of [child.stdout, child.stderr])
        stream?.setEncoding("utf8").on("data", take);
    }
    const stop = (): void => void child.kill("SIGINT");
    signal.addEventListener("abort", stop);
    child.on("error", reject);
    child.on("close", (code) => {
      signal.removeEventListener("abort", stop);
      if (signal.aborted) reject(new Interrupted());
      else resolve(code ?? 1);
    });
  });
}
