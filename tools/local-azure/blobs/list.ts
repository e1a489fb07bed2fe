import { invalidParameter } from "./blob-error";
import { contentType } from "./requests";
import type { Blob } from "./store";

const mostResults = 5000;

const entities: Readonly<Record<string, string>> = {
  ...{ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&apos;" },
};

/** By the names of XML itself: Microsoft's client takes a number for text. */
export const escaped = (text: string): string =>
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
