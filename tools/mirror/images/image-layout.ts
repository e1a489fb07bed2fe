import { hash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";

import { sha256OfFile, writeWhole } from "../../shared/files";

export const mediaTypes = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
} as const;

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export interface ImageManifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** An image in the index. containerd names what it imports by the first annotation. */
export interface Image extends Descriptor {
  readonly annotations: {
    readonly "io.containerd.image.name": string;
    readonly "org.opencontainers.image.ref.name": string;
    /** Where it came from, in words. */
    readonly "zoned.from": string;
    /** A digest of all that it was built from; none for upstream's own. */
    readonly "zoned.inputs"?: string;
  };
}

/** A full name's parts: registry, name there, tag. */
export function partsOf(image: string): { registry: string; name: string; tag: string } {
  const [, registry, name, tag] = /^([^/]+)\/(.+):([^:/]+)$/.exec(image) ?? [];
  if (registry && name && tag) return { registry, name, tag };
  throw new Error(`${image} is no full name of an image: registry/name:tag`);
}

export const nameOf = ({ annotations }: Image): string => annotations["io.containerd.image.name"];

/**
 * A folder of images as `crane pull --format oci` writes and `ctr images import` reads it.
 *
 * @see https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
export class ImageLayout {
  constructor(readonly folder: string) {}

  blobPath(digest: string): string {
    return join(this.folder, "blobs", digest.replace(":", "/"));
  }

  get images(): readonly Image[] {
    const index = join(this.folder, "index.json");
    if (!existsSync(index)) return [];
    return (JSON.parse(readFileSync(index, "utf8")) as { manifests: Image[] }).manifests;
  }

  manifest({ digest }: Descriptor): ImageManifest {
    return JSON.parse(readFileSync(this.blobPath(digest), "utf8")) as ImageManifest;
  }

  /** The image of this name, if all of it is there. */
  find(name: string): Image | undefined {
    const image = this.images.find((one) => nameOf(one) === name);
    return image && this.#has(image) && this.#partsOf(image).every((one) => this.#has(one))
      ? image
      : undefined;
  }

  add(mediaType: string, content: string): Descriptor {
    const digest = `sha256:${hash("sha256", content)}`;
    writeWhole(this.#room(digest), content);
    return { mediaType, digest, size: Buffer.byteLength(content) };
  }

  /** Moves a file of this file system into the layout. */
  async take(mediaType: string, file: string): Promise<Descriptor> {
    const digest = `sha256:${await sha256OfFile(file)}`;
    const { size } = statSync(file);
    renameSync(file, this.#room(digest));
    return { mediaType, digest, size };
  }

  /** Gives an image its name, and takes it from another image that has it. */
  name(name: string, { mediaType, digest, size }: Descriptor, from: string, inputs?: string): void {
    const annotations = {
      "io.containerd.image.name": name,
      "org.opencontainers.image.ref.name": partsOf(name).tag,
      "zoned.from": from,
      "zoned.inputs": inputs,
    };
    const others = this.images.filter((one) => nameOf(one) !== name);
    this.#writeIndex([...others, { mediaType, digest, size, annotations }]);
  }

  /** Removes all other images, and all blobs that no image has. */
  keepOnly(names: ReadonlySet<string>): void {
    const kept = this.images.filter((one) => names.has(nameOf(one)));
    if (kept.length < this.images.length) this.#writeIndex(kept);
    const parts = kept.flatMap((image) => [image, ...this.#partsOf(image)]);
    const blobs = new Set(parts.map(({ digest }) => digest.replace("sha256:", "")));
    const folder = join(this.folder, "blobs", "sha256");
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      if (!blobs.has(name)) rmSync(join(folder, name), { recursive: true, force: true });
    }
  }

  #partsOf(image: Descriptor): Descriptor[] {
    const { config, layers } = this.manifest(image);
    return [config, ...layers];
  }

  #has({ digest, size }: Descriptor): boolean {
    return statSync(this.blobPath(digest), { throwIfNoEntry: false })?.size === size;
  }

  #room(digest: string): string {
    mkdirSync(join(this.folder, "blobs", "sha256"), { recursive: true });
    return this.blobPath(digest);
  }

  #writeIndex(images: readonly Image[]): void {
    const manifests = [...images].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
    writeWhole(join(this.folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
    writeWhole(join(this.folder, "index.json"), JSON.stringify(index));
  }
}
