import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { answerFrom } from "../../mirror/serve/serve";
import type { ResourceManager } from "../arm/resource-manager";
import { account, type Resource } from "../arm/resources/resource";
import { type Certificate, serveBoth, type Served } from "../arm/rest/listener";
import { mayDo } from "../arm/types/authorization/role";
import { registryType } from "../arm/types/containerregistry/registry";
import { claimsOf } from "../machines/identity-token";

/** Who has a token of a registry's own, and for what. */
interface Bearer {
  readonly server: string;
  readonly principalId: string;
  /** None of a refresh token, which is for all of the registry. */
  readonly repository?: string;
  /** In milliseconds. */
  readonly until: number;
}

/** What a client gives as its user's name where the password is a refresh token. */
const nobody = "00000000-0000-0000-0000-000000000000";

const hour = 3_600_000;
const life = { refresh: 3 * hour, access: 1.25 * hour };

/** What a role has to allow, by the registry's mode. */
const pull = {
  LegacyRegistryPermissions: { kind: "actions", action: `${registryType}/pull/read` },
  AbacRepositoryPermissions: {
    kind: "dataActions",
    action: `${registryType}/repositories/content/read`,
  },
} as const;

const folderOf = (state: string, server: string): string => join(state, "registries", server);

/** The folder of a registry's images, by where it is reached: a layout as a mirror has one. */
export const imagesOf = (state: string, server: string): string =>
  join(folderOf(state, server), "images");

/**
 * Registries, as far as machines need them who pull: a token of Entra's for somebody with a role is exchanged for
 * one of the registry's, and that for one of a repository. Nobody pushes, and nobody pulls without.
 *
 * @see https://github.com/Azure/acr/blob/main/docs/AAD-OAuth.md
 */
export class RegistryService {
  private readonly bearers = new Map<string, Bearer>();

  constructor(
    private readonly arm: ResourceManager,
    private readonly state: string,
  ) {}

  serve(port: number, certificate?: Certificate): Promise<Served> {
    return serveBoth(port, (request, response) => this.handle(request, response), certificate);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const server = (request.headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
    const { pathname, searchParams } = new URL(request.url ?? "/", `https://${server}`);
    const registry = this.arm.view
      .ofType(registryType)
      .find(({ body }) => body["loginServer"] === server);
    if (registry === undefined) return void response.writeHead(404).end();
    const reply = (status: number, body: object, headers = {}): void =>
      void response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body));
    if (pathname === "/oauth2/exchange" && request.method === "POST") {
      const token = this.exchange(registry, server, new URLSearchParams(await text(request)));
      return token ? reply(200, { refresh_token: token }) : reply(401, unauthorized);
    }
    if (pathname === "/oauth2/token") {
      // Azure's registries take no user's name and password here, which containerd tries first.
      if (request.method !== "GET") return reply(400, unsupported);
      const token = this.access(registry, server, request.headers.authorization, searchParams);
      return token ? reply(200, { access_token: token }) : reply(401, unauthorized);
    }
    if (!/^\/v2(\/|$)/.test(pathname)) return void response.writeHead(404).end();
    const [, repository] = /^\/v2\/(.+)\/(?:manifests|blobs|tags)\//.exec(pathname) ?? [];
    const { authorization = "" } = request.headers;
    const bearer = this.bearerOf(/^Bearer (\S+)$/.exec(authorization)?.[1], server);
    if (
      bearer?.repository === undefined ||
      bearer.repository !== (repository ?? bearer.repository)
    ) {
      const scope = repository === undefined ? "" : `,scope="repository:${repository}:pull"`;
      const where = `realm="https://${server}/oauth2/token",service="${server}"${scope}`;
      return reply(401, unauthorized, { "www-authenticate": `Bearer ${where}` });
    }
    answerFrom(folderOf(this.state, server), request, response);
  }

  /** A refresh token for who shows one of Entra's that is for registries, and has a role at this one. */
  private exchange(registry: Resource, server: string, form: URLSearchParams): string | undefined {
    const { aud = "", exp = 0, oid = "", tid } = claimsOf(form.get("access_token") ?? "") ?? {};
    const isValid =
      /^access_token(_refresh_token)?$/.test(form.get("grant_type") ?? "") &&
      form.get("service") === server &&
      aud.replace(/\/$/, "") === "https://containerregistry.azure.net" &&
      tid === account.tenantId &&
      exp * 1000 > this.now() &&
      this.mayPull(registry, oid);
    return isValid ? this.issue({ server, principalId: oid }, life.refresh) : undefined;
  }

  /** An access token for who logs in by a refresh token, and still has the role. */
  private access(
    registry: Resource,
    server: string,
    authorization = "",
    query: URLSearchParams,
  ): string | undefined {
    const [, login = ""] = /^Basic (\S+)$/.exec(authorization) ?? [];
    const [, user, password] = /^([^:]*):(.*)$/.exec(Buffer.from(login, "base64").toString()) ?? [];
    const bearer = user === nobody ? this.bearerOf(password, server) : undefined;
    const [, repository] = /^repository:(.+):pull$/.exec(query.get("scope") ?? "") ?? [];
    if (bearer === undefined || bearer.repository !== undefined || repository === undefined) {
      return undefined;
    }
    const isValid = query.get("service") === server && this.mayPull(registry, bearer.principalId);
    return isValid ? this.issue({ ...bearer, repository }, life.access) : undefined;
  }

  private issue(bearer: Omit<Bearer, "until">, life: number): string {
    const token = randomUUID();
    this.bearers.set(token, { ...bearer, until: this.now() + life });
    return token;
  }

  private bearerOf(token: string | undefined, server: string): Bearer | undefined {
    const bearer = this.bearers.get(token ?? "");
    return bearer?.server === server && bearer.until > this.now() ? bearer : undefined;
  }

  private mayPull({ id, body }: Resource, principalId: string): boolean {
    const { arm } = this;
    const at = { now: arm.clock.now(), pace: arm.durations.factor };
    const operation = pull[body["roleAssignmentMode"] as keyof typeof pull];
    return mayDo(principalId, { ...operation, scope: id }, arm.view, at);
  }

  private now = (): number => this.arm.clock.now().getTime();
}

const errorOf = (code: string, message: string) => ({ errors: [{ code, message }] });

const unauthorized = errorOf(
  "UNAUTHORIZED",
  "authentication required, visit https://aka.ms/acr/authorization for more information.",
);
const unsupported = errorOf("UNSUPPORTED", "The operation is unsupported.");
