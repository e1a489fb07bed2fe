import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { ImageStore } from "./image-store";
import { run } from "../programs";

/**
 * Writes the images of a mirror, but those left out, into one file that `ctr images import` and
 * `docker load` read.
 */
export async function imageArchive(
  mirror: string,
  target: string,
  leftOut: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const draft = `${target}.new`;
  const folder = `${target}.images`;
  const sameEveryTime = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const parts = ["oci-layout", "index.json", "blobs"];
  try {
    await run("cp", ["--archive", "--link", join(mirror, "images"), folder], { signal });
    const store = new ImageStore(folder);
    const names = store.images.map((image) => store.nameOf(image));
    store.keepOnly(new Set(names.filter((name) => !leftOut.has(name))));
    const create = ["--create", ...sameEveryTime, "--file", draft, "--directory", folder];
    await run("tar", [...create, ...parts], { signal });
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
    rmSync(folder, { recursive: true, force: true });
  }
}
