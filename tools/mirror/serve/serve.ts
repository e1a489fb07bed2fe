import { createReadStream, type Stats, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve, sep } from "node:path";
import { pipeline } from "node:stream";

import { messageOf, UserError } from "../../shared/user-error";
import { ImageLayout, nameOf, partsOf } from "../images/image-layout";

export interface MirrorServer {
  /** With ADDRESS in it where it is served at all addresses of this machine. */
  readonly url: string;
  close(): Promise<void>;
}

/** The folders of a mirror that are served as files. */
const folders = ["apt", "manifests", "cri-dockerd", "credential-provider"];

/** Serves a mirror's folder: its files, and its images as a read-only registry. */
export async function serveMirror(
  folder: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<MirrorServer> {
  const server = createServer((request, response) => answerFrom(folder, request, response));
  await new Promise<void>((listening, failed) => {
    server.once("error", (error) =>
      failed(
        new UserError(
          `${address} port ${port} cannot be served: ${error.message}; choose an address of this machine and a free port`,
        ),
      ),
    );
    server.listen(port, address, listening);
  });
  const { port: taken } = server.address() as AddressInfo;
  // Each machine would ask itself at an address that stands for all of its own.
  const host = ["0.0.0.0", "::"].includes(address) ? "ADDRESS" : address;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}`,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

/** Answers a client of a mirror's folder. Whatever is asked, the next client is answered too. */
export function answerFrom(
  folder: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
    return;
  }
  const path = requestedPath(request);
  if (path === "/v2" || path === "/v2/") {
    response.setHeader("docker-distribution-api-version", "registry/2.0").end("{}");
    return;
  }
  let found: Found | undefined;
  try {
    found = find(folder, path);
  } catch (error) {
    response.writeHead(500).end(`${messageOf(error)}\n`);
    return;
  }
  if (!found) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "content-length": found.stats.size,
    "last-modified": found.stats.mtime.toUTCString(),
    ...found.headers,
  });
  if (request.method === "HEAD") response.end();
  // A client may end the connection at any time.
  else pipeline(createReadStream(found.file), response, () => undefined);
}

function find(folder: string, path: string): Found | undefined {
  const answer = path.startsWith("/v2/")
    ? registryAnswer(join(folder, "images"), path)
    : fileAnswer(folder, path);
  if (!answer) return undefined;
  const stats = statOf(answer.file);
  return stats?.isFile() ? { ...answer, stats } : undefined;
}

/** Undefined for what no file can be called, too: a path is of anybody's choice. */
function statOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    return undefined;
  }
}

/** The decoded path; empty if its escapes are malformed. */
function requestedPath({ url = "" }: IncomingMessage): string {
  try {
    return decodeURIComponent(new URL(url, "http://mirror").pathname);
  } catch {
    return "";
  }
}

function fileAnswer(folder: string, path: string): Answer | undefined {
  const file = resolve(folder, `.${path}`);
  if (!folders.some((name) => file.startsWith(join(folder, name) + sep))) return undefined;
  return { file, headers: { "content-type": "application/octet-stream" } };
}

/** A file, and the headers that a client gets with it. */
export interface Answer {
  readonly file: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Found extends Answer {
  readonly stats: Stats;
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
