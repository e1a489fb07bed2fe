import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { run } from "./programs";

/** Writes all images of a mirror into one file that `ctr images import` and `docker load` read. */
export async function imageArchive(
  mirror: string,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  const draft = `${target}.new`;
  const sameEveryTime = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const parts = ["oci-layout", "index.json", "blobs"];
  try {
    await run(
      "tar",
      [
        "--create",
        ...sameEveryTime,
        "--file",
        draft,
        "--directory",
        join(mirror, "images"),
        ...parts,
      ],
      { signal },
    );
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
  }
}
