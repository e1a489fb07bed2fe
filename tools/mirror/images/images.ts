import { join } from "node:path";

import { ImageBuilder, type ImageRecipe } from "./build-image";
import { type Descriptor, ImageStore, partsOf } from "./image-store";
import type { LayerSources } from "./layers";
import { ownImage } from "./own-images";
import type { Absence, Item, Report } from "../report";
import type { Sources } from "../sources";
import type { Stamps } from "../stamps";
import { placeIn } from "../tools";
import { copyImage } from "./upstream-images";
import { type WantedImage, without } from "./wanted-images";

export interface ImageOptions extends LayerSources {
  readonly store: ImageStore;
  readonly stamps: Stamps;
  readonly sources: Sources;
  /** A folder on the store's file system for what is not finished. */
  readonly drafts: string;
  onImage(name: string): void;
}

/** The address by which it is checked whether a registry can be reached. */
export const registryAddress = (registry: string): string =>
  `https://${registry === "docker.io" ? "registry-1.docker.io" : registry}/v2/`;

/** Fills the store with these images, and with no others. */
export async function provideImages(
  wanted: readonly WantedImage[],
  options: ImageOptions,
): Promise<Report> {
  const { store, drafts } = options;
  const builder = new ImageBuilder(store, options, drafts);
  const items: Item[] = [];
  const absent: WantedImage[] = [];
  for (const one of wanted) {
    options.onImage(one.image);
    const from = await provide(one.image, builder, options);
    if (from === undefined) absent.push(one);
    else items.push({ what: one.image, from });
  }
  store.keepOnly(new Set(items.map(({ what }) => what)));
  return { items, absences: byPart(absent) };
}

/** Makes sure of one image and says where it came from; undefined when it cannot be had. */
async function provide(
  image: string,
  builder: ImageBuilder,
  options: ImageOptions,
): Promise<string | undefined> {
  const { store, stamps, sources } = options;
  const own = ownImage(image);
  const recipe = { own, tools: own && versionsOf(own.recipe) };
  const known = stamps.find(image, recipe);
  const present = store.find(image);
  const isThere = known !== undefined && present?.digest === known.result && store.isWhole(present);
  if (isThere && known.isOfficial) return known.from;
  const keep = (made: Descriptor, isOfficial: boolean, from: string): string => {
    store.name(image, made);
    return stamps.write(image, recipe, { isOfficial, from, result: made.digest }).from;
  };
  const { registry } = partsOf(image);
  if (await sources.answers(registryAddress(registry))) {
    return keep(await fetched(image, options), true, `fetched from ${registry}`);
  }
  if (isThere) return known.from;
  if (own === undefined) return undefined;
  return keep(await builder.build(own.recipe), false, `built from ${own.from}`);
}

const versionsOf = ({ layers }: ImageRecipe): string[] =>
  layers
    .flatMap((layer) => (layer.kind === "binaries" ? Object.values(layer.binaries) : []))
    .map((program) => placeIn(program).tool.version);

const fetched = async (image: string, options: ImageOptions): Promise<Descriptor> =>
  copyImage(image, {
    ...options,
    crane: await options.placeOf("crane"),
    draft: join(options.drafts, "image"),
  });

function byPart(absent: readonly WantedImage[]): Absence[] {
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
