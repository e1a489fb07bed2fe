import { createHash, createPublicKey } from "node:crypto";

import { azureCloudAt } from "./azure/clouds";
import type { Settings } from "./settings/settings";

/** The account that Entra reads the issuer's documents from. All of Azure has one namespace for them. */
export const issuerAccount = (clusterName: string, subscriptionId: string): string =>
  `oidc${createHash("sha256")
    .update(`${subscriptionId.toLowerCase()}/${clusterName}`)
    .digest("hex")
    .slice(0, 20)}`;

export const issuerContainer = "issuer";

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

/** Below the issuer: the names are those of OpenID Connect Discovery and of Kubernetes. */
const discoveryPath = ".well-known/openid-configuration";
const keysPath = "openid/v1/jwks";

export const keysUrl = (issuer: string): string => `${issuer}/${keysPath}`;

/** As `kube-apiserver` serves it for the same flags. */
const discovery = (issuer: string): string =>
  JSON.stringify({
    issuer,
    jwks_uri: keysUrl(issuer),
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  });

const pem = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g;

/** Kubernetes calls a key by the hash of it (keyIDFromPublicKey in pkg/serviceaccount). */
const keysOf = (publicKeys: string): string =>
  JSON.stringify({
    keys: (publicKeys.match(pem) ?? []).map((text) => {
      const key = createPublicKey(text);
      const der = key.export({ type: "spki", format: "der" });
      const { kty, n, e } = key.export({ format: "jwk" });
      const kid = createHash("sha256").update(der).digest("base64url");
      return { use: "sig", kty, kid, alg: "RS256", n, e };
    }),
  });

/**
 * The issuer's documents by their path below it.
 *
 * @param publicKeys all keys whose tokens are admitted, as PEM
 */
export const documentsOf = (issuer: string, publicKeys: string): Record<string, string> => ({
  [discoveryPath]: discovery(issuer),
  [keysPath]: keysOf(publicKeys),
});
