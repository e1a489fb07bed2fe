import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

import { BlobError, invalidHeader, invalidParameter } from "./blob-error";
import type { Blob, Description, WantedBlock } from "./store";

const largestList = 16 * 1024 ** 2;
const mostBlocks = 50_000;

/** Headers by which a client describes content, and by which GET returns them. */
const described = [
  "content-type",
  "content-encoding",
  "content-language",
  "content-md5",
  "cache-control",
  "content-disposition",
];

/** What is said of a blob in the headers of the request that writes it. */
export function descriptionOf({ headers, rawHeaders }: IncomingMessage): Description {
  const given = described.flatMap((name) => {
    const value = headers[`x-ms-blob-${name}`];
    return value === undefined ? [] : [[name, String(value)] as const];
  });
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
  return {
    headers: { "content-type": "application/octet-stream", ...Object.fromEntries(given) },
    metadata: Object.fromEntries(metadata),
  };
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

/** The blocks that the body of Put Block List names, in their order. */
export async function wantedBlocks(request: IncomingMessage): Promise<WantedBlock[]> {
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
  const entry = /\s*<(Committed|Uncommitted|Latest)>\s*([^<\s]*)\s*<\/\1>\s*/gy;
  const wanted: WantedBlock[] = [];
  let end = 0;
  for (let found = entry.exec(inner); found !== null; found = entry.exec(inner)) {
    wanted.push({ from: found[1] as WantedBlock["from"], id: found[2]! });
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

/** The bytes that a GET asks for, both included; undefined for all. */
export function rangeOf(
  headers: IncomingHttpHeaders,
  size: number,
): { readonly from: number; readonly to: number } | undefined {
  const header = headers["x-ms-range"] === undefined ? "range" : "x-ms-range";
  const range = headers[header] as string | undefined;
  if (range === undefined) return undefined;
  const [, first, last = ""] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  if (first === undefined || (last !== "" && Number(last) < Number(first))) {
    throw invalidHeader(header, range);
  }
  const from = Number(first);
  if (from >= size) {
    throw new BlobError(
      416,
      "InvalidRange",
      "The range specified is invalid for the current size of the resource.",
      {},
      { "content-range": `bytes */${size}` },
    );
  }
  return { from, to: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
