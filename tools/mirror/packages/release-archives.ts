import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { credentialProviderArchive, versions } from "../../../components/versions";
import { NoAnswer, save } from "../../programs/downloads";
import { sha256OfFile, writeWhole } from "../../shared/files";
import { run } from "../../shared/run";
import type { Item, Missing } from "../sources";

/** An archive that machines unpack a program from. */
interface ReleaseArchive {
  readonly url: string;
  /** What a stack without it sets; undefined where it can be built. */
  readonly without?: string;
  /** The program in it, and the built one that takes its place where the archive cannot be had. */
  readonly program?: { readonly name: string; readonly built: string };
}

const criDockerd: ReleaseArchive = {
  url: `https://github.com/Mirantis/cri-dockerd/releases/download/v${versions.criDockerd}/cri-dockerd-${versions.criDockerd}.amd64.tgz`,
  without: "pulumi config set containerRuntime docker",
};

const credentialProvider = (kubernetesVersion: string): ReleaseArchive => ({
  url: credentialProviderArchive(kubernetesVersion),
  program: { name: "azure-acr-credential-provider", built: "acr-credential-provider" },
});

/** By the folder of a mirror that has them. */
export const releaseArchives = (
  kubernetesVersions: readonly string[],
): Readonly<Record<string, readonly ReleaseArchive[]>> => ({
  "cri-dockerd": [criDockerd],
  "credential-provider": [
    ...new Map(kubernetesVersions.map(credentialProvider).map((one) => [one.url, one])).values(),
  ],
});

/**
 * An archive of a release, and beside it the SHA-256 that machines check it by. Upstream publishes
 * none: the sum only proves that machines get what was downloaded here.
 *
 * @param pathOf where a program is, built if it has to be
 */
export async function fetchArchive(
  { url, without, program }: ReleaseArchive,
  folder: string,
  pathOf: (program: string) => Promise<string>,
  signal: AbortSignal,
): Promise<Item | Missing> {
  const archive = url.split("/").at(-1)!;
  const file = join(folder, archive);
  if (existsSync(file) && existsSync(`${file}.sha256`)) return { what: archive, from: url };
  const draft = `${file}.new`;
  mkdirSync(folder, { recursive: true });
  let from: string;
  try {
    if (await isSaved(url, draft, signal)) {
      from = url;
    } else if (program !== undefined) {
      await pack(await pathOf(program.built), program.name, draft, signal);
      from = "built from Go modules";
    } else {
      return {
        what: archive,
        why: `${new URL(url).hostname} does not answer, and it cannot be built from Go modules`,
        without,
      };
    }
    writeWhole(`${file}.sha256`, `${await sha256OfFile(draft)}  ${archive}\n`);
    renameSync(draft, file);
    return { what: archive, from };
  } finally {
    rmSync(draft, { force: true });
  }
}

async function isSaved(url: string, file: string, signal: AbortSignal): Promise<boolean> {
  const silent = { update: () => undefined, done: () => undefined };
  // A proxy may look through all of a file before it passes the first byte on.
  const options = { firstWithin: 120_000, fix: "make room, or name another folder by --folder" };
  try {
    await save(url, file, silent, signal, options);
    return true;
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}

async function pack(
  program: string,
  name: string,
  archive: string,
  signal: AbortSignal,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "zoned-archive-"));
  try {
    await copyFile(program, join(folder, name));
    const args = ["--create", "--gzip", "--file", archive, "--directory", folder, "--owner=0"];
    await run(["tar", ...args, "--group=0", name], { signal });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
