import { hash } from "node:crypto";
import { join } from "node:path";
import { mkdirSync, rmSync } from "node:fs";

import { ImageBuilder, type ImageRecipe, type LayerSources } from "./build-image";
import { type Descriptor, ImageLayout, partsOf } from "./image-layout";
import { builtImage } from "./built-images";
import type { Item, Missing, Report, Sources } from "../sources";
import { locate } from "../mirrored-programs";
import { type WantedImage, without } from "./wanted-images";
import { UserError } from "../../shared/user-error";
import { run } from "../../shared/run";

export interface ImageOptions extends LayerSources {
  readonly layout: ImageLayout;
  readonly sources: Sources;
  /** A folder on the layout's file system for what is not finished. */
  readonly drafts: string;
  onImage(name: string): void;
}

/** The address that shows whether a registry can be reached. */
export const registryAddress = (registry: string): string =>
  `https://${registry === "docker.io" ? "registry-1.docker.io" : registry}/v2/`;

/** Fills the layout with these images, and with no others. */
export async function provideImages(
  wanted: readonly WantedImage[],
  options: ImageOptions,
): Promise<Report> {
  const { layout, drafts } = options;
  const builder = new ImageBuilder(layout, options, drafts);
  const items: Item[] = [];
  const absent: WantedImage[] = [];
  for (const one of wanted) {
    options.onImage(one.image);
    const from = await provide(one.image, builder, options);
    if (from === undefined) absent.push(one);
    else items.push({ what: one.image, from });
  }
  layout.keepOnly(new Set(items.map(({ what }) => what)));
  return { items, missing: byPart(absent) };
}

/** Pulls or builds one image if needed. Returns where it came from; undefined if it is missing. */
async function provide(
  image: string,
  builder: ImageBuilder,
  options: ImageOptions,
): Promise<string | undefined> {
  const { layout, sources } = options;
  const present = layout.find(image)?.annotations;
  const { registry } = partsOf(image);
  const upstream = `fetched from ${registry}`;
  if (present?.["zoned.from"] === upstream) return upstream;
  if (await sources.answers(registryAddress(registry))) {
    layout.name(image, await pull(image, options), upstream);
    return upstream;
  }
  const built = builtImage(image);
  if (built === undefined) return undefined;
  const from = `built from ${built.from}`;
  const inputs = hash("sha256", JSON.stringify([built, versionsOf(built.recipe)]));
  if (present?.["zoned.inputs"] !== inputs) {
    layout.name(image, await builder.build(built.recipe), from, inputs);
  }
  return from;
}

const versionsOf = ({ layers }: ImageRecipe): string[] =>
  layers
    .flatMap((layer) => (layer.kind === "binaries" ? Object.values(layer.binaries) : []))
    .map((program) => locate(program).tool.version);

function byPart(absent: readonly WantedImage[]): Missing[] {
  const parts = new Set(absent.map(({ part }) => part));
  return [...parts].map((part) => {
    const images = absent.filter((one) => one.part === part).map(({ image }) => image);
    const registries = [...new Set(images.map((image) => partsOf(image).registry))];
    return {
      what: `${part} (${images.map((image) => partsOf(image).name.split("/").pop()).join(", ")})`,
      why: `${registries.join(", ")} ${registries.length === 1 ? "does" : "do"} not answer, and there is no way to build ${images.length === 1 ? "it" : "them"}`,
      without: without[part],
    };
  });
}

/**
 * Pulls an image for this processor architecture from its registry into the layout. Every part is
 * checked against the digest that the manifest gives.
 */
async function pull(
  image: string,
  { layout, drafts, pathOf, signal }: ImageOptions,
): Promise<Descriptor> {
  const draft = join(drafts, "image");
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const flags = ["--format", "oci", "--platform", "linux/amd64"];
    await run([await pathOf("crane"), "pull", ...flags, image, draft], { signal });
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
