import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import type { Step } from "../shared/progress";
import { messageOf } from "../shared/user-error";
import { ask, NoAnswer, save, unpack, verify } from "./downloads";
import type { OfficialImage } from "./tools";

const execute = promisify(execFile);

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
    const { stdout } = await execute("tar", ["-tvf", layer], { signal, maxBuffer: Infinity });
    // A regular file: an image may also have links of the name.
    const member = new RegExp(String.raw`^-.* ((?:\S*/)?${program})$`, "m").exec(stdout)?.[1];
    if (member === undefined) return false;
    await unpack(layer, member, target);
    await execute(target, ["--version"], { signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    throw new NoAnswer(`${program} of its image does not run here: ${messageOf(error)}`);
  }
}
