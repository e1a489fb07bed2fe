import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../shared/files";
import { sha256, sha256OfFile } from "../hash";

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
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ImageManifest {
  readonly mediaType: string;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** A full name's parts: registry, name there, tag. */
export function partsOf(image: string): { registry: string; name: string; tag: string } {
  const [, registry, name, tag] = /^([^/]+)\/(.+):([^:/]+)$/.exec(image) ?? [];
  if (registry && name && tag) return { registry, name, tag };
  throw new Error(`${image} is no full name of an image: registry/name:tag`);
}

/** By which containerd names what it imports. */
const fullName = "io.containerd.image.name";
const refName = "org.opencontainers.image.ref.name";

/** Images by their full names, as a folder that the OCI image layout describes. */
export class ImageStore {
  constructor(readonly folder: string) {}

  blobPath(digest: string): string {
    return join(this.folder, "blobs", digest.replace(":", "/"));
  }

  get images(): readonly Descriptor[] {
    try {
      const text = readFileSync(join(this.folder, "index.json"), "utf8");
      return (JSON.parse(text) as { manifests: Descriptor[] }).manifests;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }

  nameOf({ annotations }: Descriptor): string {
    return annotations?.[fullName] ?? "";
  }

  find(name: string): Descriptor | undefined {
    return this.images.find((one) => this.nameOf(one) === name);
  }

  /** Whether every part of an image is there. */
  isWhole(image: Descriptor): boolean {
    if (!this.#has(image)) return false;
    const { config, layers } = this.manifest(image);
    return [config, ...layers].every((one) => this.#has(one));
  }

  manifest({ digest }: Descriptor): ImageManifest {
    return JSON.parse(readFileSync(this.blobPath(digest), "utf8")) as ImageManifest;
  }

  add(mediaType: string, content: string): Descriptor {
    const digest = `sha256:${sha256(content)}`;
    const path = this.#room(digest);
    if (!existsSync(path)) {
      writeFileSync(`${path}.new`, content);
      renameSync(`${path}.new`, path);
    }
    return { mediaType, digest, size: Buffer.byteLength(content) };
  }

  /** Takes a file of this file system over. */
  async take(mediaType: string, file: string): Promise<Descriptor> {
    const digest = `sha256:${await sha256OfFile(file)}`;
    const { size } = statSync(file);
    renameSync(file, this.#room(digest));
    return { mediaType, digest, size };
  }

  /** Gives an image its name, also when another had it. */
  name(name: string, { mediaType, digest, size }: Descriptor): void {
    const tag = name.slice(name.lastIndexOf(":") + 1);
    const annotations = { [fullName]: name, [refName]: tag };
    const others = this.images.filter((one) => this.nameOf(one) !== name);
    this.#writeIndex([...others, { mediaType, digest, size, annotations }]);
  }

  /** Forgets all images but these, and what belongs to none of them. */
  keepOnly(names: ReadonlySet<string>): void {
    const kept = this.images.filter((one) => names.has(this.nameOf(one)));
    if (kept.length < this.images.length) this.#writeIndex(kept);
    const blobs = new Set(
      kept.flatMap((image) => {
        const { config, layers } = this.manifest(image);
        return [image, config, ...layers].map(({ digest }) => digest.replace("sha256:", ""));
      }),
    );
    const folder = join(this.folder, "blobs", "sha256");
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      if (!blobs.has(name)) rmSync(join(folder, name), { recursive: true, force: true });
    }
  }

  #has({ digest, size }: Descriptor): boolean {
    return statSync(this.blobPath(digest), { throwIfNoEntry: false })?.size === size;
  }

  #room(digest: string): string {
    mkdirSync(join(this.folder, "blobs", "sha256"), { recursive: true });
    return this.blobPath(digest);
  }

  #writeIndex(images: readonly Descriptor[]): void {
    const manifests = [...images].sort((a, b) => (this.nameOf(a) < this.nameOf(b) ? -1 : 1));
    const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
    writeWhole(join(this.folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
    writeWhole(join(this.folder, "index.json"), JSON.stringify(index));
  }
}
