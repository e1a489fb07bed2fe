import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

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
