import type { IncomingHttpHeaders } from "node:http";

import { BlobError, blobNotFound } from "./blob-error";
import type { Blob, Precondition } from "./store";

const notMet = (): BlobError =>
  new BlobError(
    412,
    "ConditionNotMet",
    "The condition specified using HTTP conditional header(s) is not met.",
  );

/** HTTP dates have whole seconds. */
const secondOf = (time: string): number => Math.floor(Date.parse(time) / 1000);

const names = (value: string, { etag }: Blob): boolean =>
  value === "*" || value.split(/\s*,\s*/).includes(etag);

function checkMatch(headers: IncomingHttpHeaders, blob: Blob | undefined): void {
  const match = headers["if-match"];
  if (match !== undefined && (blob === undefined || !names(match, blob))) throw notMet();
  const unmodified = headers["if-unmodified-since"];
  if (unmodified && blob && secondOf(blob.modified) > secondOf(unmodified)) throw notMet();
}

/** Whether the client has what it asks for already. */
function isKnown(headers: IncomingHttpHeaders, blob: Blob): boolean {
  const noneMatch = headers["if-none-match"];
  const since = headers["if-modified-since"];
  return noneMatch !== undefined
    ? names(noneMatch, blob)
    : since !== undefined && secondOf(blob.modified) <= secondOf(since);
}

/** The conditions of a write. */
export const writable =
  (headers: IncomingHttpHeaders): Precondition =>
  (blob) => {
    checkMatch(headers, blob);
    if (blob === undefined || !isKnown(headers, blob)) return;
    if (headers["if-none-match"] !== "*") throw notMet();
    throw new BlobError(409, "BlobAlreadyExists", "The specified blob already exists.");
  };

/** The conditions of a deletion. */
export const deletable =
  (headers: IncomingHttpHeaders): Precondition =>
  (blob) => {
    if (blob === undefined) throw blobNotFound();
    checkMatch(headers, blob);
    if (isKnown(headers, blob)) throw notMet();
  };

/** The blob that is read; a 304 where the client has it already. */
export function readable(headers: IncomingHttpHeaders, blob: Blob | undefined): Blob {
  if (blob === undefined) throw blobNotFound();
  checkMatch(headers, blob);
  if (isKnown(headers, blob)) {
    const text = "The condition specified using HTTP conditional header(s) is not met.";
    throw new BlobError(304, "ConditionNotMet", text);
  }
  return blob;
}
