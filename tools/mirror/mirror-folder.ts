import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { RunError } from "@pulumi/pulumi/errors";

import { findManifests } from "../../components/add-ons/manifests/manifests";
import { type Manifest, manifests } from "../../components/versions";
import { makeFolder, reasonOf, writeWhole } from "../shared/files";
import { holderOf, tryLock } from "../shared/lock";
import { UserError } from "../shared/user-error";
import { type ManifestText, without } from "./images/wanted-images";
import type { Item, Missing } from "./sources";

/** The size of a mirror, with some room for drafts. */
const bytesNeeded = 3e9;

const state = ".made";
const unfinished = ".drafts";

export interface MirrorFolder {
  readonly state: string;
  readonly drafts: string;
  release(): void;
}

const systemFile = (folder: string): string => join(folder, state, "system");

/** Whether a folder is a mirror for this system. */
export function isMirrorFor(system: string, folder: string): boolean {
  const file = systemFile(folder);
  return existsSync(file) && readFileSync(file, "utf8") === system;
}

/**
 * Locks a folder for filling a mirror.
 *
 * @throws UserError when it has something else in it, is in use, or has no room
 */
export function openFolder(folder: string, system: string): MirrorFolder {
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
    writeWhole(systemFile(folder), system);
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

const parts = [
  { part: "Canal", list: manifests.canal },
  { part: "disk driver", list: manifests.diskDriver },
] as const;

export interface Manifests {
  readonly texts: readonly ManifestText[];
  readonly items: readonly Item[];
  readonly missing: readonly Missing[];
}

/** Upstream's manifests below `folder`, each checked against the SHA-256 that the program pins. */
export async function fetchManifests(folder: string, signal: AbortSignal): Promise<Manifests> {
  const all = await Promise.all(
    parts.map(async ({ part, list }) => {
      const texts = await textsOf(list);
      signal.throwIfAborted();
      if (!texts) {
        const why = `${list.length === 1 ? list[0].path : `${list.length} manifests`} cannot be fetched here`;
        return { missing: { what: part, why, without: without[part] } };
      }
      for (const [path, text] of texts) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeWhole(join(folder, path), text);
      }
      return { part, texts };
    }),
  );
  const found = all.flatMap(({ part, texts }) => (texts ? [{ part, texts }] : []));
  return {
    texts: found.flatMap(({ part, texts }) => [...texts.values()].map((text) => ({ part, text }))),
    items: found.flatMap(({ texts }) =>
      [...texts.keys()].map((path) => ({ what: path, from: "upstream's, by its SHA-256" })),
    ),
    missing: all.flatMap(({ missing }) => missing ?? []),
  };
}

async function textsOf(list: readonly Manifest[]): Promise<Map<string, string> | undefined> {
  try {
    return await findManifests(list, { mirror: "" });
  } catch (error) {
    if (RunError.isInstance(error)) return undefined;
    throw error;
  }
}
