import { chmodSync, constants, copyFileSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

import { run } from "../../shared/run";
import type { Package } from "../packages/archive-packages";
import { type Descriptor, type ImageLayout, mediaTypes } from "./image-layout";

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

/** What one layer of an image consists of. */
export type LayerRecipe =
  /** Executables by their place in the image. */
  | { readonly kind: "binaries"; readonly binaries: Readonly<Record<string, string>> }
  /** Packages of Debian with what they depend on, without what their scripts would do. */
  | {
      readonly kind: "packages";
      readonly packages: readonly string[];
      readonly links: Readonly<Record<string, string>>;
    }
  /** busybox under the name of each of its commands, and world-writable folders. */
  | { readonly kind: "busybox"; readonly folders: readonly string[] };

export interface LayerSources {
  pathOf(binary: string): Promise<string>;
  debianPackages(names: readonly string[]): Promise<readonly Package[]>;
  readonly signal: AbortSignal;
}

/** Fills `tree`, an empty folder, and packs it as a layer at `target`, reproducibly. */
export async function packLayer(
  recipe: LayerRecipe,
  tree: string,
  target: string,
  sources: LayerSources,
): Promise<void> {
  mkdirSync(tree, { recursive: true });
  if (recipe.kind === "binaries") await placeBinaries(recipe.binaries, tree, sources);
  else if (recipe.kind === "busybox") await placeBusybox(recipe.folders, tree, sources);
  else {
    await unpack(recipe.packages, tree, sources);
    for (const [path, to] of Object.entries(recipe.links)) symlinkSync(to, join(tree, path));
  }
  const reproducible = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  await run(["tar", "--create", ...reproducible, "--file", target, "--directory", tree, "."], {
    signal: sources.signal,
  });
}

async function placeBinaries(
  binaries: Readonly<Record<string, string>>,
  tree: string,
  { pathOf }: LayerSources,
): Promise<void> {
  for (const [path, binary] of Object.entries(binaries)) {
    const at = join(tree, path);
    mkdirSync(dirname(at), { recursive: true });
    copyFileSync(await pathOf(binary), at, constants.COPYFILE_FICLONE);
  }
}

async function placeBusybox(
  folders: readonly string[],
  tree: string,
  sources: LayerSources,
): Promise<void> {
  for (const folder of folders) {
    mkdirSync(join(tree, folder), { recursive: true });
    chmodSync(join(tree, folder), 0o1777);
  }
  await unpack(["busybox-static"], tree, sources);
  const applets = await run([join(tree, "usr/bin/busybox"), "--list"], { signal: sources.signal });
  for (const name of applets.trim().split("\n")) {
    if (name !== "busybox") symlinkSync("busybox", join(tree, "usr/bin", name));
  }
}

/** Documentation, which is not needed in a container. */
const documentation = ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"];

async function unpack(
  names: readonly string[],
  tree: string,
  { debianPackages, signal }: LayerSources,
): Promise<void> {
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(tree, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(tree, name));
  }
  for (const { file } of await debianPackages(names)) {
    await run(["dpkg-deb", "--extract", file, tree], { signal });
  }
  for (const path of documentation) rmSync(join(tree, path), { recursive: true, force: true });
}
