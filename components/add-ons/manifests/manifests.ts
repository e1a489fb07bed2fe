import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { RunError } from "@pulumi/pulumi/errors";

import { Manifest, manifests } from "../../versions";
import type { Settings } from "../../settings/settings";
import { fetch } from "../../settings/shell-proxy";

/** What a slow mirror may take, and how often a stumbling one is asked. */
const attempts = 3;
const secondsPerAttempt = 15;
const pauseMilliseconds = 500;

export interface Sources {
  /** Folder or address that has the files below `manifests/`; empty for none. */
  readonly mirror: string;
  /** Whether the cluster is there, which keeps its network, and needs its disk driver for its volumes. */
  readonly isBegun?: boolean;
}

/** A manifest that no place had, and why each did not. */
interface Missing {
  readonly manifest: Manifest;
  readonly tried: readonly string[];
}

interface Place {
  readonly where: string;
  read(): Promise<Buffer>;
}

/** The upstream manifests that these settings need. */
export const manifestsFor = (
  settings: Pick<Settings, "cni" | "diskDriver">,
): readonly Manifest[] => [
  ...(settings.cni === "canal" ? manifests.canal : []),
  ...(settings.diskDriver ? manifests.diskDriver : []),
];

/**
 * The text of each manifest by its path: from the cache, else from the user's own folder or address
 * (`ZONED_MANIFESTS`, else the mirror), else from upstream. Nothing passes whose SHA-256 is
 * another.
 *
 * @throws RunError that names every place that was tried for every missing file
 */
export async function findManifests(
  list: readonly Manifest[],
  sources: Sources,
): Promise<Map<string, string>> {
  const { texts, missing } = await search(list, sources);
  if (missing.length > 0) {
    throw new RunError(complaint(missing, sources));
  }
  return texts;
}

/** Whether {@link findManifests} would find them all, and what it would say if not. */
export async function obtainable(
  list: readonly Manifest[],
  sources: Sources,
): Promise<{ readonly all: boolean; readonly message: string }> {
  const { missing } = await search(list, sources);
  const all = missing.length === 0;
  return { all, message: all ? "" : complaint(missing, sources) };
}

async function search(list: readonly Manifest[], sources: Sources) {
  const texts = new Map<string, string>();
  const missing: Missing[] = [];
  await Promise.all(
    list.map(async (manifest) => {
      const answer = await obtain(manifest, sources);
      if (typeof answer === "string") {
        texts.set(manifest.path, answer);
      } else {
        missing.push({ manifest, tried: answer });
      }
    }),
  );
  missing.sort((a, b) => list.indexOf(a.manifest) - list.indexOf(b.manifest));
  return { texts, missing };
}

/** The text, or why each place did not have it. */
async function obtain(manifest: Manifest, sources: Sources): Promise<string | string[]> {
  const cached = cachePath(manifest);
  const tried: string[] = [];
  const places = [onDisk(cached, "cache"), ...ownPlaces(manifest, sources), online(manifest.url)];
  for (const [index, { where, read }] of places.entries()) {
    try {
      const bytes = await read();
      const got = sha256(bytes);
      if (got === manifest.sha256) {
        if (index > 0) {
          await keep(cached, bytes);
        }
        return bytes.toString("utf8");
      }
      tried.push(`${where}: has another file: SHA-256 ${got}, expected ${manifest.sha256}`);
      // A spoilt cache repairs itself. Whoever keeps files of their own means them, so nothing is
      // tried after.
      if (index > 0) {
        return tried;
      }
    } catch (error) {
      tried.push(`${where}: ${reasonOf(error)}`);
    }
  }
  return tried;
}

function ownPlaces({ path }: Manifest, { mirror }: Sources): Place[] {
  const own =
    process.env["ZONED_MANIFESTS"] || (mirror && `${mirror.replace(/\/+$/, "")}/manifests`);
  if (!own) {
    return [];
  }
  const isAddress = /^https?:\/\//.test(own);
  return [
    isAddress
      ? online(`${own.replace(/\/+$/, "")}/${path}`)
      : onDisk(resolve(own, path), "own folder"),
  ];
}

const onDisk = (file: string, what: string): Place => ({
  where: `${what} ${file}`,
  read: () => readFile(file),
});

const online = (url: string): Place => ({ where: url, read: () => download(url) });

/** What an address holds. A server that stumbles is asked again, one that refuses is not. */
export async function download(url: string): Promise<Buffer> {
  for (let attempt = 1; ; attempt++) {
    const last = attempt === attempts;
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(secondsPerAttempt * 1000) });
      if (response.ok) {
        return Buffer.from(await response.arrayBuffer());
      }
      const mayPass = response.status >= 500 || response.status === 429;
      if (last || !mayPass) {
        throw new Refusal(`HTTP ${response.status} ${response.statusText}`.trim());
      }
    } catch (error) {
      if (last || error instanceof Refusal) {
        throw error;
      }
    }
    await pause(attempt * pauseMilliseconds);
  }
}

/** An answer that asking again will not better. */
class Refusal extends Error {}

/**
 * Why something could not be read, in a user's words: fetch itself only ever says that it failed,
 * and why is in its cause.
 */
function reasonOf(error: unknown): string {
  const { code, name, message, cause } = error as NodeJS.ErrnoException;
  if (cause !== undefined) {
    return reasonOf(cause);
  }
  if (name === "TimeoutError") {
    return `no answer within ${secondsPerAttempt} seconds`;
  }
  return code === "ENOENT" ? "no such file" : message || code || String(error);
}

const cachePath = ({ sha256: name }: Manifest): string =>
  join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "zoned", "manifests", name);

async function keep(file: string, bytes: Buffer): Promise<void> {
  const unfinished = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(unfinished, bytes);
    await rename(unfinished, file);
  } catch {
    // A home that cannot be written to costs a download each time, and nothing else.
    await rm(unfinished, { force: true }).catch(() => undefined);
  }
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

function complaint(missing: readonly Missing[], { isBegun }: Sources): string {
  const without = [
    { list: manifests.canal, command: "pulumi config set cni flannel" },
    { list: manifests.diskDriver, command: "pulumi config set diskDriver false" },
  ]
    .filter(
      ({ list }) =>
        !isBegun && missing.some(({ manifest }) => list.some(({ path }) => path === manifest.path)),
    )
    .map(({ command }) => command);
  return [
    `${missing.length === 1 ? "this file is" : "these files are"} needed and could not be had; nothing was changed:`,
    ...missing.flatMap(({ manifest, tried }) => [
      `  - ${manifest.path}`,
      ...tried.map((line) => `      ${line}`),
    ]),
    "fix one of these and run it again:",
    `  - name a folder or address that has ${missing[0]!.manifest.path}: export ZONED_MANIFESTS=<folder or address>`,
    "  - or a folder that has the files below manifests/: pulumi config set mirror <folder>; the address of a mirror has to have all that machines download (docs/mirror.md)",
    ...(without.length > 0 ? [`  - or do without them: ${without.join("; ")}`] : []),
  ].join("\n");
}
