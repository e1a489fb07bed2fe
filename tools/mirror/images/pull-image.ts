import { mkdirSync, rmSync } from "node:fs";

import { UserError } from "../../shared/user-error";
import { type Descriptor, ImageLayout } from "./image-layout";
import { run } from "../commands";

export interface PullOptions {
  readonly crane: string;
  readonly layout: ImageLayout;
  /** A folder on the layout's file system for what is not finished. */
  readonly draft: string;
  readonly signal: AbortSignal;
}

/**
 * Pulls an image for this processor architecture from its registry into the layout. Every part is
 * checked against the digest that the manifest gives.
 */
export async function pullImage(
  image: string,
  { crane, layout, draft, signal }: PullOptions,
): Promise<Descriptor> {
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const flags = ["--format", "oci", "--platform", "linux/amd64"];
    await run(crane, ["pull", ...flags, image, draft], { signal });
    const pulled = new ImageLayout(draft);
    const [found] = pulled.images;
    const { config, layers } = pulled.manifest(found!);
    const parts = new Map([...layers, config, found!].map((one) => [one.digest, one]));
    for (const part of parts.values()) {
      const { digest } = await layout.take(part.mediaType, pulled.blobPath(part.digest));
      if (digest !== part.digest) {
        throw new UserError(`${image} is damaged: a part is ${digest}, expected ${part.digest}`);
      }
    }
    return found!;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
