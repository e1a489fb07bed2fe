import { digest } from "../digest";
import type { Settings } from "../settings/settings";
import { type ExistingNetwork, keyOf, networkScopes } from "./existing-network";
import { builtIn, ownRoleId } from "./role-ids";

/** A role that the cluster's own identity gets at what others have made. */
export interface ForeignRole {
  /** Of all of them, it alone. */
  readonly what: string;
  readonly scope: string;
  /** A built-in one, or one of the cluster's own. */
  readonly role: "reader" | "storageBlobDataContributor" | "usesNetwork";
}

export function foreignRoles(
  { etcdBackups, diskEncryptionSetId }: Pick<Settings, "etcdBackups" | "diskEncryptionSetId">,
  network: ExistingNetwork | undefined,
): ForeignRole[] {
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
    // A security group may be called as the network, or as one of another group.
    ...networkScopes(network).map((scope) => ({
      what: `network-${scope.split("/").at(-1)}-${digest(keyOf(scope)).slice(0, 8)}`,
      scope,
      role: "usesNetwork" as const,
    })),
  ];
}

/** The GUID of such a role. */
export const foreignRoleId = (
  role: ForeignRole["role"],
  { clusterName }: Pick<Settings, "clusterName">,
  subscriptionId: string,
): string =>
  role === "usesNetwork" ? ownRoleId("uses-network", clusterName, subscriptionId) : builtIn[role];
