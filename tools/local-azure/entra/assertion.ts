import { createPublicKey, verify } from "node:crypto";

import type { Resource } from "../arm/resources/resource";
import type { CredentialBody } from "../arm/types/authorization/managed-identity";
import { jsonRequest } from "../json-request";

/** Why Entra gives no token, by the number that its documentation has it under. */
export class Refusal extends Error {
  constructor(
    readonly number: number,
    message: string,
    readonly error: "invalid_client" | "invalid_request" | "invalid_resource" = "invalid_client",
  ) {
    super(`AADSTS${number}: ${message}`);
  }
}

/** Reads a document that anybody may read, as JSON. */
export type ReadDocument = (url: string) => Promise<unknown>;

interface Assertion {
  readonly head: { readonly alg?: string; readonly kid?: string };
  readonly claims: {
    readonly iss?: string;
    readonly sub?: string;
    readonly aud?: string | readonly string[];
    readonly exp?: number;
    readonly nbf?: number;
  };
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Entra's clocks and others' may differ by so much. */
const skewSeconds = 300;

function parse(token: string): Assertion {
  const [head = "", body = "", signature = ""] = token.split(".");
  const part = <T>(text: string): T => JSON.parse(Buffer.from(text, "base64url").toString()) as T;
  try {
    return {
      head: part(head),
      claims: part(body),
      signed: Buffer.from(`${head}.${body}`),
      signature: Buffer.from(signature, "base64url"),
    };
  } catch {
    throw new Refusal(50027, "JWT token is invalid or malformed.");
  }
}

/**
 * Throws unless somebody else's token proves its bearer to be an identity: by one of the identity's federated
 * credentials, and by the keys that the issuer publishes.
 *
 * @see https://learn.microsoft.com/entra/workload-id/workload-identity-federation
 */
export async function checkAssertion(
  token: string,
  credentials: readonly Resource[],
  read: ReadDocument,
  now: Date,
): Promise<void> {
  const { head, claims, signed, signature } = parse(token);
  const { iss = "", sub = "", aud = [], exp = 0, nbf = 0 } = claims;
  const all = credentials.map(({ body }) => body as CredentialBody);
  const ofIssuer = all.filter(({ issuer }) => issuer === iss);
  if (ofIssuer.length === 0) {
    throw new Refusal(
      700211,
      `No matching federated identity record found for presented assertion issuer '${iss}'.`,
    );
  }
  const ofSubject = ofIssuer.find(({ subject }) => subject === sub);
  if (ofSubject === undefined) {
    throw new Refusal(
      700213,
      `No matching federated identity record found for presented assertion subject '${sub}'.`,
    );
  }
  if (![aud].flat().some((one) => ofSubject.audiences.includes(one))) {
    throw new Refusal(
      700212,
      `No matching federated identity record found for presented assertion audience '${[aud].flat().join()}'.`,
    );
  }
  const seconds = now.getTime() / 1000;
  if (exp + skewSeconds < seconds || nbf - skewSeconds > seconds) {
    throw new Refusal(700024, "Client assertion is not within its valid time range.");
  }
  if (head.alg !== "RS256") {
    throw new Refusal(
      5002738,
      `Invalid JWT token. '${head.alg}' is not a supported signature algorithm. Supported signing algorithms are: 'RS256, RS384, RS512'`,
    );
  }
  const key = await keyOf(iss, head.kid, read);
  if (!verify("sha256", signed, key, signature)) {
    throw new Refusal(700027, "Client assertion failed signature validation.");
  }
}

async function keyOf(issuer: string, kid: string | undefined, read: ReadDocument) {
  const unreadable = (url: string) =>
    new Refusal(50166, `Request to External OIDC endpoint failed: ${url}`);
  const get = async <T>(url: string): Promise<T> => {
    const document = await read(url).catch(() => undefined);
    if (document === undefined) throw unreadable(url);
    return document as T;
  };
  const discovery = `${issuer}/.well-known/openid-configuration`;
  const said = await get<{ issuer?: string; jwks_uri?: string }>(discovery);
  if (said.issuer !== issuer || said.jwks_uri === undefined) throw unreadable(discovery);
  const { keys = [] } = await get<{ keys?: (JsonWebKey & { kid?: string })[] }>(said.jwks_uri);
  const key = keys.find((one) => one.kid === kid);
  if (key === undefined) {
    throw new Refusal(
      700027,
      `Client assertion failed signature validation. The key was not found: its identifier is '${kid}'.`,
    );
  }
  return createPublicKey({ key: key as never, format: "jwk" });
}

/** Reads from the Blob service on this port, as anybody does, by a document's address on Azure. */
export const publicDocuments =
  (blobPort: number, authority: string): ReadDocument =>
  async (url) => {
    const { host, hostname: servername, pathname: path } = new URL(url);
    const { status, body } = await jsonRequest({
      ...{ host: "127.0.0.1", port: blobPort, path, servername, ca: authority },
      headers: { host },
    });
    // What is no JSON has come as a message.
    if (status !== 200 || "message" in body) throw new Error(`${url} answers ${status}`);
    return body;
  };
