import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { join } from "node:path";

import { makeFolder, reasonOf } from "../shared/files";
import { holderOf, tryLock } from "../shared/lock";
import { UserError } from "../shared/user-error";

/** The size of a mirror, with some room for drafts. */
const bytesNeeded = 3e9;

const state = ".made";
const unfinished = ".drafts";

export interface MirrorFolder {
  readonly state: string;
  readonly drafts: string;
  release(): void;
}

/**
 * Locks a folder for filling a mirror.
 *
 * @throws UserError when it has something else in it, is in use, or has no room
 */
export function openFolder(folder: string): MirrorFolder {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found && !found.isDirectory()) {
    throw new UserError(`${folder} is a file: a mirror needs a folder (--folder)`);
  }
  if (found && !existsSync(join(folder, state)) && readdirSync(folder).length > 0) {
    throw new UserError(
      `${folder} has files in it and is no mirror; a mirror removes what does not belong to it: ` +
        "name an empty or a new folder (--folder)",
    );
  }
  try {
    makeFolder(join(folder, state), 0o755);
  } catch (error) {
    throw new UserError(
      `${folder} cannot be a mirror: ${reasonOf(error)}; name another (--folder)`,
    );
  }
  const lock = join(folder, state, "lock");
  const release = tryLock(lock);
  if (!release) {
    throw new UserError(
      `process ${holderOf(lock)?.pid ?? "?"} is filling ${folder}: wait for it, or end it`,
    );
  }
  const drafts = join(folder, unfinished);
  const clear = (): void => rmSync(drafts, { recursive: true, force: true });
  try {
    clear();
    if (!existsSync(join(folder, "images", "index.json"))) checkRoom(folder);
    mkdirSync(drafts);
  } catch (error) {
    release();
    throw error;
  }
  return {
    state: join(folder, state),
    drafts,
    release: () => {
      clear();
      letOthersRead(folder);
      release();
    },
  };
}

/** What machines fetch is no secret, and a web server in front of it runs as a user of its own. */
function letOthersRead(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name === state || entry.isSymbolicLink()) continue;
    chmodSync(path, statSync(path).mode | (entry.isDirectory() ? 0o055 : 0o044));
    if (entry.isDirectory()) letOthersRead(path);
  }
}

function checkRoom(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= bytesNeeded) return;
  throw new UserError(
    `${folder} lies on a disk with ${(free / 1e9).toFixed(1)} GB free, and a mirror needs ${bytesNeeded / 1e9} GB: ` +
      "make room, or name another folder (--folder)",
  );
}
