import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { ImageLayout } from "../../images/image-layout";
import { pullImage } from "../../images/provide-images";
import { smallImage, testFolder } from "../support/fixture";

const folder = testFolder();
const { signal } = new AbortController();
const name = "registry.example/program:v1";

const layoutIn = (mirror: string): ImageLayout => new ImageLayout(join(folder, mirror, "images"));

it("makes the same image of the same content, byte for byte, at any time", async () => {
  await smallImage(join(folder, "one"), name, "same");
  // Archives know seconds.
  await sleep(1100);
  await smallImage(join(folder, "two"), name, "same");
  await smallImage(join(folder, "three"), name, "other");

  const digest = (mirror: string) => layoutIn(mirror).find(name)?.digest;
  expect(digest("one")).toBe(digest("two"));
  expect(digest("one")).not.toBe(digest("three"));
});

it("gives importers the image's full name", async () => {
  await smallImage(join(folder, "named"), name, "named");
  const index = readFileSync(join(folder, "named", "images", "index.json"), "utf8");

  expect(index).toContain(`"io.containerd.image.name":"${name}"`);
});

it("forgets an image with what was its alone, and keeps what others have too", async () => {
  const mirror = join(folder, "shared");
  await smallImage(mirror, "registry.example/kept:v1", "shared");
  await smallImage(mirror, "registry.example/also:v1", "shared");
  await smallImage(mirror, "registry.example/gone:v1", "alone");
  const layout = layoutIn("shared");

  layout.keepOnly(new Set(["registry.example/kept:v1"]));

  expect(layout.images).toHaveLength(1);
  expect(layout.find("registry.example/kept:v1")).toBeDefined();
  expect(readdirSync(join(layout.folder, "blobs", "sha256"))).toHaveLength(3);
});

it("knows an image of which a part is missing or cut off", async () => {
  await smallImage(join(folder, "damaged"), name, "damaged");
  const layout = layoutIn("damaged");
  const [layer] = layout.manifest(layout.find(name)!).layers;

  writeFileSync(layout.blobPath(layer!.digest), "cut");
  expect(layout.find(name)).toBeUndefined();
  rmSync(layout.blobPath(layer!.digest));
  expect(layout.find(name)).toBeUndefined();
});

describe("an image from its own registry", () => {
  /** Stands for crane, and answers with what lies in a folder. */
  const pulling = (from: string): string => {
    const crane = join(folder, "crane");
    writeFileSync(crane, `#!/bin/sh\nfor last; do :; done\ncp -R '${from}/.' "$last"\n`);
    chmodSync(crane, 0o755);
    return crane;
  };
  const copy = (from: string, layout: ImageLayout) =>
    pullImage(name, { crane: pulling(from), layout, draft: join(folder, "draft"), signal });

  it("is taken over with all its parts", async () => {
    await smallImage(join(folder, "upstream"), name, "upstream's");
    const layout = layoutIn("copy");

    layout.name(name, await copy(join(folder, "upstream", "images"), layout), "upstream");

    expect(layout.find(name)).toBeDefined();
    expect(existsSync(join(folder, "draft"))).toBe(false);
  });

  it("is refused when a part is not what its manifest says", async () => {
    await smallImage(join(folder, "forged"), name, "upstream's");
    const forged = layoutIn("forged");
    const [layer] = forged.manifest(forged.find(name)!).layers;
    writeFileSync(forged.blobPath(layer!.digest), "something else");

    await expect(copy(forged.folder, layoutIn("refused"))).rejects.toThrow("is damaged: a part is");
  });
});
