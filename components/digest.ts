import { createHash } from "node:crypto";

/**
 * A hash of a cluster, the same for ever: for names that a region or all of Azure has once. The same
 * subscription is written in capitals by some tools.
 */
export const clusterHash = (clusterName: string, subscriptionId: string): string =>
  createHash("sha256").update(`${subscriptionId.toLowerCase()}/${clusterName}`).digest("hex");

/** A short hash by which a later update sees whether a value is another one: 16 hexadecimal digits. */
export const digest = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
