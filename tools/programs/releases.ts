import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { versions } from "../../components/versions";
import { UserError } from "../shared/user-error";

const modules = join(__dirname, "modules");

const goMod = (folder: string): string => readFileSync(join(modules, folder, "go.mod"), "utf8");

/** The version of a module that one of the go.mod files here asks for, without its `v`. */
export function pinned(folder: string, module: string): string {
  const escaped = module.replaceAll(/[./]/g, String.raw`\$&`);
  const pattern = new RegExp(String.raw`^\s*(?:require )?${escaped} v(\S+)`, "m");
  const found = pattern.exec(goMod(folder))?.[1];
  if (found === undefined) throw new Error(`${folder}/go.mod does not ask for ${module}`);
  return found;
}

export interface PinnedModule {
  /** Folder below `tools/programs/modules`. */
  readonly folder: string;
  readonly module: string;
  /** Without its `v`. */
  readonly version: string;
}

/** The modules of the programs that are built, and those that their own sources here import. */
export const pinnedModules = (): readonly PinnedModule[] =>
  readdirSync(modules, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith("go.mod"))
    .map(dirname)
    .sort()
    .flatMap((folder) => modulesOf(folder));

function modulesOf(folder: string): PinnedModule[] {
  const text = goMod(folder);
  // Go calls the module of a tool indirect, as it does what the tool imports.
  const tools = [...text.matchAll(/^(?:tool |\t)(\S+)$/gm)].map(([, path]) => `${path}/`);
  const required = text.matchAll(/^(?:require |\t)(\S+) v(\S+)( \/\/ indirect)?$/gm);
  return [...required]
    .filter(([, name, , indirect]) => !indirect || tools.some((one) => one.startsWith(`${name}/`)))
    .map(([, module = "", version = ""]) => ({ folder, module, version }));
}

/** A Kubernetes version that can be built here, and the sources of it and of what it runs on. */
export interface Release {
  readonly version: string;
  /** Folder of these sources below `tools/programs/modules`, as a path's beginning. */
  readonly sources: "" | "1.36/";
}

export const current: Release = { version: versions.kubernetes, sources: "" };

const [major, minor, patch] = versions.kubernetes.split(".").map(Number);

/**
 * The sources of the current version under the next patch's number, so that an upgrade to a patch can
 * be tried before there is one. Only for tests on real machines.
 */
export const nextPatch: Release = { version: `${major}.${minor}.${patch! + 1}`, sources: "" };

/** The minor that an upgrade to this one comes from. */
export const previousMinor: Release = {
  version: pinned("1.36/kubernetes", "k8s.io/kubernetes"),
  sources: "1.36/",
};

export const releases: readonly Release[] = [current, nextPatch, previousMinor];

/** @throws UserError when a version cannot be built here */
export function releaseOf(version: string): Release {
  const found = releases.find((one) => one.version === version);
  if (found) return found;
  throw new UserError(
    `Kubernetes ${version} is not among the versions that can be built here: ` +
      `${releases.map((one) => one.version).join(", ")} (tools/programs/releases.ts)`,
  );
}
