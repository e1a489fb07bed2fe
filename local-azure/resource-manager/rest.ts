import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { AddressInfo } from "node:net";

import type { PowerAction } from "../machines/qemu";
import { stateOf } from "./admission";
import { AzureError, ConnectionLost } from "./azure-error";
import { Cloud } from "./cloud";
import { account, ArmId, parseId, subscriptionPath } from "./ids";
import { versionsOf } from "./images";
import { checkedLocation, normalLocation } from "./regions";
import { Body, Resource } from "./resource-type";
import { control, Hooks } from "./rest-control";
import { fromArm, toArm } from "./rest-shape";
import { skusIn } from "./skus";
import { typeOf } from "./types";

export interface Served {
  readonly port: number;
  close(): Promise<void>;
}

/** The HTTP side of the cloud on 127.0.0.1, and under /local what steers it. */
export async function serveRest(cloud: Cloud, port: number, hooks: Hooks = {}): Promise<Served> {
  const server = createServer((request, response) => {
    answer(cloud, hooks, request).then(
      ({ status, body }) => send(response, status, body),
      (error: unknown) => refuse(response, error),
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
      body: { value: skusIn(normalLocation(quoted(filter, "location")[0] ?? "")) },
    };
  }
  const local = new RegExp(`^${subscriptionPath}/providers/Microsoft.Compute/locations/([^/]+)/(.+)$`, "i");
  const [, location = "", below] = local.exec(path) ?? [];
  if (method === "GET" && below !== undefined) {
    return { status: 200, body: offered(cloud, normalLocation(location), below) };
  }
  if (method === "GET" && /\/resources$/i.test(path)) {
    const group = path.replace(/\/resources$/i, "");
    await cloud.get(group);
    const types = filter === "" ? undefined : quoted(filter, "resourceType");
    return {
      status: 200,
      body: { value: cloud.list(group, types).map((one) => entry(one, expand)) },
    };
  }

  const [, machine, action] =
    /^(.+\/virtualMachines\/[^/]+)\/(start|restart|powerOff|deallocate)$/i.exec(path) ?? [];
  if (method === "POST" && machine !== undefined) {
    await cloud.get(machine);
    await hooks.power?.(machine, named(action));
    return { status: 200 };
  }
  const [, group, type = ""] =
    /^(.+\/resourceGroups\/[^/]+)\/providers\/([^/]+\/[^/]+)$/i.exec(path) ?? [];
  if (method === "GET" && group !== undefined && typeOf(type)) {
    await cloud.get(group);
    return { status: 200, body: { value: cloud.list(group, [type]).map(whole(cloud)) } };
  }
  const id = parseId(path);
  if (id === undefined) {
    throw new AzureError(404, "InvalidResourceType", `The local Azure has nothing at ${path}.`);
  }
  return serve(cloud, method, id, request);
}

/** What Compute tells of a region. */
function offered(cloud: Cloud, location: string, path: string): unknown {
  checkedLocation(location, "locations");
  if (path.toLowerCase() === "usages") return { value: cloud.usagesIn(location) };
  const [, publisher, offer, sku, version] =
    /^publishers\/([^/]+)\/artifacttypes\/vmimage\/offers\/([^/]+)\/skus\/([^/]+)\/versions(?:\/([^/]+))?$/i.exec(
      path,
    ) ?? [];
  const known = versionsOf([publisher, offer, sku].join(":"));
  if (known === undefined || (version !== undefined && !known.includes(version))) {
    throw new AzureError(404, "NotFound", "Artifact: VMImage was not found.");
  }
  const id = `${subscriptionPath}/Providers/Microsoft.Compute/Locations/${location}/Publishers/${publisher}/ArtifactTypes/VMImage/Offers/${offer}/Skus/${sku}/Versions`;
  const described = (name: string) => ({ location, name, id: `${id}/${name}` });
  // A bare list, unlike everything else.
  return version === undefined ? known.map(described) : { ...described(version), properties: {} };
}

/** Azure compares names of actions without regard to case. */
const named = (action = ""): PowerAction =>
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
        `The local Azure answers GET, PUT and DELETE, not ${method}.`,
      );
  }
}

/** Values of a $filter such as `resourceType eq 'a' or resourceType eq 'b'`. */
function quoted(filter: string, property: string): string[] {
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

/** A resource as a list of its type shows it, which is as it is shown by itself. */
const whole =
  (cloud: Cloud) =>
  ({ id }: Resource): Body =>
    toArm(parseId(id)!, cloud.peek(id) ?? {});

/** A resource as the list of all that lies in a group shows it. */
function entry({ id, type, body, changed }: Resource, expand: string): Body {
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

function refuse(response: ServerResponse, error: unknown): void {
  if (error instanceof ConnectionLost) return void response.destroy();
  if (!(error instanceof AzureError)) {
    return send(response, 500, {
      error: { code: "InternalServerError", message: (error as Error).message },
    });
  }
  const { status, code, message, target, retryAfter } = error;
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
  // An operation that failed after it was accepted has no status of its own: the request was answered by then.
  send(response, status < 400 ? 409 : status, { error: { code, message, target, details: [] } });
}

function send(response: ServerResponse, status: number, body?: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
