import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { AddressInfo } from "node:net";

import type { PowerAction } from "../../machines/qemu/qemu";
import { stateOf } from "../admission";
import { AzureError, ConnectionLost } from "../azure-error";
import { Cloud } from "../cloud";
import { account, ArmId, parseId, subscriptionPath } from "../ids";
import { Body, Resource } from "../resource";
import { versionsOf } from "../subscription/images";
import { checkedLocation, normalLocation } from "../subscription/regions";
import { skusIn } from "../subscription/skus";
import { typeOf } from "../types";
import { control, Hooks } from "./control";
import { fromArm, toArm } from "./shape";

export interface Served {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the REST API of the cloud on 127.0.0.1, and the control API under /local. */
export async function serveRest(cloud: Cloud, port: number, hooks: Hooks = {}): Promise<Served> {
  const server = createServer((request, response) => {
    answer(cloud, hooks, request).then(
      ({ status, body }) => send(response, status, body),
      (error: unknown) => sendError(response, error),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}

async function answer(cloud: Cloud, hooks: Hooks, request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  const path = decodeURIComponent(url.pathname).replace(/\/+$/, "");
  const method = request.method ?? "GET";
  if (path.toLowerCase().startsWith("/local/")) {
    return control(cloud, hooks, method, path.toLowerCase(), await read(request));
  }

  if (!/^Bearer \S+/.test(request.headers.authorization ?? "")) {
    throw new AzureError(
      401,
      "AuthenticationFailed",
      "Authentication failed. The 'Authorization' header is missing.",
    );
  }
  const filter = url.searchParams.get("$filter") ?? "";
  const expand = url.searchParams.get("$expand") ?? "";
  if (
    method === "GET" &&
    path.toLowerCase() === `${subscriptionPath}/providers/microsoft.compute/skus`
  ) {
    return {
      status: 200,
      body: { value: skusIn(normalLocation(filterValues(filter, "location")[0] ?? "")) },
    };
  }
  const locationPath = new RegExp(
    `^${subscriptionPath}/providers/Microsoft.Compute/locations/([^/]+)/(.+)$`,
    "i",
  );
  const [, location = "", rest] = locationPath.exec(path) ?? [];
  if (method === "GET" && rest !== undefined) {
    return { status: 200, body: locationResource(cloud, normalLocation(location), rest) };
  }
  if (method === "GET" && /\/resources$/i.test(path)) {
    const group = path.replace(/\/resources$/i, "");
    await cloud.get(group);
    const types = filter === "" ? undefined : filterValues(filter, "resourceType");
    return {
      status: 200,
      body: { value: cloud.list(group, types).map((one) => resourceEntry(one, expand)) },
    };
  }

  const [, machine, action] =
    /^(.+\/virtualMachines\/[^/]+)\/(start|restart|powerOff|deallocate)$/i.exec(path) ?? [];
  if (method === "POST" && machine !== undefined) {
    await cloud.get(machine);
    await hooks.power?.(machine, powerAction(action));
    return { status: 200 };
  }
  const [, group, type = ""] =
    /^(.+\/resourceGroups\/[^/]+)\/providers\/([^/]+\/[^/]+)$/i.exec(path) ?? [];
  if (method === "GET" && group !== undefined && typeOf(type)) {
    await cloud.get(group);
    return { status: 200, body: { value: cloud.list(group, [type]).map(listEntry(cloud)) } };
  }
  const id = parseId(path);
  if (id === undefined) {
    throw new AzureError(404, "InvalidResourceType", `The local Azure does not support ${path}.`);
  }
  return serve(cloud, method, id, request);
}

/** Usages and image versions under Microsoft.Compute/locations. */
function locationResource(cloud: Cloud, location: string, path: string): unknown {
  checkedLocation(location, "locations");
  if (path.toLowerCase() === "usages") return { value: cloud.usagesIn(location) };
  const [, publisher, offer, sku, version] =
    /^publishers\/([^/]+)\/artifacttypes\/vmimage\/offers\/([^/]+)\/skus\/([^/]+)\/versions(?:\/([^/]+))?$/i.exec(
      path,
    ) ?? [];
  const imageVersions = versionsOf([publisher, offer, sku].join(":"));
  if (imageVersions === undefined || (version !== undefined && !imageVersions.includes(version))) {
    throw new AzureError(404, "NotFound", "Artifact: VMImage was not found.");
  }
  const id = `${subscriptionPath}/Providers/Microsoft.Compute/Locations/${location}/Publishers/${publisher}/ArtifactTypes/VMImage/Offers/${offer}/Skus/${sku}/Versions`;
  const versionEntry = (name: string) => ({ location, name, id: `${id}/${name}` });
  // Unlike other lists, this one is a bare array.
  return version === undefined
    ? imageVersions.map(versionEntry)
    : { ...versionEntry(version), properties: {} };
}

/** Azure compares names of actions case-insensitively. */
const powerAction = (action = ""): PowerAction =>
  (["start", "restart", "powerOff", "deallocate"] as const).find(
    (one) => one.toLowerCase() === action.toLowerCase(),
  )!;

async function serve(
  cloud: Cloud,
  method: string,
  id: ArmId,
  request: IncomingMessage,
): Promise<Answer> {
  if (id.type === "Microsoft.Resources/subscriptions") {
    const { subscriptionId, tenantId } = account;
    return {
      status: 200,
      body: { id: subscriptionPath, subscriptionId, tenantId, state: "Enabled" },
    };
  }
  switch (method) {
    case "GET": {
      const { status, body } = await cloud.get(id.id);
      return { status, body: toArm(id, body) };
    }
    case "PUT": {
      const { status, body } = await cloud.put(id.id, fromArm(id, await read(request)));
      return { status, body: toArm(id, body) };
    }
    case "DELETE":
      return { status: (await cloud.delete(id.id)).status };
    default:
      throw new AzureError(
        405,
        "MethodNotAllowed",
        `The local Azure supports GET, PUT and DELETE, not ${method}.`,
      );
  }
}

/** Values of a $filter such as `resourceType eq 'a' or resourceType eq 'b'`. */
function filterValues(filter: string, property: string): string[] {
  return filter.split(/\s+or\s+/i).map((term) => {
    const value = new RegExp(`^\\s*\\(?${property}\\s+eq\\s+'([^']*)'\\)?\\s*$`, "i").exec(
      term,
    )?.[1];
    if (value !== undefined) return value;
    throw new AzureError(
      400,
      "InvalidFilterInQueryString",
      `Invalid $filter '${filter}' specified in the query string.`,
    );
  });
}

/** A resource in the list of its type has the same properties as in its own GET. */
const listEntry =
  (cloud: Cloud) =>
  ({ id }: Resource): Body =>
    toArm(parseId(id)!, cloud.peek(id) ?? {});

/** A resource in the list of all resources of a group. */
function resourceEntry({ id, type, body, changed }: Resource, expand: string): Body {
  const { names } = parseId(id)!;
  return {
    id,
    name: names.join("/"),
    type,
    location: body["location"],
    tags: body["tags"],
    zones: body["zones"],
    ...(expand.includes("provisioningState") && { provisioningState: stateOf(body) }),
    ...(expand.includes("changedTime") && { changedTime: changed }),
  };
}

async function read(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return {};
  try {
    return JSON.parse(text) as Body;
  } catch (error) {
    throw new AzureError(
      400,
      "InvalidRequestContent",
      `The request content was invalid and could not be deserialized: '${(error as Error).message}'.`,
    );
  }
}

function sendError(response: ServerResponse, error: unknown): void {
  if (error instanceof ConnectionLost) return void response.destroy();
  if (!(error instanceof AzureError)) {
    return send(response, 500, {
      error: { code: "InternalServerError", message: (error as Error).message },
    });
  }
  const { status, code, message, target, retryAfter } = error;
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
  // An operation that failed after the PUT was accepted has no HTTP status of its own.
  send(response, status < 400 ? 409 : status, { error: { code, message, target, details: [] } });
}

function send(response: ServerResponse, status: number, body?: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
