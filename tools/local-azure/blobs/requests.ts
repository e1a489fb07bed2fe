import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

import { account, type View } from "../arm/resources/resource";
import { mayDo } from "../arm/types/authorization/role";
import { claimsOf } from "../machines/identity-token";
import { type Blob, BlobError, invalidHeader, invalidParameter, unsupported } from "./store";

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

const challenge =
  `Bearer authorization_uri=https://login.microsoftonline.com/${account.tenantId}/oauth2/authorize ` +
  "resource_id=https://storage.azure.com";

const unauthenticated = (code: string, detail?: string): BlobError =>
  new BlobError(
    401,
    code,
    "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    detail === undefined ? {} : { AuthenticationErrorDetail: detail },
    { "www-authenticate": challenge },
  );

/**
 * The principal of a request's token. Keys of an account and signatures by them are refused, as by an
 * account that allows neither.
 */
export function principalOf(
  authorization: string | undefined,
  host: string,
  query: URLSearchParams,
  now: Date,
): string {
  if (/^SharedKey/i.test(authorization ?? "") || query.has("sig")) {
    throw new BlobError(
      403,
      "KeyBasedAuthenticationNotPermitted",
      "Key based authentication is not permitted on this storage account.",
    );
  }
  const [, token] = /^Bearer (\S+)$/.exec(authorization ?? "") ?? [];
  if (token === undefined) throw unauthenticated("NoAuthenticationInformation");
  const refuse = (detail: string): BlobError =>
    unauthenticated("InvalidAuthenticationInfo", detail);
  const { aud = "", exp = 0, nbf = 0, oid, tid } = claimsOf(token) ?? {};
  if (oid === undefined) throw refuse("IDX12741: JWT must have three segments (JWS).");
  const audience = aud.replace(/\/$/, "");
  if (audience !== "https://storage.azure.com" && audience !== `https://${host}`) {
    throw refuse("Audience validation failed. Audience did not match.");
  }
  if (tid !== account.tenantId) throw refuse("Issuer validation failed. Issuer did not match.");
  const seconds = now.getTime() / 1000;
  if (exp < seconds) throw refuse("Lifetime validation failed. The token is expired.");
  if (nbf > seconds) throw refuse("Lifetime validation failed. The token is not yet valid.");
  return oid;
}

/** Throws unless a role of the principal, at the container or above it, allows the operation. */
export function authorize(
  principalId: string,
  container: string,
  verb: "read" | "write",
  view: View,
  at: { readonly now: Date; readonly pace: number },
): void {
  const action = `Microsoft.Storage/storageAccounts/blobServices/containers/blobs/${verb}`;
  if (mayDo(principalId, { kind: "dataActions", action, scope: container }, view, at)) return;
  throw new BlobError(
    403,
    "AuthorizationPermissionMismatch",
    "This request is not authorized to perform this operation using this permission.",
  );
}

/** Versions of the service that take tokens. */
const known = new Set(
  `2017-11-09 2018-03-28 2018-11-09 2019-02-02 2019-07-07 2019-12-12 2020-02-10 2020-04-08 2020-06-12
   2020-08-04 2020-10-02 2020-12-06 2021-02-12 2021-04-10 2021-06-08 2021-08-06 2021-10-04 2021-12-02
   2022-11-02 2023-01-03 2023-05-03 2023-08-03 2023-11-03 2024-02-04 2024-05-04 2024-08-04 2024-11-04
   2025-01-05 2025-05-05 2025-07-05 2025-11-05 2026-02-06 2026-10-06`.split(/\s+/),
);

/** Throws unless a request names a version that takes its token. */
export function checkVersion(version: string | undefined): void {
  if (version !== undefined && known.has(version)) return;
  if (version !== undefined && !(version < "2017-11-09" && /^\d{4}-\d\d-\d\d$/.test(version))) {
    throw invalidHeader("x-ms-version", version);
  }
  throw new BlobError(
    403,
    "AuthenticationFailed",
    "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
    { AuthenticationErrorDetail: "Authentication scheme Bearer is not supported in this version." },
  );
}
