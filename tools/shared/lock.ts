import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

import { identityOf, isAlive, type ProcessIdentity } from "./pids";

/** The holder of the lock now; undefined when no living process has it. */
export function holderOf(path: string): ProcessIdentity | undefined {
  const holder = read(path)?.holder;
  return holder && isAlive(holder) ? holder : undefined;
}

/** Takes the lock and returns how to give it back; undefined while another process holds it. */
export function tryLock(path: string): (() => void) | undefined {
  const mine = JSON.stringify(identityOf(process.pid));
  // Linked into place, so that a lock without its holder is never read.
  const draft = `${path}.${randomUUID()}`;
  try {
    writeFileSync(draft, mine);
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

function read(path: string): { text: string; holder?: ProcessIdentity } | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  try {
    return { text, holder: JSON.parse(text) as ProcessIdentity };
  } catch {
    return { text };
  }
}
