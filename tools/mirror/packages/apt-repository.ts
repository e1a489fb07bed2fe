import { hash } from "node:crypto";
import {
  existsSync,
  linkSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";

import { sha256OfFile } from "../../shared/files";
import { type Package, stanzas } from "./archive-packages";
import { run } from "../../shared/run";

export interface RepositoryOptions {
  /** Folder of the repository. */
  readonly folder: string;
  /** Where the signing key is kept: not where it is served. */
  readonly keys: string;
  readonly signal: AbortSignal;
}

/** A package that was built here, with the fields of its own control file. */
export async function packageIn(file: string, signal: AbortSignal): Promise<Package> {
  const [fields] = stanzas(await run(["dpkg-deb", "--field", file], { signal }));
  fields!.set("SHA256", await sha256OfFile(file));
  fields!.set("Size", String(statSync(file).size));
  return { name: fields!.get("Package")!, version: fields!.get("Version")!, fields: fields!, file };
}

/**
 * Makes the folder a flat apt repository of exactly these packages: an index, a signed Release and
 * the public key. It does not touch a repository that has these packages already.
 */
export async function writeRepository(
  packages: readonly Package[],
  { folder, keys, signal }: RepositoryOptions,
): Promise<void> {
  const pool = join(folder, "pool");
  mkdirSync(pool, { recursive: true });
  const names = new Map(packages.map((one) => [poolName(one), one.file]));
  for (const [name, file] of names) place(file, join(pool, name));
  const index = packages.map(paragraph).sort().join("\n");
  if (!isCurrent(folder, index)) await publish(index, folder, keys, signal);
  // After the index that named them was replaced.
  for (const name of readdirSync(pool)) {
    if (!names.has(name)) rmSync(join(pool, name), { force: true });
  }
}

/** Without an epoch, since a colon is not allowed in every address; the index has the whole version. */
const poolName = ({ file }: Package): string => basename(file).replace(/_\d+%3a/, "_");

/** Fields of a package that are not repeated: its place in its own archive, and weaker checksums. */
const leftOut = new Set(["Filename", "MD5sum", "SHA1", "Status", "Description-md5"]);

const paragraph = (one: Package): string =>
  [...[...one.fields].filter(([name]) => !leftOut.has(name)), ["Filename", `pool/${poolName(one)}`]]
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("");

function place(from: string, to: string): void {
  if (existsSync(to) && sameFile(from, to)) return;
  const draft = `${to}.new`;
  rmSync(draft, { force: true });
  try {
    linkSync(from, draft);
  } catch {
    // Another file system.
    copyFileSync(from, draft);
  }
  renameSync(draft, to);
}

function sameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other)];
  return (a.ino === b.ino && a.dev === b.dev) || (a.size === b.size && a.mtimeMs <= b.mtimeMs);
}

function isCurrent(folder: string, index: string): boolean {
  const files = ["InRelease", "Release.key", "Packages.gz", "Packages"];
  return (
    files.every((name) => existsSync(join(folder, name))) &&
    readFileSync(join(folder, "Packages"), "utf8") === index &&
    readFileSync(join(folder, "InRelease"), "utf8").includes(hash("sha256", index))
  );
}

async function publish(
  index: string,
  folder: string,
  keys: string,
  signal: AbortSignal,
): Promise<void> {
  const contents = { Packages: Buffer.from(index), "Packages.gz": gzipSync(index) };
  const sums = Object.entries(contents).map(
    ([name, content]) => ` ${hash("sha256", content)} ${content.length} ${name}`,
  );
  const release = [
    "Origin: zoned",
    "Label: zoned mirror",
    `Date: ${new Date().toUTCString().replace("GMT", "UTC")}`,
    "SHA256:",
    ...sums,
    "",
  ].join("\n");
  const draft = join(folder, ".new");
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft);
  const at = (name: string): string => join(draft, name);
  for (const [name, content] of Object.entries(contents)) writeFileSync(at(name), content);
  writeFileSync(at("Release"), release);
  await clearSign(
    { text: at("Release"), signed: at("InRelease"), key: at("Release.key") },
    keys,
    signal,
  );
  rmSync(at("Release"));
  for (const name of readdirSync(draft)) renameSync(at(name), join(folder, name));
  rmSync(draft, { recursive: true });
}

const owner = "zoned mirror";

/**
 * Signs a text with this user's key, which is created at the first use and kept in `home`, so that
 * machines that trust it also trust later states of the mirror.
 */
export async function clearSign(
  files: { readonly text: string; readonly signed: string; readonly key: string },
  home: string,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const gpg = (...args: string[]) =>
    run(["gpg", "--homedir", home, "--batch", ...args], { signal });
  try {
    const keys = await gpg("--list-secret-keys", "--with-colons");
    if (!/^sec:/m.test(keys)) {
      await gpg("--passphrase", "", "--quick-generate-key", owner, "ed25519", "sign", "never");
    }
    await gpg(
      "--yes",
      "--digest-algo",
      "SHA512",
      "--output",
      files.signed,
      "--clearsign",
      files.text,
    );
    await gpg("--yes", "--armor", "--output", files.key, "--export", owner);
  } finally {
    // gpg starts it, and it would go on running.
    await run(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], {
      signal: AbortSignal.timeout(10_000),
    });
  }
}
