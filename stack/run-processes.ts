import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

import { end, identityOf, type ProcessIdentity } from "../shared/pids";

/**
 * Names the run of the engine in its environment, which all that it starts inherits: the language
 * host, the program and plugins are known by it also when the engine and its lock file are gone.
 */
const variable = "ZONED_RUN";

export const environmentOfRun = (run: string): Record<string, string> => ({ [variable]: run });

/** Runs that this process waits for: they are nobody's leftovers. */
const underWay = new Set<string>();

/** What a killed engine, or one whose language host was killed, leaves behind ends with its run. */
export async function following<T>(run: string, work: () => Promise<T>): Promise<T> {
  underWay.add(run);
  try {
    return await work();
  } finally {
    underWay.delete(run);
    await endAll((one) => one === run);
  }
}

const isLeftIn = (state: string) => (run: string) => dirname(run) === state && !underWay.has(run);

/** Engines that earlier commands, since killed, have left running in this state folder. */
export const enginesLeftIn = (state: string): ProcessIdentity[] =>
  processesOf(isLeftIn(state)).filter(({ pid }) => isPulumi(pid));

/** Ends all that earlier commands have left running in this state folder. */
export const endRunsIn = (state: string): Promise<void> => endAll(isLeftIn(state));

async function endAll(isWanted: (run: string) => boolean): Promise<void> {
  // One that is about to start another is seen again; one that not even SIGKILL ends is left.
  for (let round = 0; round < 3; round += 1) {
    const left = processesOf(isWanted);
    if (left.length === 0) return;
    await Promise.all(left.map((one) => end(one, ["SIGTERM", "SIGKILL"])));
  }
}

/** What runs for a run that is wanted. */
function processesOf(isWanted: (run: string) => boolean): ProcessIdentity[] {
  const found = existsSync("/proc/self/environ") ? runsByProc() : runsByPs(environmentsByPs());
  return found.filter(({ run }) => isWanted(run)).map(({ identity }) => identity);
}

interface RunProcess {
  readonly identity: ProcessIdentity;
  readonly run: string;
}

function runsByProc(): RunProcess[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    // Before the environment is read: should the number be given to another in between, it is no
    // longer this one.
    const identity = identityOf(Number(name));
    const run = entriesOf(`/proc/${name}/environ`).find((entry) =>
      entry.startsWith(`${variable}=`),
    );
    return run === undefined ? [] : [{ identity, run: run.slice(variable.length + 1) }];
  });
}

/** The parts of one of /proc's lists; none of a process that has ended, or is somebody else's. */
function entriesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\0");
  } catch {
    return [];
  }
}

/**
 * Where there is no /proc, as on macOS: every process of this user, with its environment behind its
 * arguments.
 */
const environmentsByPs = (): string =>
  spawnSync("ps", ["-xEww", "-o", "pid=", "-o", "command="], {
    encoding: "utf8",
    maxBuffer: 64e6,
  }).stdout ?? "";

/** What `ps` says of runs: a run's own name ends it, since paths may have spaces in them. */
export function runsByPs(text: string): RunProcess[] {
  const line = new RegExp(`^\\s*(\\d+) .* ${variable}=(.*?/[a-z]+-\\d+-\\d+)(?= |$)`, "gm");
  return [...text.matchAll(line)].map(([, pid, run = ""]) => ({
    identity: identityOf(Number(pid)),
    run,
  }));
}

/** Whether a process is the engine, by the name of its program. */
export function isPulumi(pid: number): boolean {
  const program = existsSync("/proc/self/cmdline")
    ? entriesOf(`/proc/${pid}/cmdline`)[0]
    : spawnSync("ps", ["-o", "comm=", "-p", `${pid}`], { encoding: "utf8" }).stdout?.trim();
  return basename(program ?? "") === "pulumi";
}
