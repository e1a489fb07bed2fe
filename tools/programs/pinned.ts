import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The version of a module that one of the go.mod files here asks for, without its `v`. */
export function pinned(folder: string, module: string): string {
  const text = readFileSync(join(__dirname, "modules", folder, "go.mod"), "utf8");
  const escaped = module.replaceAll(/[./]/g, String.raw`\$&`);
  const found = new RegExp(String.raw`^\s*(?:require )?${escaped} v(\S+)`, "m").exec(text)?.[1];
  if (found === undefined) throw new Error(`${folder}/go.mod does not ask for ${module}`);
  return found;
}
