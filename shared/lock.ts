import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

import { startOf } from "./pids";

/** The holder of a lock: a process, and when it began, since process numbers are used again. */
export interface Holder {
  readonly pid: number;
  readonly started?: string;
}

/** Whether this very process is still there. */
export function isAlive({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  // Nothing is known of when processes began where there is no /proc.
  return started === undefined || startOf(process.pid) === undefined || startOf(pid) === started;
}

/** The holder of the lock now; undefined when no living process has it. */
export function holderOf(path: string): Holder | undefined {
  const holder = read(path)?.holder;
  return holder && isAlive(holder) ? holder : undefined;
}

/** Takes the lock and returns how to give it back; undefined while another process holds it. */
export function tryLock(path: string, pid = process.pid): (() => void) | undefined {
  const mine = JSON.stringify({ pid, started: startOf(pid) } satisfies Holder);
  // Linked into place, so that a lock without its holder is never read.
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, mine);
  try {
    for (;;) {
      if (linked(draft, path)) {
        return () => {
          if (read(path)?.text === mine) rmSync(path, { force: true });
        };
      }
      const found = read(path);
      if (found?.holder && isAlive(found.holder)) return undefined;
      if (found) discard(path, found.text);
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

function linked(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Takes a dead process's lock away, unless another process took it over in the meantime. */
function discard(path: string, stale: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch {
    return;
  }
  const taken = read(aside)?.text;
  if (taken !== undefined && taken !== stale) renameSync(aside, path);
  else rmSync(aside, { force: true });
}

function read(path: string): { text: string; holder?: Holder } | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  try {
    const { pid, started } = JSON.parse(text) as Partial<Holder>;
    return typeof pid === "number" ? { text, holder: { pid, started } } : { text };
  } catch {
    return { text };
  }
}
