import { createHash, createPublicKey, type KeyObject } from "node:crypto";

import { azureCloudAt } from "./azure/clouds";
import { issuerAccount, issuerContainer } from "./azure/resource-names";
import type { Settings } from "./settings/settings";

/**
 * Who signs the tokens of service accounts, as Entra knows it: an address where its documents are. The same
 * for a cluster's whole life.
 */
export function tokenIssuerOf(
  {
    clusterName,
    resourceManagerEndpoint,
  }: Pick<Settings, "clusterName" | "resourceManagerEndpoint">,
  subscriptionId: string,
): string {
  const { storage } = azureCloudAt(resourceManagerEndpoint);
  return `https://${issuerAccount(clusterName, subscriptionId)}.blob.${storage}/${issuerContainer}`;
}

/** Below the issuer, as OpenID Connect Discovery and Kubernetes call them. */
export const discoveryPath = ".well-known/openid-configuration";
export const keysPath = "openid/v1/jwks";

export const keysUrl = (issuer: string): string => `${issuer}/${keysPath}`;

/** Where the issuer's keys are, as `kube-apiserver` serves it for the same flags. */
export const discoveryDocument = (issuer: string): string =>
  JSON.stringify({
    issuer,
    jwks_uri: keysUrl(issuer),
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  });

const pem = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g;

/** What Kubernetes calls a key: the hash of it (keyIDFromPublicKey in pkg/serviceaccount). */
export const keyId = (publicKey: KeyObject): string =>
  createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");

/**
 * All keys whose tokens are admitted, in an order of their own: Azure's resource for a blob is made anew for another
 * text, and without the document Entra takes no token.
 *
 * @param publicKeys as PEM, one after another
 */
export const keysDocument = (publicKeys: string): string =>
  JSON.stringify({
    keys: (publicKeys.match(pem) ?? [])
      .map((text) => {
        const key = createPublicKey(text);
        const { kty, n, e } = key.export({ format: "jwk" });
        return { use: "sig", kty, kid: keyId(key), alg: "RS256", n, e };
      })
      .sort((one, other) => (one.kid < other.kid ? -1 : 1)),
  });
