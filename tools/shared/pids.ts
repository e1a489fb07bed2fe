import * as fs from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** One process, and no later one that is given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly started: string;
}

const graceMs = 8_000;

/** When a process began: with its pid, the only name that is never given twice. */
function startOf(pid: number): string | undefined {
  try {
    const boot = fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name, which may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // One that was killed holds its ports until the last of its threads is gone, its first being a
    // zombie before.
    const hasEnded = fields[0] === "Z" && Number(fields[17]) <= 1;
    return hasEnded ? undefined : `${boot}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

export const identityOf = (pid: number): ProcessIdentity => ({
  pid,
  started: startOf(pid) ?? "ended",
});

/** What a file says of a process may be damaged, and name none. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  const found = startOf(pid);
  return found !== undefined && found === started;
}

export function readPidFile(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

/** Sends one signal after the other until the process has ended. */
export async function end(
  identity: ProcessIdentity,
  signals: readonly NodeJS.Signals[],
): Promise<void> {
  for (const signal of signals) {
    if (!isAlive(identity)) {
      return;
    }
    try {
      process.kill(identity.pid, signal);
    } catch {
      return;
    }
    for (const until = Date.now() + graceMs; Date.now() < until && isAlive(identity);) {
      await wait(20);
    }
  }
}

/**
 * A process whose environment has a variable, which all inherit that it starts: they are known by it
 * also when whoever started them is gone.
 */
interface MarkedProcess {
  readonly identity: ProcessIdentity;
  /** What the variable is: a path that ends with a word, a pid and a number. */
  readonly mark: string;
}

/** Every process of this host that has the variable. */
export function markedProcesses(variable: string): MarkedProcess[] {
  const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
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
    return fs.readFileSync(file, "utf8").split("\0");
  } catch {
    return [];
  }
}
