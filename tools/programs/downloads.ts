import { spawn } from "node:child_process";
import { createHash, hash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

import { fetch } from "../../components/settings/shell-proxy";
import { reasonOf } from "../shared/files";
import type { Step } from "../shared/progress";
import { withTimeLimit } from "../shared/concurrency";
import { run } from "../shared/run";
import { messageOf, UserError } from "../shared/user-error";
import type { Download, OfficialImage, Published, Tool } from "./tools";

/** A user who waits for a build should learn soon whether there is a quicker way. */
const answerWithin = 5000;
const room = "make room, or name another folder for programs by XDG_CACHE_HOME";
const silentAtMost = 30_000;

/** The official source cannot be used; what else there is may be tried. */
export class NoAnswer extends Error {}

/**
 * Fetches a tool from its official source into `folder`, refusing what does not match its published
 * SHA-256.
 */
export async function download(
  tool: Tool,
  folder: string,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const { downloads } = tool;
  // All hashes first: they are small, and show whether the source answers at all.
  const hashes = await Promise.all(downloads.map((one) => published(one, signal)));
  for (const [index, one] of downloads.entries()) {
    await fetchOne(one, hashes[index]!, folder, step, signal);
  }
}

async function fetchOne(
  { url, members, binary }: Download,
  expected: string,
  folder: string,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const file = join(folder, `.${basename(url)}`);
  verify(url, await save(url, file, step, signal), expected);
  if (binary !== undefined) {
    await rename(file, join(folder, binary));
    await chmod(join(folder, binary), 0o755);
    return;
  }
  for (const [name, member] of Object.entries(members ?? {})) {
    await unpack(file, member, join(folder, name));
  }
  await rm(file);
}

/** @throws UserError when a download's SHA-256 is not the expected one */
export function verify(url: string, got: string, expected: string): void {
  if (got === expected) return;
  throw new UserError(
    `${url} is not what its publisher says: SHA-256 is ${got}, expected ${expected}; ` +
      "something between here and there changes downloads, or the file is damaged: try again, or from another network",
  );
}

/**
 * Saves a download, and returns its SHA-256; `name` is what progress calls it, `firstWithin` how many milliseconds the
 * first byte may take, and `fix` what helps where the file cannot be written.
 *
 * @throws NoAnswer when nothing comes in that time, or after the first byte for 30 s; UserError when
 *   the file cannot be written
 */
export async function save(
  url: string,
  file: string,
  step: Step,
  signal: AbortSignal,
  { name = basename(url), firstWithin = answerWithin, fix = room } = {},
): Promise<string> {
  const stalled = new AbortController();
  let timer = setTimeout(() => stalled.abort(), firstWithin);
  const both = AbortSignal.any([signal, stalled.signal]);
  try {
    const response = await fetch(url, { signal: both });
    if (!response.ok || !response.body) throw new Error(`answered ${response.status}`);
    const total = Number(response.headers.get("content-length") ?? 0);
    const hash = createHash("sha256");
    let bytes = 0;
    const meter = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        clearTimeout(timer);
        timer = setTimeout(() => stalled.abort(), silentAtMost);
        hash.update(chunk);
        bytes += chunk.length;
        step.update(
          `downloading ${name}, ${megabytes(bytes)}${total ? ` of ${megabytes(total)}` : ""}`,
        );
        next(null, chunk);
      },
    });
    await pipeline(Readable.fromWeb(response.body as never), meter, createWriteStream(file), {
      signal: both,
    });
    return hash.digest("hex");
  } catch (error) {
    signal.throwIfAborted();
    throwIfUnwritten(file, error, fix);
    throw new NoAnswer(`${url}: ${stalled.signal.aborted ? "silence" : reason(error)}`);
  } finally {
    clearTimeout(timer);
  }
}

const published = ({ url, sha256 }: Download, signal: AbortSignal): Promise<string> =>
  ask(sha256.url, {}, signal, async (response) => {
    const found = hashIn(await response.text(), sha256.kind, basename(url));
    if (found === undefined) throw new Error(`names no SHA-256 of ${basename(url)}`);
    return found;
  });

/**
 * What is read from a small answer.
 *
 * @throws NoAnswer when it is not there within 5 s, or cannot be read
 */
export async function ask<T>(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  try {
    return await withTimeLimit(answerWithin, signal, async (either) => {
      const response = await fetch(url, { headers, signal: either });
      if (!response.ok) throw new Error(`answered ${response.status}`);
      return read(response);
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new NoAnswer(`${url}: ${reason(error)}`);
  }
}

/** A file's SHA-256 in what its publisher wrote about it. */
export function hashIn(text: string, kind: Published["kind"], file: string): string | undefined {
  if (kind === "release") return inRelease(text, file);
  for (const line of text.split("\n")) {
    const [, hash, name] = /^([0-9a-f]{64})(?:\s+\*?(\S+))?\s*$/.exec(line) ?? [];
    if (hash !== undefined && (kind === "bare" || name === file)) return hash;
  }
  return undefined;
}

function inRelease(text: string, file: string): string | undefined {
  const { assets = [] } = JSON.parse(text) as { assets?: { name: string; digest?: string }[] };
  const digest = assets.find(({ name }) => name === file)?.digest;
  return /^sha256:([0-9a-f]{64})$/.exec(digest ?? "")?.[1];
}

/** Writes one file of an archive, compressed or not, as a program. */
export function unpack(archive: string, member: string, target: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const tar = spawn("tar", ["-xOf", archive, member], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise<number | null>((end) => tar.on("close", end));
    tar.on("error", reject);
    pipeline(tar.stdout, createWriteStream(target, { mode: 0o755 }))
      .then(() => ended)
      .then((code) =>
        code === 0 ? resolve() : reject(new Error(`tar ended with ${code} on ${member}`)),
      )
      .catch((error: unknown) => {
        throwIfUnwritten(target, error);
        throw error;
      })
      .catch(reject);
  });
}

/** What a stream says of its file names a call of the system; what fetch says, its cause alone. */
function throwIfUnwritten(file: string, error: unknown, fix = room): void {
  if ((error as NodeJS.ErrnoException).syscall === undefined) return;
  throw new UserError(`${file} cannot be written: ${reasonOf(error)}; ${fix}`);
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** fetch hides why it failed in its error's cause. */
function reason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? messageOf(error) : messageOf(cause);
}

/** An index or a manifest, each under OCI's name and Docker's. */
const accept = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

interface Part {
  readonly digest: string;
}

interface Index {
  readonly manifests: readonly (Part & {
    readonly platform?: { readonly os: string; readonly architecture: string };
  })[];
}

interface Manifest {
  readonly layers: readonly Part[];
}

/**
 * Fetches a program out of its official image into `folder`, refusing what its digest does not match.
 * registry.k8s.io and MCR ask for no token where an image is read.
 *
 * @throws NoAnswer when the registry does not answer, or what it has does not run here
 * @see https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull
 */
export async function downloadFromImage(
  program: string,
  { repository, reference }: OfficialImage,
  folder: string,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  const layers = await layersOf(repository, reference, signal);
  const drafts = join(folder, ".image");
  const layer = join(drafts, "layer");
  const draft = join(drafts, program);
  await mkdir(drafts);
  try {
    // A later layer's file replaces an earlier one's, and a program usually is in the last.
    for (const { digest } of layers.toReversed()) {
      const url = `${repository}/blobs/${digest}`;
      verify(
        url,
        await save(url, layer, step, signal, { name: `${program}'s image` }),
        hexOf(digest),
      );
      if (await isTaken(program, layer, draft, signal)) {
        await rename(draft, join(folder, program));
        return;
      }
    }
    throw new NoAnswer(`${repository}: no layer of ${reference} has a file ${program}`);
  } finally {
    await rm(drafts, { recursive: true });
  }
}

async function layersOf(
  repository: string,
  reference: string,
  signal: AbortSignal,
): Promise<readonly Part[]> {
  const url = `${repository}/manifests/${reference}`;
  const { text, digest } = await ask(url, { accept }, signal, async (response) => ({
    text: await response.text(),
    digest: response.headers.get("docker-content-digest"),
  }));
  const expected = reference.startsWith("sha256:") ? reference : digest;
  if (expected === null) throw new NoAnswer(`${url}: the registry says no digest`);
  verify(url, hash("sha256", text), hexOf(expected));
  const found = JSON.parse(text) as Index | Manifest;
  if ("layers" in found) return found.layers;
  const ours = found.manifests.find(
    ({ platform }) => platform?.os === "linux" && platform.architecture === "amd64",
  );
  if (ours === undefined) throw new NoAnswer(`${url}: there is none for linux/amd64`);
  return layersOf(repository, ours.digest, signal);
}

const hexOf = (digest: string): string => digest.replace("sha256:", "");

/**
 * Takes a program out of a layer that has it. Those of MCR's images may be linked with the C library
 * there, which may be newer than the one here.
 *
 * @throws NoAnswer when it does not run here
 */
async function isTaken(
  program: string,
  layer: string,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const listed = await run(["tar", "-tvf", layer], { signal });
    // A regular file: an image may also have links of the name.
    const member = new RegExp(String.raw`^-.* ((?:\S*/)?${program})$`, "m").exec(listed)?.[1];
    if (member === undefined) return false;
    await unpack(layer, member, target);
    await run([target, "--version"], { signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    throw new NoAnswer(`${program} of its image does not run here: ${messageOf(error)}`);
  }
}
