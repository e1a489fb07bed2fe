import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

import type { ResourceManager } from "./arm/resource-manager";
import { account, loginHost } from "./arm/resources/ids";
import type { Certificate } from "./arm/rest/certificate";
import { serveBoth, type Served } from "./arm/rest/listener";
import { federatedIdentityCredential } from "./arm/types/authorization/managed-identity";
import { userAssignedIdentity } from "./arm/types/authorization/user-assigned-identity";
import { identityToken } from "./machines/identity-token";
import { checkAssertion, type ReadDocument, Refusal } from "./entra/assertion";

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
