import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { TLSSocket } from "node:tls";

import { ConnectionLost } from "../arm/azure-error";
import type { Method } from "../arm/faults";
import type { ResourceManager } from "../arm/resource-manager";
import { type Certificate, serveBoth, type Served } from "../arm/rest/listener";
import {
  type BlobContainerBody,
  blobDomain,
  type StorageAccountBody,
  storageAccountType,
} from "../arm/types/storage";
import {
  authorize,
  blockIdOf,
  checkHeaders,
  checkVersion,
  contentType,
  lengthOf,
  metadataHeaders,
  metadataOf,
  principalOf,
  wantedBlocks,
} from "./requests";
import {
  type Blob,
  BlobError,
  blobNotFound,
  type BlobStore,
  containerNotFound,
  invalidParameter,
  unsupported,
} from "./store";

interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string | Readable;
}

/** A request, and the container that it is about. */
interface Asked {
  readonly request: IncomingMessage;
  readonly url: URL;
  readonly account: string;
  /** Its ARM id. */
  readonly container: string;
  readonly containerName: string;
  /** Empty where it is about the container itself. */
  readonly name: string;
}

const largestBlock = 4000 * 1024 ** 2;

/**
 * Azure's Blob service, as far as snapshots need it: blobs are put in blocks, read whole and listed. It is
 * over the accounts, containers and roles of Resource Manager. An account is reached by its name on Azure
 * (`A.blob.core.windows.net`) or as the first part of the path. Azure takes tokens over TLS only; here plain
 * HTTP does where the account allows it, so that a machine needs no certificate authority of a rehearsal.
 */
export class BlobService {
  constructor(
    private readonly arm: ResourceManager,
    private readonly store: BlobStore,
  ) {}

  serve(port: number, certificate?: Certificate): Promise<Served> {
    return serveBoth(port, (request, response) => this.handle(request, response), certificate);
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers } = request;
    const id = randomUUID();
    const common = {
      "x-ms-request-id": id,
      "x-ms-version": String(headers["x-ms-version"] ?? ""),
      ...(headers["x-ms-client-request-id"] && {
        "x-ms-client-request-id": headers["x-ms-client-request-id"],
      }),
    };
    const reply = await this.answer(request).catch((error: unknown) => {
      if (error instanceof ConnectionLost || request.socket.destroyed) return undefined;
      return failed(error, id, this.arm.clock.now());
    });
    if (reply === undefined) return void request.socket.destroy();
    // What a refused request still sends has nowhere to go.
    request.resume();
    const { status, body } = reply;
    response.writeHead(status, { ...common, ...reply.headers });
    if (body === undefined || typeof body === "string") return void response.end(body);
    await pipeline(body, response);
  }

  private async answer(request: IncomingMessage): Promise<Reply> {
    const asked = this.askedBy(request);
    const { container, name, url } = asked;
    const { headers, method = "GET" } = request;
    const fault = this.arm.faults.match(
      method as Method,
      name === "" ? container : `${container}/blobs/${name}`,
    );
    if (fault?.lost === "request") throw new ConnectionLost();
    if (fault && fault.lost === undefined) {
      const { status = 500, code = "InternalError", message, retryAfter } = fault;
      const after: Record<string, string> =
        retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
      throw new BlobError(status, code, message ?? "An injected fault.", {}, after);
    }
    if (!this.isForAnybody(asked)) {
      checkVersion(headers["x-ms-version"] as string | undefined);
      const at = { now: this.arm.clock.now(), pace: this.arm.durations.factor };
      const host = `${asked.account}.${blobDomain}`;
      const principal = principalOf(headers.authorization, host, url.searchParams, at.now);
      authorize(principal, container, method === "GET" ? "read" : "write", this.arm.view, at);
    }
    if (this.arm.peek(container) === undefined) throw containerNotFound();
    checkHeaders(headers);
    const reply = await this.perform(asked);
    if (fault?.lost === "answer") throw new ConnectionLost();
    return reply;
  }

  /** Whether it is a blob that anybody may read, and somebody without a login asks for it. */
  private isForAnybody({ request, container, name }: Asked): boolean {
    const { headers, method = "GET" } = request;
    const isRead = method === "GET" && name !== "" && headers.authorization === undefined;
    const { publicAccess = "None" } = (this.arm.peek(container) ?? {}) as BlobContainerBody;
    return isRead && publicAccess !== "None";
  }

  private askedBy(request: IncomingMessage): Asked {
    const host = request.headers.host ?? "";
    const isSecure = (request.socket as TLSSocket).encrypted === true;
    const url = new URL(request.url ?? "/", `${isSecure ? "https" : "http"}://${host || "blobs"}`);
    const parts = url.pathname.slice(1).split("/").map(decodeURIComponent);
    const [named] = host.toLowerCase().split(`.${blobDomain}`);
    const isNamed = named !== host.toLowerCase();
    const account = (isNamed ? named : parts.shift()) ?? "";
    const [containerName = "", ...rest] = parts;
    const found = this.arm.view
      .ofType(storageAccountType)
      .find(({ id }) => id.toLowerCase().endsWith(`/${account}`));
    if (found === undefined) {
      throw new BlobError(404, "ResourceNotFound", "The specified resource does not exist.");
    }
    checkAccess(found.body as StorageAccountBody, isSecure);
    if (containerName === "") throw unsupported("an account itself");
    const container = `${found.id}/blobServices/default/containers/${containerName}`;
    return { request, url, account, container, containerName, name: rest.join("/") };
  }

  private perform(asked: Asked): Promise<Reply> | Reply {
    const { request, url, name } = asked;
    const { searchParams } = url;
    const operation = [
      request.method,
      name === "" ? "container" : "blob",
      searchParams.get("restype") ?? "",
      searchParams.get("comp") ?? "",
    ].join(" ");
    switch (operation.trim()) {
      case "GET container container list":
        return this.list(asked);
      case "PUT blob  block":
        return this.putBlock(asked);
      case "PUT blob  blocklist":
        return this.putBlockList(asked);
      case "GET blob":
        return this.get(asked);
      default:
        throw unsupported(operation.replace(/\s+/g, " ").trim());
    }
  }

  private list({ url, container, containerName, account }: Asked): Reply {
    checkQuery(url, ["restype", "comp", "prefix", "marker", "maxresults", "include"]);
    const include = url.searchParams.get("include") ?? "";
    if (!/^(metadata)?$/.test(include)) throw unsupported(`a list with include=${include}`);
    const endpoint = `https://${account}.${blobDomain}/`;
    const body = listOf(this.store.list(container), url.searchParams, {
      endpoint,
      container: containerName,
    });
    return { status: 200, headers: { "content-type": "application/xml" }, body };
  }

  private async putBlock({ request, url, container, name }: Asked): Promise<Reply> {
    checkQuery(url, ["comp", "blockid"]);
    const id = blockIdOf(url.searchParams);
    lengthOf(request, largestBlock);
    await this.store.putBlock(container, name, id, request);
    return { status: 201, headers: { "x-ms-request-server-encrypted": "true" } };
  }

  private async putBlockList({ request, url, container, name }: Asked): Promise<Reply> {
    checkQuery(url, ["comp"]);
    const wanted = await wantedBlocks(request);
    const blob = await this.store.putBlockList(container, name, wanted, metadataOf(request));
    return {
      status: 201,
      headers: { ...propertiesOf(blob), "x-ms-request-server-encrypted": "true" },
    };
  }

  private get({ url, container, name }: Asked): Reply {
    checkQuery(url, []);
    const blob = this.store.find(container, name);
    if (blob === undefined) throw blobNotFound();
    const headers = {
      ...propertiesOf(blob),
      ...metadataHeaders(blob),
      "accept-ranges": "bytes",
      "content-length": blob.size,
      "content-type": blob.contentType ?? contentType,
      "x-ms-blob-type": "BlockBlob",
      "x-ms-creation-time": new Date(blob.created).toUTCString(),
      "x-ms-lease-state": "available",
      "x-ms-lease-status": "unlocked",
      "x-ms-server-encrypted": "true",
    };
    return { status: 200, headers, body: this.store.read(blob, container, name) };
  }
}

const propertiesOf = ({ etag, modified }: Blob) => ({
  etag,
  "last-modified": new Date(modified).toUTCString(),
});

/** Throws when the account takes no requests that come this way. */
function checkAccess(account: StorageAccountBody, isSecure: boolean): void {
  if (account.enableHttpsTrafficOnly && !isSecure) {
    throw new BlobError(
      400,
      "AccountRequiresHttps",
      "The account being accessed does not support http.",
    );
  }
  // Its exceptions, of addresses and networks, are not simulated.
  if (
    account.publicNetworkAccess === "Disabled" ||
    account.networkRuleSet?.defaultAction === "Deny"
  ) {
    throw new BlobError(
      403,
      "AuthorizationFailure",
      "This request is not authorized to perform this operation.",
    );
  }
}

function checkQuery({ searchParams }: URL, allowed: readonly string[]): void {
  const unknown = [...searchParams.keys()].find((name) => ![...allowed, "timeout"].includes(name));
  if (unknown === undefined) return;
  throw new BlobError(
    400,
    "UnsupportedQueryParameter",
    "One of the query parameters specified in the request URI is not supported.",
    { QueryParameterName: unknown },
  );
}

function failed(error: unknown, id: string, now: Date): Reply {
  const { status, code, message, details, headers } =
    error instanceof BlobError
      ? error
      : new BlobError(500, "InternalError", (error as Error).message);
  const text = `${message}\nRequestId:${id}\nTime:${now.toISOString()}`;
  const more = Object.entries(details).map(
    ([name, value]) => `<${name}>${escaped(value)}</${name}>`,
  );
  const body = `\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>${escaped(text)}</Message>${more.join("")}</Error>`;
  return {
    status,
    headers: { ...headers, "x-ms-error-code": code, "content-type": "application/xml" },
    body,
  };
}

const mostResults = 5000;

const entities: Readonly<Record<string, string>> = {
  ...{ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&apos;" },
};

/** By the names of XML itself: Microsoft's client takes a number for text. */
const escaped = (text: string): string =>
  text.replace(/[<>&"']/g, (character) => entities[character]!);

const element = (name: string, value: string | number | undefined): string =>
  value === undefined ? "" : `<${name}>${escaped(String(value))}</${name}>`;

const httpDate = (time: string): string => new Date(time).toUTCString();

const blobElement = (blob: Blob, hasMetadata: boolean): string => {
  const { name, etag, size, created, modified, metadata } = blob;
  const properties = [
    element("Creation-Time", httpDate(created)),
    element("Last-Modified", httpDate(modified)),
    // Lists have it without the quotation marks of the header.
    element("Etag", etag.replaceAll('"', "")),
    element("Content-Length", size),
    element("Content-Type", contentType),
    element("BlobType", "BlockBlob"),
    element("AccessTier", "Hot"),
    element("AccessTierInferred", "true"),
    element("LeaseStatus", "unlocked"),
    element("LeaseState", "available"),
    element("ServerEncrypted", "true"),
  ].join("");
  const kept = Object.entries(metadata).map(([key, value]) => element(key, value));
  return `<Blob>${element("Name", name)}<Properties>${properties}</Properties>${
    hasMetadata ? `<Metadata>${kept.join("")}</Metadata>` : ""
  }</Blob>`;
};

/** A page of the list of a container's blobs. */
export function listOf(
  blobs: readonly Blob[],
  query: URLSearchParams,
  at: { readonly endpoint: string; readonly container: string },
): string {
  const prefix = query.get("prefix") ?? "";
  const marker = query.get("marker") ?? "";
  const wanted = query.get("maxresults");
  const results = Number(wanted ?? mostResults);
  if (!Number.isInteger(results) || results < 1) {
    throw invalidParameter("maxresults", wanted ?? "", "It has to be a number of 1 or more.");
  }
  const from = Buffer.from(marker, "base64url").toString();
  const found = blobs.filter(({ name }) => name.startsWith(prefix) && name >= from);
  const end = Math.min(results, mostResults);
  const next = found[end]?.name;
  const hasMetadata = (query.get("include") ?? "").split(",").includes("metadata");
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    `<EnumerationResults ServiceEndpoint="${escaped(at.endpoint)}" ContainerName="${escaped(at.container)}">`,
    element("Prefix", query.get("prefix") ?? undefined),
    element("Marker", query.get("marker") ?? undefined),
    element("MaxResults", wanted ?? undefined),
    `<Blobs>${found
      .slice(0, end)
      .map((blob) => blobElement(blob, hasMetadata))
      .join("")}</Blobs>`,
    next === undefined
      ? "<NextMarker />"
      : element("NextMarker", Buffer.from(next).toString("base64url")),
    "</EnumerationResults>",
  ].join("");
}
