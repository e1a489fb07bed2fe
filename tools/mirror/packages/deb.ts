import { constants, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { run } from "../commands";

/** A Debian package that is built here. */
export interface DebRecipe {
  readonly name: string;
  readonly version: string;
  readonly depends: readonly string[];
  readonly description: string;
  /** Executables by their place in the package. */
  readonly binaries: Readonly<Record<string, string>>;
  /** Text files by their place in the package; those below /etc are conffiles. */
  readonly texts?: Readonly<Record<string, string>>;
}

export const debName = ({ name, version }: DebRecipe): string => `${name}_${version}_amd64.deb`;

/**
 * Packs a package at `target`; `draft` is an empty folder for what goes in, `pathOf` returns where
 * an executable is.
 */
export async function packDeb(
  recipe: DebRecipe,
  target: string,
  draft: string,
  pathOf: (binary: string) => Promise<string>,
  signal: AbortSignal,
): Promise<void> {
  const place = (path: string): string => {
    const at = join(draft, path);
    mkdirSync(dirname(at), { recursive: true });
    return at;
  };
  for (const [path, binary] of Object.entries(recipe.binaries)) {
    copyFileSync(await pathOf(binary), place(path), constants.COPYFILE_FICLONE);
  }
  const texts = Object.entries(recipe.texts ?? {});
  for (const [path, text] of texts) writeFileSync(place(path), text, { mode: 0o644 });
  writeFileSync(place("DEBIAN/control"), control(recipe));
  const administrators = texts.map(([path]) => path).filter((path) => path.startsWith("/etc/"));
  if (administrators.length > 0) {
    writeFileSync(place("DEBIAN/conffiles"), `${administrators.join("\n")}\n`);
  }
  // Unpacking may be done by an emulated processor.
  const flags = ["--root-owner-group", "-Znone"];
  const env = { SOURCE_DATE_EPOCH: "0" };
  await run("dpkg-deb", [...flags, "--build", draft, target], { signal, env });
}

const control = ({ name, version, depends, description }: DebRecipe): string =>
  [
    `Package: ${name}`,
    `Version: ${version}`,
    "Architecture: amd64",
    "Maintainer: zoned <root@localhost>",
    "Section: admin",
    "Priority: optional",
    ...(depends.length > 0 ? [`Depends: ${depends.join(", ")}`] : []),
    `Description: ${description}`,
    "",
  ].join("\n");
