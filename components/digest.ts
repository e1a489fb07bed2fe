import { createHash } from "node:crypto";

/** A short hash by which a later update sees whether a value is another one: 16 hexadecimal digits. */
export const digest = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
