import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve, sep } from "node:path";

import { UserError } from "../../shared/user-error";
import { answerRegistry } from "./registry";
import { sendFile } from "./send-file";

export interface MirrorServer {
  readonly url: string;
  close(): Promise<void>;
}

/** The folders of a mirror that are served as files. */
const folders = ["apt", "manifests", "cri-dockerd"];

/** Serves a mirror's folder: its files, and its images as a registry that is only read. */
export async function serveMirror(
  folder: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<MirrorServer> {
  const server = createServer((request, response) => answer(folder, request, response));
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
  return {
    url: `http://${address.includes(":") ? `[${address}]` : address}:${taken}`,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

function answer(folder: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
    return;
  }
  const path = pathOf(request);
  if (path === undefined) {
    response.writeHead(400).end();
  } else if (path === "/v2" || path.startsWith("/v2/")) {
    answerRegistry(join(folder, "images"), path, request, response);
  } else {
    const file = fileAt(folder, path);
    if (file === undefined) response.writeHead(404).end();
    else sendFile(file, "application/octet-stream", {}, request, response);
  }
}

function pathOf({ url = "" }: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(new URL(url, "http://mirror").pathname);
  } catch {
    return undefined;
  }
}

function fileAt(folder: string, path: string): string | undefined {
  const file = resolve(folder, `.${path}`);
  return folders.some((name) => file.startsWith(join(folder, name) + sep)) ? file : undefined;
}
