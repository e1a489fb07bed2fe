import { basename, dirname } from "node:path";

import { endMarked, entriesOf, markedProcesses, type ProcessIdentity } from "../shared/pids";

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
    await endMarked(variable, (one) => one === run);
  }
}

const isLeftIn = (state: string) => (run: string) => dirname(run) === state && !underWay.has(run);

/** Engines that earlier commands, since killed, have left running in this state folder. */
export const enginesLeftIn = (state: string): ProcessIdentity[] =>
  markedProcesses(variable)
    .filter(({ mark }) => isLeftIn(state)(mark))
    .map(({ identity }) => identity)
    .filter(({ pid }) => isPulumi(pid));

/** Ends all that earlier commands have left running in this state folder. */
export const endRunsIn = (state: string): Promise<void> => endMarked(variable, isLeftIn(state));

/** Whether a process is the engine, by the name of its program. */
export const isPulumi = (pid: number): boolean =>
  basename(entriesOf(`/proc/${pid}/cmdline`)[0] ?? "") === "pulumi";
