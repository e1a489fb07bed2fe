import { hash, randomUUID } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

import { makeFolder, reasonOf } from "../shared/files";
import { holderOf, tryLock } from "../shared/lock";
import { pause, runConcurrently } from "../shared/concurrency";
import type { Progress } from "../shared/progress";
import { Interrupted, UserError } from "../shared/user-error";
import { build, goProblem } from "./builds";
import { download, downloadFromImage, NoAnswer } from "./downloads";
import { cacheFolder, type Tool } from "./tools";

/**
 * Linking kube-apiserver takes about this much, and there is little gain from a build without a
 * core of its own.
 */
const bytesPerBuild = 4e9;

const folderOf = (cache: string, { name, version }: Tool): string =>
  join(cache, `${name}-${version}`);

/** Whether all of a tool is in the cache. */
export const isInstalled = (tool: Tool, cache = cacheFolder()): boolean =>
  tool.binaries.every((binary) => existsSync(join(folderOf(cache, tool), binary)));

export interface InstallOptions {
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly cache?: string;
}

/**
 * Makes sure that all these tools are in the cache: downloaded where their source answers, else
 * built.
 */
export async function install(tools: readonly Tool[], options: InstallOptions): Promise<void> {
  const unavailable = await tryToInstall(tools, options);
  if (unavailable.length > 0) throw nothingLeft(unavailable);
}

/** As `install`, but returns what cannot be had, and why each. */
export async function tryToInstall(
  tools: readonly Tool[],
  options: InstallOptions,
): Promise<readonly string[]> {
  const { cache = cacheFolder(), signal } = options;
  const missing = tools.filter((tool) => !isInstalled(tool, cache));
  if (missing.length === 0) return [];
  openCache(cache);
  const waiting = [...missing];
  const slots = Math.max(
    1,
    Math.min(availableParallelism(), Math.floor(totalmem() / bytesPerBuild), missing.length),
  );
  const unavailable: string[] = [];
  const work = async (either: AbortSignal): Promise<void> => {
    for (let tool = waiting.shift(); tool && !either.aborted; tool = waiting.shift()) {
      const problem = await installOne(tool, { ...options, cache, signal: either });
      if (problem !== undefined) unavailable.push(problem);
    }
  };
  await runConcurrently(
    signal,
    Array.from({ length: slots }, () => work),
  );
  return unavailable;
}

function openCache(cache: string): void {
  try {
    makeFolder(cache, 0o755);
    accessSync(cache, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UserError(
      `the cache of programs, ${cache}, cannot be used: ${reasonOf(error)}; ` +
        "make it writable, or name another folder for it by XDG_CACHE_HOME",
    );
  }
}

function nothingLeft(unavailable: readonly string[]): UserError {
  return new UserError(
    [
      "a rehearsal needs programs that could not be had:",
      ...unavailable.map((one) => `  - ${one}`),
      "any one of these is enough:",
      "  - a network that reaches get.pulumi.com, github.com and dl.k8s.io",
      "  - Go (https://go.dev/dl, or `apt-get install golang-go`) and a Go module proxy: then they are built, once, in about 15 minutes",
      `  - the folder ${cacheFolder()} of a machine that has them`,
    ].join("\n"),
  );
}

/** Installs one tool; returns why it cannot be had, when neither way is open. */
async function installOne(
  tool: Tool,
  { cache, progress, signal }: Required<InstallOptions>,
): Promise<string | undefined> {
  const release = await lock(tool, cache, progress, signal);
  const target = folderOf(cache, tool);
  const drafts = `.${tool.name}-${tool.version}.`;
  const draft = join(cache, `${drafts}${randomUUID()}`);
  try {
    if (isInstalled(tool, cache)) return undefined;
    for (const left of readdirSync(cache)) {
      if (left.startsWith(drafts)) rmSync(join(cache, left), { recursive: true, force: true });
    }
    mkdirSync(draft);
    const problem = await fill(tool, draft, progress, signal);
    if (problem !== undefined) return problem;
    rmSync(target, { recursive: true, force: true });
    renameSync(draft, target);
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}

async function fill(
  tool: Tool,
  folder: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<string | undefined> {
  const title = `${tool.name} ${tool.version}`;
  const { image } = tool;
  const isPublished = image !== undefined || tool.downloads.length > 0;
  try {
    if (!isPublished) throw new NoAnswer(`no official ${tool.name}`);
    await progress.during(`downloading ${title}`, (step) =>
      image === undefined
        ? download(tool, folder, step, signal)
        : downloadFromImage(tool.name, image, folder, step, signal),
    );
    return undefined;
  } catch (error) {
    if (signal.aborted) throw new Interrupted();
    if (!(error instanceof NoAnswer)) throw error;
    if (tool.builds.length === 0) return `${title}: ${error.message}`;
    const problem = await goProblem();
    if (problem !== undefined) return `${title}: ${error.message}; ${problem}`;
    if (isPublished) {
      progress.line(
        `${title}: no official download (${error.message}), so it is built from source`,
      );
    }
  }
  await progress.during(
    `building ${title}`,
    (step) => build(tool, folder, step, signal),
    `${tool.typical} on two cores`,
  );
  return undefined;
}

async function lock(
  tool: Tool,
  cache: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<() => void> {
  const path = join(cache, `${tool.name}-${tool.version}.lock`);
  const at = tryLock(path);
  if (at) return at;
  return progress.during(
    `waiting for process ${holderOf(path)?.pid ?? "?"}, which installs ${tool.name} ${tool.version}`,
    async () => {
      for (;;) {
        const release = tryLock(path);
        if (release) return release;
        await pause(500, signal);
      }
    },
    tool.typical,
  );
}

/** One folder with all of these binaries, as links; `binaries` are their real places by name. */
export function gather(binaries: Readonly<Record<string, string>>, cache = cacheFolder()): string {
  const name = hash("sha256", JSON.stringify(binaries)).slice(0, 12);
  const folder = join(cache, `bin-${name}`);
  if (Object.keys(binaries).every((binary) => existsSync(join(folder, binary)))) return folder;
  openCache(cache);
  const draft = join(cache, `.bin-${name}.${randomUUID()}`);
  mkdirSync(draft);
  for (const [binary, path] of Object.entries(binaries)) symlinkSync(path, join(draft, binary));
  rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another process was quicker with the same folder.
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Where an installed tool's binaries are, by name. */
export const placesOf = (tool: Tool, cache = cacheFolder()): Record<string, string> =>
  Object.fromEntries(tool.binaries.map((binary) => [binary, join(folderOf(cache, tool), binary)]));
