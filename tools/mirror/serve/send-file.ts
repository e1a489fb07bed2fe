import { createReadStream, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";

/** Answers with a file, or without it when only its size was asked for. */
export function sendFile(
  file: string,
  contentType: string,
  headers: Readonly<Record<string, string>>,
  { method }: IncomingMessage,
  response: ServerResponse,
): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "content-type": contentType,
    "content-length": found.size,
    "last-modified": found.mtime.toUTCString(),
    ...headers,
  });
  if (method === "HEAD") response.end();
  // A client that goes away is no matter.
  else pipeline(createReadStream(file), response, () => undefined);
}
