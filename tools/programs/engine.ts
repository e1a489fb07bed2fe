import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, copyFileSync, existsSync, realpathSync, renameSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";

import { checkout } from "../shared/checkout";
import { gather, install, type InstallOptions, isInstalled, placesOf } from "./installs";
import { clusterTools, engineTool, type Tool } from "./tools";

/** From this version on, the engine and Pulumi's Node library agree on Node 22. */
export const oldestEngine = [3, 249] as const;

/** The first executable of this name on a PATH. */
export const onPath = (name: string, path = process.env.PATH ?? ""): string | undefined =>
  path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find(isExecutable);

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether a version as `pulumi version` prints it is new enough for the program. */
export function isNewEnough(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\./.exec(version.trim()) ?? [];
  return Number(major) === oldestEngine[0] && Number(minor) >= oldestEngine[1];
}

/**
 * The user's own engine and language host, by name; undefined when there is none, or too old a one.
 */
export async function ownEngine(
  path = process.env.PATH ?? "",
): Promise<Record<string, string> | undefined> {
  const pulumi = onPath("pulumi", path);
  if (pulumi === undefined) return undefined;
  const host = "pulumi-language-nodejs";
  const language = onPath(host, [dirname(realpathSync(pulumi)), path].join(delimiter));
  if (language === undefined) return undefined;
  try {
    const { stdout } = await promisify(execFile)(pulumi, ["version"], {
      env: { ...process.env, PULUMI_SKIP_UPDATE_CHECK: "true" },
      timeout: 10_000,
    });
    return isNewEnough(stdout) ? { pulumi, [host]: language } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A folder with the engine, its language host, and `tools`: by default all that a simulated control
 * plane runs.
 */
export async function prepareBinaries(
  options: InstallOptions,
  tools: readonly Tool[] = clusterTools,
): Promise<string> {
  const { own, needed } = await withEngine(tools);
  await install(needed, options);
  return folderWith(needed, own, options.cache);
}

/** The same folder when nothing of it has to be installed first, else undefined. */
export async function installedBinaries(
  tools: readonly Tool[],
  cache?: string,
): Promise<string | undefined> {
  const { own, needed } = await withEngine(tools);
  const present = needed.every((tool) => isInstalled(tool, cache));
  return present ? folderWith(needed, own, cache) : undefined;
}

async function withEngine(tools: readonly Tool[]) {
  const own = await ownEngine();
  return { own, needed: own ? tools : [engineTool, ...tools] };
}

function folderWith(
  tools: readonly Tool[],
  own: Record<string, string> | undefined,
  cache?: string,
): string {
  if (own === undefined) completeEngine(cache);
  return gather(Object.assign({}, ...tools.map((tool) => placesOf(tool, cache)), own), cache);
}

/**
 * Puts beside an engine what runs dynamic resources. It is part of a release of the engine; taken
 * from anywhere else, each run warns of it.
 */
function completeEngine(cache?: string): void {
  const name = "pulumi-resource-pulumi-nodejs";
  const place = join(dirname(placesOf(engineTool, cache)["pulumi"]!), name);
  if (existsSync(place)) return;
  const draft = `${place}.${randomUUID()}`;
  copyFileSync(join(checkout, "node_modules/@pulumi/pulumi", name), draft);
  renameSync(draft, place);
}
