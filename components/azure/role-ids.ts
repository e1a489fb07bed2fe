import { createHash } from "node:crypto";

/** Azure's built-in roles by the ids that every tenant has. */
export const builtIn = {
  networkContributor: "4d97b98b-1d4f-4787-a291-c67834d212e7",
  managedIdentityOperator: "f1a07417-d97a-45cb-824c-7a7467783830",
  reader: "acdd72a7-3385-48ef-bd42-f606fba81ae7",
  storageBlobDataContributor: "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
} as const;

/** A GUID that is always the same for the same text. */
export const guid = (text: string): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, "$1-$2-5$3-8$4-$5");

/** Of a role of the cluster's own; see roles.ts. */
export const ownRoleId = (what: string, clusterName: string, subscriptionId: string): string =>
  guid(`${what}//subscriptions/${subscriptionId}/${clusterName}`);
