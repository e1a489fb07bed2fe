import { createHash, randomUUID } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";

import { messageOf, UserError } from "./user-error";

/** Writes a file that only its owner reads, whole or not at all. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Writes what a user has named: a file, whole, also where a link leads to it; or a pipe or a device, which stays one. */
export function writeInto(path: string, text: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) writeWhole(path, text);
  else if (found.isFile()) writeWhole(realpathSync(path), text);
  else writeFileSync(path, text);
}

/** Reads a file of a rehearsal that was written whole. */
export function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new UserError(
      `${path} is damaged: ${messageOf(error)}.\n` +
        "  It was left as it is. Put back a good copy, or give the rehearsal up: npm stop removes it, and npm start begins anew.",
    );
  }
}

/**
 * Makes a folder, by default one that only its owner reads, and those above it.
 *
 * Node's own recursive way never returns where a parent exists and takes no folders, as below
 * /proc.
 */
export function makeFolder(path: string, mode = 0o700): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    const lacksParent = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (!lacksParent || existsSync(dirname(path))) throw error;
    makeFolder(dirname(path), mode);
    makeFolder(path, mode);
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "this user may not read and write there",
  EEXIST: "it is a file",
  ELOOP: "its symbolic links lead in a circle",
  ENAMETOOLONG: "its name is too long",
  ENOENT: "no folder can be made there",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is a file",
  EPERM: "this user may not write there",
  EROFS: "its disk is read-only",
};

/** Why a folder or a file cannot be had, in words. */
export function reasonOf(error: unknown): string {
  const { code = "" } = error as NodeJS.ErrnoException;
  return reasons[code] ?? messageOf(error);
}

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
