import { ImageLayout, nameOf, partsOf } from "../images/image-layout";

/** A file, and the headers that a client gets with it. */
export interface Answer {
  readonly file: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What machines pull from a registry: manifests of images, each under its upstream name without the
 * registry, and blobs. Undefined for what is not there.
 *
 * @see https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull
 */
export function registryAnswer(folder: string, path: string): Answer | undefined {
  const layout = new ImageLayout(folder);
  const answer = (digest: string, mediaType: string): Answer => ({
    file: layout.blobPath(digest),
    headers: { "content-type": mediaType, "docker-content-digest": digest },
  });
  const [, blob] = /\/blobs\/(sha256:[0-9a-f]{64})$/.exec(path) ?? [];
  if (blob) return answer(blob, "application/octet-stream");
  const image = layout.images.find((one) => {
    const { name, tag } = partsOf(nameOf(one));
    return [tag, one.digest].some((reference) => path === `/v2/${name}/manifests/${reference}`);
  });
  return image && answer(image.digest, image.mediaType);
}
