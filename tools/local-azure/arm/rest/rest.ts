import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";

import { answerMetadata } from "../../machines/qemu/network/metadata";
import { AzureError, badRequest, ConnectionLost, refuse } from "../azure-error";
import { ResourceManager } from "../resource-manager";
import { Body, isBody } from "../resources/resource";
import { type Answer, ArmApi } from "./arm";
import { type Certificate, serveBoth, type Served } from "./listener";
import { control, Hooks } from "./control";
import { isForMetadata, machineAsking } from "./metadata-proxy";

/** Serves Resource Manager's REST API on 127.0.0.1, and the control API under /local. */
export async function serveRest(
  arm: ResourceManager,
  port: number,
  hooks: Hooks = {},
  certificate?: Certificate,
): Promise<Served> {
  const api = new ArmApi(arm, hooks);
  return serveBoth(
    port,
    async (request, response) => {
      if (isForMetadata(request)) {
        const machine = machineAsking(request, arm.view);
        return void answerMetadata(request, response, machine, arm.scheduledEvents);
      }
      await answer(arm, api, hooks, request).then(
        (one) => send(response, one, request.method),
        (error: unknown) => sendError(response, error, request.method),
      );
    },
    certificate,
  );
}

async function answer(
  arm: ResourceManager,
  api: ArmApi,
  hooks: Hooks,
  request: IncomingMessage,
): Promise<Answer> {
  const { headers, method = "GET", socket } = request;
  const scheme = (socket as TLSSocket).encrypted ? "https" : "http";
  const origin = `${scheme}://${headers.host ?? "127.0.0.1"}`;
  const url = new URL(`${origin}${request.url ?? "/"}`);
  // SDKs send //subscriptions/… where they are given a scope.
  const path = decoded(url.pathname)
    .replace(/\/{2,}/g, "/")
    .replace(/\/$/, "");
  if (path.toLowerCase().startsWith("/local/")) {
    return control(arm, hooks, method, path.toLowerCase(), await read(request));
  }
  if (path.toLowerCase() === "/metadata/endpoints") {
    return { status: 200, body: endpoints(origin, url.searchParams.get("api-version")) };
  }
  if (!/^Bearer \S+/.test(headers.authorization ?? "")) {
    throw new AzureError(
      401,
      "AuthenticationFailed",
      "Authentication failed. The 'Authorization' header is missing.",
    );
  }
  return api.answer({ method, path, url, origin, headers, body: await read(request) });
}

async function read(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return {};
  try {
    const body: unknown = JSON.parse(text);
    if (isBody(body)) return body;
    throw new Error("it is not an object");
  } catch (error) {
    throw refuse(
      "InvalidRequestContent",
      `The request content was invalid and could not be deserialized: '${(error as Error).message}'.`,
    );
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw badRequest("Bad Request - Invalid URL");
  }
}

function sendError(response: ServerResponse, error: unknown, method?: string): void {
  if (error instanceof ConnectionLost) return void response.destroy();
  if (!(error instanceof AzureError)) {
    const { message } = error as Error;
    return send(
      response,
      { status: 500, body: { error: { code: "InternalServerError", message } } },
      method,
    );
  }
  const { status, code, message, target, retryAfter, additionalInfo } = error;
  send(
    response,
    {
      // An operation that failed after the PUT was accepted has no HTTP status of its own.
      status: status < 400 ? 409 : status,
      body: { error: { code, message, target, details: [], additionalInfo } },
      headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    },
    method,
  );
}

function send(response: ServerResponse, { status, body, headers }: Answer, method?: string): void {
  const text = body === undefined || method === "HEAD" ? undefined : JSON.stringify(body);
  response.writeHead(status, {
    ...headers,
    ...(text !== undefined && { "content-type": "application/json; charset=utf-8" }),
  });
  response.end(text);
}

/**
 * What clients find a cloud's other addresses by. Until 2022 a list of clouds, by whose names they
 * choose one; since then the one that was asked.
 */
function endpoints(origin: string, version: string | null): unknown {
  if (version === null || version === "") {
    throw refuse(
      "MissingApiVersionParameter",
      "The api-version query parameter (?api-version=) is required for all requests.",
    );
  }
  const arm = {
    name: "AzureCloud",
    portal: "https://portal.azure.com",
    authentication: {
      loginEndpoint: "https://login.microsoftonline.com/",
      audiences: ["https://management.core.windows.net/", "https://management.azure.com/"],
      tenant: "common",
      identityProvider: "AAD",
    },
    graph: "https://graph.windows.net/",
    graphAudience: "https://graph.windows.net/",
    // Of its token azure-native reads who has logged in.
    microsoftGraphResourceId: "https://graph.microsoft.com/",
    resourceManager: `${origin}/`,
    suffixes: {
      acrLoginServer: "azurecr.io",
      keyVaultDns: "vault.azure.net",
      sqlServerHostname: "database.windows.net",
      storage: "core.windows.net",
    },
  };
  return version < "2022" ? [arm] : arm;
}
