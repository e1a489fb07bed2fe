import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { isAlive } from "./lock";
import type { PulumiOptions } from "./pulumi";
import type { Stack } from "./recovery";
import { Interrupted } from "./trouble";

const patience = 120_000;

/** Engines of this stack that an earlier command, since killed, has left running. */
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

function isPulumi(pid: number): boolean {
  if (!isAlive({ pid })) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0]?.endsWith("pulumi") === true;
  } catch {
    // Without /proc the engine's own lock file is all there is to go by.
    return true;
  }
}

/**
 * Ends what a killed run has left: first orderly its engine, should it still work, then its lock.
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
  const engines = enginesOf(locks);
  if (engines.length > 0) {
    const step = stack.progress?.step(
      "an earlier run was killed; waiting for its engine to end orderly",
    );
    for (const pid of engines) end(pid, "SIGINT");
    const until = Date.now() + patience;
    while (enginesOf(locks).length > 0 && Date.now() < until) {
      await sleep(200, undefined, { signal }).catch(() => {
        throw new Interrupted();
      });
    }
    for (const pid of enginesOf(locks)) end(pid, "SIGKILL");
    step?.done();
  }
  rmSync(locks, { recursive: true, force: true });
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}
