import { digest } from "../digest";
import type { Settings } from "../settings/settings";
import { type ExistingNetwork, keyOf, type NetworkPart, networkParts } from "./existing-network";
import { builtIn, ownRoleId, roleAt } from "./role-ids";

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
