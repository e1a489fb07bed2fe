import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

import { debianPackages } from "./debian";
import { prepareBinaries } from "./engine";
import type { Progress } from "./progress";
import { checkout } from "./rehearsal";
import { clusterTools, nodeTool } from "./tools";
import { Interrupted } from "./trouble";

interface JestResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numRuntimeErrorTestSuites: number;
}

/** Everything that can be checked without Azure; returns the exit code. */
export async function verify(
  jestArguments: readonly string[],
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  await debianPackages(progress, signal);
  // Packets are sent through a real kube-proxy's rules.
  const binaries = await prepareBinaries({ progress, signal }, [...clusterTools, nodeTool]);
  const environment = {
    ...process.env,
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    ZONED_BINARIES: binaries,
  };
  const node = (script: string, ...args: string[]): Promise<boolean> =>
    run(process.execPath, [join(checkout, "node_modules", script), ...args], environment, signal);
  const types = await heading(progress, "types", () =>
    node("typescript/bin/tsc", "--noEmit", "--noCheck", "false"),
  );
  const scripts = await heading(progress, "shell scripts", () =>
    run("shellcheck", shellScripts(), environment, signal),
  );
  const folder = mkdtempSync(join(tmpdir(), "zoned-test-"));
  try {
    const file = join(folder, "results.json");
    const passed = await node(
      "jest/bin/jest.js",
      "--json",
      `--outputFile=${file}`,
      ...jestArguments,
    );
    const result = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as JestResult) : none;
    return verdict(progress, result, [types, scripts, passed]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const none: JestResult = {
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numRuntimeErrorTestSuites: 1,
};

function verdict(
  progress: Progress,
  result: JestResult,
  [types, scripts, tests]: readonly boolean[],
): number {
  const checks = [types, scripts].filter((ok) => !ok).length;
  const {
    numPassedTests: passed,
    numFailedTests,
    numPendingTests,
    numRuntimeErrorTestSuites,
  } = result;
  const failed = numFailedTests + numRuntimeErrorTestSuites + checks;
  if (!types) progress.line("the type check failed, see above");
  if (!scripts) progress.line("shellcheck failed, see above");
  const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : "";
  progress.line(`${passed} passed, ${failed} failed${skipped}`);
  return failed === 0 && passed > 0 && tests ? 0 : 1;
}

async function heading(
  progress: Progress,
  name: string,
  check: () => Promise<boolean>,
): Promise<boolean> {
  const step = progress.step(`checking ${name}`);
  const ok = await check().finally(() => step.done(false));
  progress.line(`${name}: ${ok ? "ok" : "FAILED"}`);
  return ok;
}

const shellScripts = (): string[] => [
  ...readdirSync(join(checkout, "cloud-init"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".sh"))
    .map((file) => join("cloud-init", file)),
  join(".ci", "run"),
];

function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return Promise.reject(new Interrupted());
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: checkout,
      env,
      stdio: ["ignore", "inherit", "inherit"],
    });
    const stop = (): void => void child.kill("SIGINT");
    signal.addEventListener("abort", stop);
    child.on("error", reject);
    child.on("close", (code) => {
      signal.removeEventListener("abort", stop);
      if (signal.aborted) reject(new Interrupted());
      else resolve(code === 0);
    });
  });
}
