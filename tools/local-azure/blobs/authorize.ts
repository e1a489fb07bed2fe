import { account } from "../arm/resources/ids";
import type { View } from "../arm/resources/resource";
import { mayDo } from "../arm/types/authorization/role-assignment";
import { claimsOf } from "../machines/identity-token";
import { BlobError } from "./blob-error";

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
  verb: "read" | "write" | "delete",
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
