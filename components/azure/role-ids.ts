import { createHash } from "node:crypto";

import { digest } from "../digest";
import type { Settings } from "../settings/settings";
import { type ExistingNetwork, keyOf, type NetworkPart, networkParts } from "./existing-network";

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

/**
 * The id of a role of Azure's, of which its documentation gives the GUID; one that is an id stays as it is. Azure shows
 * an assignment with the role as the scope's own subscription has it, and a refresh takes that into the state.
 *
 * @param subscriptionId for a scope that is in none
 */
export const roleAt = (role: string, scope: string, subscriptionId: string): string => {
  if (role.startsWith("/")) return role;
  const [, ofScope = subscriptionId] = /^\/subscriptions\/([^/]+)/i.exec(scope) ?? [];
  return `/subscriptions/${ofScope}/providers/Microsoft.Authorization/roleDefinitions/${role}`;
};

/** It follows from all three: an assignment can never be moved to another principal, scope or role. */
export const assignmentName = (principalId: string, scope: string, role: string): string =>
  guid([principalId, scope, role].join(" "));

/** Of a role of the cluster's own; see roles.ts. */
export const ownRoleId = (what: string, clusterName: string, subscriptionId: string): string =>
  guid(`${what}//subscriptions/${subscriptionId}/${clusterName}`);

/** A role that the cluster's own identity gets at what others have made. */
export interface ForeignRole {
  /** Of all of them, it alone. */
  readonly what: string;
  readonly scope: string;
  /** A built-in one, or one of the cluster's own. */
  readonly role: "reader" | "storageBlobDataContributor" | NetworkRole;
}

/** One of the cluster's own; see roles.ts. */
export type NetworkRole = `uses-${NetworkPart}`;

export function foreignRoles(
  settings: Pick<Settings, "cloudProvider" | "etcdBackups" | "diskEncryptionSetId">,
  network: ExistingNetwork | undefined,
): ForeignRole[] {
  const { etcdBackups, diskEncryptionSetId } = settings;
  const container = etcdBackups?.container;
  return [
    ...(container === undefined
      ? []
      : [{ what: "snapshots", scope: container, role: "storageBlobDataContributor" as const }]),
    // Azure wants the set to be read by who makes a disk with it, and by who attaches one to a machine whose OS disk
    // has it (openshift-docs#52550).
    ...(diskEncryptionSetId === ""
      ? []
      : [{ what: "encryption-set", scope: diskEncryptionSetId, role: "reader" as const }]),
    // All of these may be called the same.
    ...networkParts(settings, network).map(({ scope, part }) => ({
      what: `network-${scope.split("/").at(-1)}-${digest(keyOf(scope)).slice(0, 8)}`,
      scope,
      role: `uses-${part}` as const,
    })),
  ];
}

/** The id by which it is assigned. */
export const foreignRoleId = (
  { role, scope }: Pick<ForeignRole, "role" | "scope">,
  { clusterName }: Pick<Settings, "clusterName">,
  subscriptionId: string,
): string =>
  isOwnRole(role)
    ? roleAt(ownRoleId(role, clusterName, subscriptionId), "", subscriptionId)
    : roleAt(builtIn[role], scope, subscriptionId);

export const isOwnRole = (role: ForeignRole["role"]): role is NetworkRole =>
  role.startsWith("uses-");
