import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { UserError } from "../../shared/user-error";
import { type Descriptor, ImageStore } from "./image-store";
import { run } from "../programs";

export interface CopyOptions {
  readonly crane: string;
  readonly store: ImageStore;
  /** A folder on the store's file system for what is not finished. */
  readonly draft: string;
  readonly signal: AbortSignal;
}

/**
 * Copies an image for this machine's processor from its own registry into the store. Every part is
 * checked against the digest that the manifest gives.
 */
export async function copyImage(
  image: string,
  { crane, store, draft, signal }: CopyOptions,
): Promise<Descriptor> {
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const flags = ["--format", "oci", "--platform", "linux/amd64"];
    await run(crane, ["pull", ...flags, image, draft], { signal });
    const index = JSON.parse(readFileSync(join(draft, "index.json"), "utf8")) as {
      manifests: readonly [Descriptor];
    };
    const [pulled] = index.manifests;
    const from = new ImageStore(draft);
    const { config, layers } = from.manifest(pulled);
    const parts = new Map([...layers, config, pulled].map((one) => [one.digest, one]));
    for (const part of parts.values()) {
      const { digest } = await store.take(part.mediaType, from.blobPath(part.digest));
      if (digest !== part.digest) {
        throw new UserError(`${image} is damaged: a part is ${digest}, expected ${part.digest}`);
      }
    }
    return pulled;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
