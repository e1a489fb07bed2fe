import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { pause } from "../../shared/concurrency";
import type { Progress } from "../../shared/progress";
import type { PulumiOptions } from "../../pulumi/pulumi";
import { endRunsIn, enginesLeftIn, isPulumi } from "../../pulumi/run-processes";

interface Stack {
  readonly stack: string;
  readonly project: string;
  readonly progress?: Progress;
}

const patience = 120_000;

/** Engines that hold this stack, by their own lock files. */
function enginesOf(folder: string): number[] {
  const locks = existsSync(folder) ? readdirSync(folder) : [];
  return locks.flatMap((name) => {
    try {
      const { pid } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { pid: number };
      return isPulumi(pid) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

/**
 * Ends what a killed run has left: first orderly its engine, should it still work, then all that
 * the engine had started, then its lock.
 */
export async function endEarlierRun(options: PulumiOptions, stack: Stack): Promise<void> {
  const { state, signal } = options;
  const locks = join(
    state,
    "backend",
    ".pulumi",
    "locks",
    "organization",
    stack.project,
    stack.stack,
  );
  const engines = (): Set<number> =>
    new Set([...enginesOf(locks), ...enginesLeftIn(state).map(({ pid }) => pid)]);
  const left = engines();
  if (left.size > 0) {
    const step = stack.progress?.step(
      "an earlier run was killed; waiting for its engine to end orderly",
    );
    for (const pid of left) end(pid, "SIGINT");
    const until = Date.now() + patience;
    while (engines().size > 0 && Date.now() < until) {
      await pause(200, signal);
    }
    for (const pid of engines()) end(pid, "SIGKILL");
    step?.done();
  }
  await endRunsIn(state);
  rmSync(locks, { recursive: true, force: true });
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}
