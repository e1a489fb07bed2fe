import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { run } from "../../../local-azure/machines/qemu/command";
import { ImageLayout, mediaTypes } from "../../../mirror/images/image-layout";
import { testImage } from "../../../mirror/images/wanted-images";

interface Config {
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** The file by which a container says that its image is from there. */
export const wordFile = "/word";

/**
 * Puts into a registry what the mirror has not: the test image with one file more, in a layer of its own. All
 * else of it containerd may take from the mirror, which it asks first.
 */
export async function publish(
  image: string,
  word: string,
  { mirror, images }: { readonly mirror: string; readonly images: string },
): Promise<void> {
  const from = new ImageLayout(join(mirror, "images"));
  const to = new ImageLayout(images);
  const base = from.find(testImage);
  if (base === undefined) throw new Error(`the mirror has no ${testImage}`);
  const { config, layers } = from.manifest(base);
  const { rootfs, ...others } = JSON.parse(
    readFileSync(from.blobPath(config.digest), "utf8"),
  ) as Config;
  mkdirSync(images, { recursive: true });
  const draft = mkdtempSync(join(images, "draft-"));
  try {
    writeFileSync(join(draft, wordFile), word);
    const tar = join(draft, "layer.tar");
    const same = ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    await run(["tar", "--create", ...same, "--file", tar, "--directory", draft, `.${wordFile}`]);
    const layer = await to.take(mediaTypes.layer, tar);
    for (const { digest } of layers) copyFileSync(from.blobPath(digest), to.blobPath(digest));
    const added = to.add(
      mediaTypes.config,
      JSON.stringify({
        ...others,
        rootfs: { ...rootfs, diff_ids: [...rootfs.diff_ids, layer.digest] },
      }),
    );
    const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config: added };
    to.name(
      image,
      to.add(mediaTypes.manifest, JSON.stringify({ ...manifest, layers: [...layers, layer] })),
      `${testImage} and a word`,
    );
  } finally {
    rmSync(draft, { recursive: true });
  }
}
