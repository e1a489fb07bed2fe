import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { sha256OfFile } from "../../shared/files";
import { UserError } from "../../shared/user-error";
import type { Distribution } from "../sources";
import { run } from "../../shared/run";

/** A package as apt knows it. */
export interface Package {
  readonly name: string;
  readonly version: string;
  /** What an index says about it, field by field. */
  readonly fields: ReadonlyMap<string, string>;
  readonly file: string;
}

/** One more source of packages, with the key that it is signed with. */
export interface ExtraSource {
  readonly uri: string;
  readonly keyFile: string;
}

export interface ArchiveOptions {
  readonly distribution: Distribution;
  readonly extra?: ExtraSource;
  /** Where apt keeps what it knows and what it has fetched. */
  readonly folder: string;
  /** Packages that are downloaded too where there are such. */
  readonly optional?: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Downloads packages with all their dependencies, as for a machine without any package. apt does it
 * and checks the archive's signature; it neither reads nor changes this machine's own packages.
 */
export async function archivePackages(
  needed: readonly string[],
  options: ArchiveOptions,
): Promise<Package[]> {
  const { distribution, folder, optional = [], signal } = options;
  if (!existsSync(distribution.keyring)) {
    throw new UserError(
      `${distribution.keyring} is missing, and without these keys nothing of ${distribution.name} can be checked: ` +
        `sudo apt-get install ${distribution.keyringPackage}`,
    );
  }
  const settings = prepare(options);
  const apt = (program: string, ...args: string[]) =>
    run([program, ...settings, ...args], { signal });
  const install = ["install", "--yes", "--no-install-recommends"];
  await apt("apt-get", "--quiet", "-o", "APT::Update::Error-Mode=any", "update");
  const known = new Set((await apt("apt-cache", "pkgnames")).split("\n"));
  const names = [...needed, ...optional.filter((name) => known.has(name))];
  const chosen = plannedIn(await apt("apt-get", ...install, "--simulate", ...names));
  const index = await apt("apt-cache", "show", ...chosen);
  const packages = stanzas(index).map((fields) => ({
    name: fields.get("Package")!,
    version: fields.get("Version")!,
    fields,
    file: join(folder, "cache", "archives", aptsName(fields)),
  }));
  if (await dropDamaged(packages)) {
    await apt("apt-get", ...install, "--quiet", "--download-only", ...names);
  }
  return packages;
}

function prepare({ distribution, extra, folder }: ArchiveOptions): string[] {
  for (const name of ["state/lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  const status = join(folder, "state", "status");
  const sources = join(folder, "mirror.sources");
  // apt rebuilds its cache when one of them is newer.
  writeIfChanged(status, "");
  writeIfChanged(sources, sourcesOf(distribution, extra));
  const options = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": status,
    "Dir::Cache": join(folder, "cache"),
    // Container images switch them off.
    "Dir::Cache::pkgcache": "pkgcache.bin",
    "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
    "Dir::Etc::SourceList": sources,
    "Dir::Etc::SourceParts": "-",
    "Dir::Etc::Preferences": "/dev/null",
    "Dir::Etc::PreferencesParts": "/dev/null",
    "APT::Architecture": "amd64",
    "APT::Architectures": "amd64",
    // apt's own user may have no way into a home.
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::Retries": "3",
  };
  return Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

function writeIfChanged(path: string, text: string): void {
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}

const sourcesOf = (
  { suites, components, keyring }: Distribution,
  extra: ExtraSource | undefined,
): string =>
  [
    ...suites.map(
      ({ uri, suites: names }) =>
        `Types: deb\nURIs: ${uri}\nSuites: ${names}\nComponents: ${components}\nSigned-By: ${keyring}\n`,
    ),
    ...(extra ? [`Types: deb\nURIs: ${extra.uri}\nSuites: /\nSigned-By: ${extra.keyFile}\n`] : []),
  ].join("\n");

/** The packages that a simulated installation would install, each as `name=version`. */
function plannedIn(simulation: string): string[] {
  return [...simulation.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)].map(
    ([, name, version]) => `${name}=${version}`,
  );
}

/** The paragraphs of an index, each field with its continuation lines. */
export function stanzas(text: string): Map<string, string>[] {
  return text
    .split(/\n\n+/)
    .filter((paragraph) => paragraph.trim() !== "")
    .map((paragraph) => {
      const fields = paragraph.trimEnd().split(/\n(?! )/);
      return new Map(
        fields.map((field) => {
          const colon = field.indexOf(":");
          return [field.slice(0, colon), field.slice(colon + 1).trim()];
        }),
      );
    });
}

const aptsName = (fields: ReadonlyMap<string, string>): string =>
  `${fields.get("Package")}_${fields.get("Version")!.replaceAll(":", "%3a")}_${fields.get("Architecture")}.deb`;

/** Removes files that are not what the index says; true when any is missing then. */
async function dropDamaged(packages: readonly Package[]): Promise<boolean> {
  let missing = false;
  for (const { file, fields } of packages) {
    if (existsSync(file) && (await sha256OfFile(file)) === fields.get("SHA256")) continue;
    rmSync(file, { force: true });
    missing = true;
  }
  return missing;
}
