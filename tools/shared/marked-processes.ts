import { readdirSync, readFileSync } from "node:fs";

import { end, identityOf, type ProcessIdentity } from "./pids";

/**
 * A process whose environment has a variable, which all inherit that it starts: they are known by it
 * also when whoever started them is gone.
 */
export interface MarkedProcess {
  readonly identity: ProcessIdentity;
  /** What the variable is: a path that ends with a word, a pid and a number. */
  readonly mark: string;
}

/** Every process of this host that has the variable. */
export function markedProcesses(variable: string): MarkedProcess[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    // Before the environment is read: should the number be given to another in between, it is no
    // longer this one.
    const identity = identityOf(Number(name));
    const entry = entriesOf(`/proc/${name}/environ`).find((one) => one.startsWith(`${variable}=`));
    return entry === undefined ? [] : [{ identity, mark: entry.slice(variable.length + 1) }];
  });
}

/** Ends all that have a mark that is wanted. */
export async function endMarked(
  variable: string,
  isWanted: (mark: string) => boolean,
): Promise<void> {
  // One that is about to start another is seen again; one that not even SIGKILL ends is left.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const left = markedProcesses(variable).filter(({ mark }) => isWanted(mark));
    if (left.length === 0) return;
    await Promise.all(left.map(({ identity }) => end(identity, ["SIGTERM", "SIGKILL"])));
  }
}

/** The parts of one of /proc's lists; none of a process that has ended, or is somebody else's. */
export function entriesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\0");
  } catch {
    return [];
  }
}
