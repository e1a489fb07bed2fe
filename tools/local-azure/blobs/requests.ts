import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

import { BlobError, invalidParameter, unsupported } from "./blob-error";
import type { Blob } from "./store";

const largestList = 16 * 1024 ** 2;
const mostBlocks = 50_000;

/** Of content whose client has said nothing of it. */
export const contentType = "application/octet-stream";

/** Headers that ask for something: ranges, conditions, leases, checks and descriptions of content. */
const wishes = /^(range$|if-|content-md5$|x-ms-(blob-|content-crc64$|lease-id$|range$))/;

/** Throws when a header asks for what is not supported, and would be left undone. */
export function checkHeaders(headers: IncomingHttpHeaders): void {
  const wish = Object.keys(headers).find((name) => wishes.test(name));
  if (wish !== undefined) throw unsupported(`the header ${wish}`);
}

/** The metadata of a blob, from the headers of the request that writes it. */
export function metadataOf({ rawHeaders }: IncomingMessage): Record<string, string> {
  // Node's own names are in lower case; those of metadata keep theirs.
  const metadata = rawHeaders.flatMap((name, at) => {
    const [, key] = at % 2 === 0 ? (/^x-ms-meta-(.*)$/i.exec(name) ?? []) : [];
    return key === undefined ? [] : [[key, rawHeaders[at + 1] ?? ""] as const];
  });
  const wrong = metadata.find(([key]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key));
  if (wrong !== undefined) {
    throw new BlobError(
      400,
      "InvalidMetadata",
      "The metadata specified is invalid. It has characters that are not permitted.",
    );
  }
  return Object.fromEntries(metadata);
}

export const metadataHeaders = ({ metadata }: Blob): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`x-ms-meta-${key}`, value]));

/** Bytes that a request brings. */
export function lengthOf({ headers }: IncomingMessage, most: number): number {
  const length = headers["content-length"];
  if (length === undefined) {
    throw new BlobError(
      411,
      "MissingContentLengthHeader",
      "The content length header was not specified.",
    );
  }
  if (Number(length) > most) {
    throw new BlobError(
      413,
      "RequestBodyTooLarge",
      "The request body is too large and exceeds the maximum permissible limit.",
      { MaxLimit: String(most) },
    );
  }
  return Number(length);
}

/** The name of a block: base64 of up to 64 bytes. */
export function blockIdOf(query: URLSearchParams): string {
  const id = query.get("blockid") ?? "";
  const bytes = Buffer.from(id, "base64");
  if (id === "" || bytes.toString("base64") !== id || bytes.length > 64) {
    throw invalidParameter("blockid", id, "Not a valid base64 string.");
  }
  return id;
}

const invalidXml = (): BlobError =>
  new BlobError(400, "InvalidXmlDocument", "XML specified is not syntactically valid.");

/** The ids of the blocks that the body of Put Block List names, in their order. */
export async function wantedBlocks(request: IncomingMessage): Promise<string[]> {
  lengthOf(request, largestList);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^\ufeff/, "");
  const [, inner] =
    /^\s*(?:<\?xml[^>]*\?>)?\s*<BlockList>(.*)<\/BlockList>\s*$/s.exec(text) ??
    /^\s*(?:<\?xml[^>]*\?>)?\s*<BlockList\s*()\/>\s*$/s.exec(text) ??
    [];
  if (inner === undefined) throw invalidXml();
  if (/<(Committed|Uncommitted)>/.test(inner))
    throw unsupported("block lists of anything but Latest");
  const entry = /\s*<Latest>\s*([^<\s]*)\s*<\/Latest>\s*/gy;
  const wanted: string[] = [];
  let end = 0;
  for (let found = entry.exec(inner); found !== null; found = entry.exec(inner)) {
    wanted.push(found[1]!);
    end = entry.lastIndex;
  }
  if (inner.slice(end).trim() !== "") throw invalidXml();
  if (wanted.length > mostBlocks) {
    throw new BlobError(
      400,
      "BlockListTooLong",
      "The block list may not contain more than 50,000 blocks.",
    );
  }
  return wanted;
}
