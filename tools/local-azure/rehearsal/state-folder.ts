import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import { join, relative, resolve } from "node:path";

import { cacheFolder } from "../../programs/tools";
import { checkout } from "../../shared/checkout";
import { makeFolder, reasonOf, writeWhole } from "../../shared/files";
import { holderOf, tryLock } from "../../shared/lock";
import { UserError } from "../../shared/user-error";

const kind = "zoned rehearsal";
const format = 1;

/** Marks a folder as a rehearsal's; written first, removed last. */
const marker = "rehearsal.json";
const commandLock = "command.lock";

/** A file is written beside its place, under its name with this behind it. */
const draft = String.raw`(\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\.new)?`;
const pattern = (...names: string[]): RegExp => new RegExp(`^(${names.join("|")})${draft}$`);

/** What a folder may hold that was about to be marked, or whose marker was the last to go. */
const early = pattern("rehearsal\\.json", "command\\.lock");

/** Everything that a rehearsal puts into its folder. */
const own = pattern(
  "rehearsal\\.json",
  "command\\.lock",
  "daemon\\.(err|json|lock|log)",
  "ports\\.json",
  "plugins\\.json",
  "own-programs",
  "resources\\.json",
  "blobs",
  "registries",
  "azure-ca\\.(crt|key)",
  "(requests|operations)\\.jsonl",
  "qemu\\.json",
  "machines",
  "mirror",
  "backend",
  "project",
  "pulumi-home",
  "passphrase(\\.check)?",
  "Pulumi\\.[^/]+\\.yaml",
  "[^/]+\\.assumed\\.json",
  "recovered",
  "kubeconfig(-[^/]+)?",
  "kubectl-cache",
  "[a-z]+-\\d+-\\d+\\.(events|log|tmp)",
);

export const isOwn = (name: string): boolean => own.test(name);

/** Where a rehearsal is that was given no other folder. */
export const defaultState = join(checkout, ".local-azure");

/**
 * Locks a folder, on which one command works at a time; returns what releases it.
 *
 * @param isToGo where all of it will be removed, which makes room on a disk that has none for a lock
 * @throws UserError when another command has it
 */
export function lockFolder(state: string, isToGo = false): () => void {
  const path = join(state, commandLock);
  let release: (() => void) | undefined;
  try {
    release = tryLock(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    if (isToGo && holderOf(path) === undefined) return () => undefined;
    throw new UserError(
      `the disk of ${state} is full, so that no command can work on it: make room, or remove the rehearsal as it is: npm stop -- --discard`,
    );
  }
  if (release) return release;
  throw new UserError(
    `another command works on ${state} (process ${holderOf(path)?.pid ?? "unknown"}): wait for it, or end it by Ctrl-C where it runs`,
  );
}

/**
 * Takes a folder for a rehearsal, and marks one that is new or empty; returns its real path.
 *
 * @throws UserError when it has anything else in it, or cannot be written to
 */
export const takeFolder = (path: string): string =>
  usable(path, (state) => {
    makeFolder(state);
    accessSync(state, constants.R_OK | constants.W_OK | constants.X_OK);
    if (isMarked(state)) return state;
    if (!isEarly(state)) throw notOurs(state);
    mark(state);
    return state;
  });

/**
 * The real path of a rehearsal's folder; undefined when there is none.
 *
 * @throws UserError when the folder is something else
 */
export const rehearsalFolder = (path: string): string | undefined =>
  usable(path, (state) => {
    if (!existsSync(state)) return undefined;
    accessSync(state, constants.R_OK | constants.W_OK | constants.X_OK);
    if (isMarked(state)) return state;
    if (isEarly(state)) return undefined;
    throw notOurs(state);
  });

/**
 * Removes what a rehearsal has put into its folder, and the folder when nothing else is in it and
 * it is no symbolic link's; returns the names of what is not its own.
 */
export function clearFolder(path: string): string[] {
  const state = realPathOf(path);
  const names = readdirSync(state);
  const others = names.filter((name) => !isOwn(name));
  const remove = (name: string): void =>
    rmSync(join(state, name), { recursive: true, force: true, maxRetries: 5 });
  try {
    for (const name of names) if (isOwn(name) && !early.test(name)) remove(name);
    // A folder that stays in use by its owner can be rehearsed in again.
    if (others.length > 0) return others;
    for (const name of names) if (early.test(name) && name !== commandLock) remove(name);
    remove(commandLock);
    if (!isLink(path)) rmdirSync(state);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw unremovable(state, error);
  }
  return others;
}

/** Does something with a folder's real path; an error says why in words. */
function usable<T>(path: string, work: (state: string) => T): T {
  try {
    const state = realPathOf(path);
    refuseShared(state);
    return work(state);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(
      `${path} cannot be a rehearsal's folder: ${reasonOf(error)}; name another one (--state)`,
    );
  }
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

function realPathOf(path: string): string {
  const full = resolve(path);
  const found = statSync(full, { throwIfNoEntry: false });
  if (found === undefined && isLink(full)) {
    throw new UserError(
      `${path} is a symbolic link that leads nowhere: make the folder that it names, or remove the link`,
    );
  }
  if (found === undefined) return full;
  if (found.isDirectory()) return realpathSync(full);
  throw new UserError(
    `${path} is a file: a rehearsal needs a folder of its own; name a new or an empty one (--state)`,
  );
}

/** Of a user without one, Node says so by an error. */
function homeFolder(): string | undefined {
  try {
    return process.env.HOME || homedir();
  } catch {
    return undefined;
  }
}

/** Folders that are never a rehearsal's alone, whatever is in them. */
function refuseShared(state: string): void {
  const shared = {
    "this checkout": checkout,
    "your home folder": homeFolder(),
    "the cache of built programs": cacheFolder(),
  };
  for (const [what, folder] of Object.entries(shared)) {
    if (folder === undefined) continue;
    const real = existsSync(folder) ? realpathSync(folder) : resolve(folder);
    const within = relative(state, real);
    if (within !== "" && (within.startsWith("..") || resolve(within) === within)) continue;
    throw new UserError(
      `${state} ${within === "" ? "is" : "holds"} ${what}: a rehearsal needs a folder of its own; name a new or an empty one (--state)`,
      2,
    );
  }
}

const mark = (state: string): void =>
  writeWhole(join(state, marker), JSON.stringify({ kind, format }));

function isMarked(state: string): boolean {
  const file = join(state, marker);
  if (!existsSync(file)) return false;
  const { kind: whose, format: found } = markerIn(file);
  if (whose !== kind) return false;
  if (found === format) return true;
  throw new UserError(
    `${state} is a rehearsal of format ${JSON.stringify(found)}, and this version knows format ${format}: ` +
      "run npm stop with the version that started it",
  );
}

function markerIn(file: string): { kind?: unknown; format?: unknown } {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) ?? {}) as { kind?: unknown };
  } catch {
    return {};
  }
}

const isEarly = (state: string): boolean => readdirSync(state).every((name) => early.test(name));

const notOurs = (state: string): UserError =>
  new UserError(
    `${state} has files in it that are no rehearsal's, and was left as it is: ` +
      "name a new or an empty folder, or one that npm start has made (--state)",
    2,
  );

const unremovable = (state: string, error: unknown): UserError =>
  new UserError(
    `the rehearsal in ${state} has ended, but its files cannot be removed: ${reasonOf(error)}; fix that and run npm stop again`,
  );
