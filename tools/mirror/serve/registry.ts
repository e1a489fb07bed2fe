import type { IncomingMessage, ServerResponse } from "node:http";

import { type Descriptor, ImageStore, partsOf } from "../images/image-store";
import { sendFile } from "./send-file";

/**
 * The part of a registry that machines pull from: every image under the name that it has upstream,
 * without the registry.
 *
 * @see https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pull
 */
export function answerRegistry(
  folder: string,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  response.setHeader("docker-distribution-api-version", "registry/2.0");
  if (path === "/v2" || path === "/v2/") {
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    return;
  }
  const [, name, kind, reference] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
  if (!name || !kind || !reference) return refuse("UNSUPPORTED", path, response);
  const store = new ImageStore(folder);
  const images = store.images.filter((one) => partsOf(store.nameOf(one)).name === name);
  if (images.length === 0) return refuse("NAME_UNKNOWN", name, response);
  const found =
    kind === "manifests"
      ? images.find((one) => isMeant(one, store, reference))
      : images
          .flatMap((one) => [store.manifest(one).config, ...store.manifest(one).layers])
          .find(({ digest }) => digest === reference);
  if (!found) {
    return refuse(kind === "blobs" ? "BLOB_UNKNOWN" : "MANIFEST_UNKNOWN", reference, response);
  }
  const contentType = kind === "blobs" ? "application/octet-stream" : found.mediaType;
  const headers = { "docker-content-digest": found.digest };
  sendFile(store.blobPath(found.digest), contentType, headers, request, response);
}

const isMeant = (image: Descriptor, store: ImageStore, reference: string): boolean =>
  image.digest === reference || partsOf(store.nameOf(image)).tag === reference;

function refuse(code: string, what: string, response: ServerResponse): void {
  const body = JSON.stringify({ errors: [{ code, message: `not in this mirror: ${what}` }] });
  response.writeHead(404, { "content-type": "application/json" }).end(body);
}
