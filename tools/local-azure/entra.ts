import { createPublicKey, randomUUID, verify } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

import type { ResourceManager } from "./arm/resource-manager";
import { account, loginHost, type Resource } from "./arm/resources/resource";
import { type Certificate, serveBoth, type Served } from "./arm/rest/listener";
import {
  type CredentialBody,
  federatedIdentityCredential,
  userAssignedIdentity,
} from "./arm/types/authorization/managed-identity";
import { jsonRequest } from "./json-request";
import { identityToken } from "./machines/identity-token";

/** Why Entra gives no token, by the number that its documentation has it under. */
class Refusal extends Error {
  constructor(
    readonly number: number,
    message: string,
    readonly error: "invalid_client" | "invalid_request" | "invalid_resource" = "invalid_client",
  ) {
    super(`AADSTS${number}: ${message}`);
  }
}

/** Reads a document that anybody may read, as JSON. */
type ReadDocument = (url: string) => Promise<unknown>;

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
async function checkAssertion(
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

const byAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/**
 * Entra's token endpoint, as far as managed identities need it whose bearers prove themselves by tokens of another
 * issuer. It takes no other login: nothing here has a password.
 *
 * @see https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
 */
export class TokenService {
  constructor(
    private readonly arm: ResourceManager,
    private readonly read: ReadDocument,
  ) {}

  serve(port: number, certificate?: Certificate): Promise<Served> {
    return serveBoth(port, (request, response) => this.handle(request, response), certificate);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = await this.answer(request).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      const said = {
        error: error.error,
        error_description: `${error.message} Timestamp: ${this.arm.clock.now().toISOString()}`,
        error_codes: [error.number],
        correlation_id: randomUUID(),
      };
      return { status: error.error === "invalid_client" ? 401 : 400, body: said };
    });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  private async answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const { method, url = "", headers } = request;
    if (/^\/common\/discovery\/instance(\?|$)/.test(url)) {
      return { status: 200, body: instanceDiscovery };
    }
    const [, tenant = "", what] =
      /^\/([^/]+)\/(v2\.0\/\.well-known\/openid-configuration|oauth2\/v2\.0\/token)$/.exec(
        url.split("?")[0] ?? "",
      ) ?? [];
    if (what === undefined) return { status: 404, body: {} };
    if (tenant.toLowerCase() !== account.tenantId) {
      throw new Refusal(90002, `Tenant '${tenant}' not found.`, "invalid_request");
    }
    if (!what.endsWith("/token")) {
      return { status: 200, body: discoveryOf(`https://${headers.host}`, tenant) };
    }
    if (method !== "POST") {
      throw new Refusal(900561, "The endpoint only accepts POST requests.", "invalid_request");
    }
    return { status: 200, body: await this.tokenFor(new URLSearchParams(await text(request))) };
  }

  private async tokenFor(form: URLSearchParams): Promise<unknown> {
    const missing = ["client_id", "grant_type", "scope"].find((name) => !form.get(name));
    if (missing !== undefined) {
      throw new Refusal(
        900144,
        `The request body must contain the following parameter: '${missing}'.`,
        "invalid_request",
      );
    }
    const clientId = form.get("client_id")!;
    const identity = this.arm.view
      .ofType(userAssignedIdentity.type)
      .find(({ body }) => body["clientId"] === clientId.toLowerCase());
    if (identity === undefined) {
      throw new Refusal(
        700016,
        `Application with identifier '${clientId}' was not found in the directory '${account.tenantId}'.`,
      );
    }
    if (form.get("client_assertion_type") !== byAssertion) {
      throw new Refusal(
        7000218,
        "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
      );
    }
    const now = this.arm.clock.now();
    const credentials = this.arm.view.children(identity.id, federatedIdentityCredential.type);
    await checkAssertion(form.get("client_assertion") ?? "", credentials, this.read, now);
    const resource = resourceOf(form.get("scope")!);
    const bearer = {
      resourceId: identity.id,
      clientId: String(identity.body["clientId"]),
      principalId: String(identity.body["principalId"]),
    };
    const token = identityToken(bearer, resource, now);
    if (token === undefined) {
      throw new Refusal(
        500011,
        `The resource principal named ${resource} was not found in the tenant named ${account.tenantId}.`,
        "invalid_resource",
      );
    }
    return {
      token_type: "Bearer",
      expires_in: token.seconds,
      ext_expires_in: token.seconds,
      access_token: token.text,
    };
  }
}

/** Scopes of OpenID Connect, which Go's library asks for beside the one that a token is for. */
const ofOpenId = ["openid", "offline_access", "profile"];

function resourceOf(scope: string): string {
  const [wanted = "", ...others] = scope.split(" ").filter((one) => !ofOpenId.includes(one));
  if (others.length > 0 || !wanted.endsWith("/.default")) {
    throw new Refusal(
      1002012,
      `The provided value for scope ${scope} is not valid. Client credential flows must have a scope value with /.default suffixed to the resource identifier (application ID URI).`,
      "invalid_request",
    );
  }
  return wanted.replace(/\/\.default$/, "");
}

/** By which Microsoft's libraries find the endpoint. */
const discoveryOf = (origin: string, tenant: string) => ({
  issuer: `${origin}/${tenant}/v2.0`,
  authorization_endpoint: `${origin}/${tenant}/oauth2/v2.0/authorize`,
  token_endpoint: `${origin}/${tenant}/oauth2/v2.0/token`,
  jwks_uri: `${origin}/${tenant}/discovery/v2.0/keys`,
});

/** By which Microsoft's libraries learn whether an authority is Entra. */
const instanceDiscovery = {
  tenant_discovery_endpoint: `https://${loginHost}/${account.tenantId}/v2.0/.well-known/openid-configuration`,
  "api-version": "1.1",
  metadata: [{ preferred_network: loginHost, preferred_cache: loginHost, aliases: [loginHost] }],
};
