import { account } from "../arm/resources/ids";
import type { View } from "../arm/resources/resource";
import { mayDo } from "../arm/types/authorization/role-assignment";
import { claimsOf } from "../machines/identity-token";
import { BlobError, invalidHeader } from "./blob-error";

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
