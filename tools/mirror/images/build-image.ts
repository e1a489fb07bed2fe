import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { type Descriptor, type ImageLayout, mediaTypes } from "./image-layout";
import { type LayerRecipe, type LayerSources, packLayer } from "./layers";

/** An image that is built here: its layers from the lowest, and how it runs. */
export interface ImageRecipe {
  readonly layers: readonly LayerRecipe[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly user?: string;
}

/** Where every image here keeps its programs, so that a pod may name them without a path. */
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Builds images in a layout. Layers of several images are built once. They are not compressed, since
 * the network is fast and an emulated processor may have to unpack them.
 */
export class ImageBuilder {
  readonly #layers = new Map<string, Promise<Descriptor>>();

  constructor(
    private readonly layout: ImageLayout,
    private readonly sources: LayerSources,
    /** A folder on the layout's file system for what is not finished. */
    private readonly drafts: string,
  ) {}

  async build({ layers: recipes, entrypoint, command, user }: ImageRecipe): Promise<Descriptor> {
    const layers: Descriptor[] = [];
    for (const recipe of recipes) layers.push(await this.#layer(recipe));
    const config = this.layout.add(
      mediaTypes.config,
      JSON.stringify({
        created: "1970-01-01T00:00:00Z",
        architecture: "amd64",
        os: "linux",
        config: { Env: [path], Entrypoint: entrypoint, Cmd: command, User: user },
        rootfs: { type: "layers", diff_ids: layers.map(({ digest }) => digest) },
      }),
    );
    const { manifest: mediaType } = mediaTypes;
    return this.layout.add(
      mediaType,
      JSON.stringify({ schemaVersion: 2, mediaType, config, layers }),
    );
  }

  #layer(recipe: LayerRecipe): Promise<Descriptor> {
    const key = JSON.stringify(recipe);
    const known = this.#layers.get(key);
    if (known) return known;
    const made = this.#make(recipe, join(this.drafts, `layer-${this.#layers.size}`));
    this.#layers.set(key, made);
    return made;
  }

  async #make(recipe: LayerRecipe, draft: string): Promise<Descriptor> {
    mkdirSync(draft, { recursive: true });
    const tar = join(draft, "layer.tar");
    await packLayer(recipe, join(draft, "tree"), tar, this.sources);
    const layer = await this.layout.take(mediaTypes.layer, tar);
    rmSync(draft, { recursive: true });
    return layer;
  }
}
