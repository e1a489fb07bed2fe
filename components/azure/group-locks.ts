import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import { groupId } from "./resource-names";

/** What keeps everybody, whatever their role, from changing or deleting what is at its scope. */
export interface Lock {
  readonly id: string;
  readonly name: string;
  readonly properties: { readonly level: "CanNotDelete" | "ReadOnly" };
}

export const scopeOf = ({ id }: Pick<Lock, "id">): string =>
  id.replace(/\/providers\/Microsoft\.Authorization\/locks\/[^/]+$/i, "");

/**
 * The locks on the cluster's resource group, and above it. Azure lists those of single resources too. Where the
 * login may not read them, nothing is known.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
 */
export async function getGroupLocks(
  settings: Settings,
  isThere: boolean,
  { arm, subscriptionId }: AzureConnection,
): Promise<Lock[]> {
  const group = groupId(settings, subscriptionId);
  const scope = isThere ? group : `/subscriptions/${subscriptionId}`;
  const locks = await arm
    .list<Lock>(
      `${scope}/providers/Microsoft.Authorization/locks`,
      { "api-version": "2020-05-01" },
      { id: "", name: "", properties: { level: "ReadOnly" } },
    )
    .catch(() => []);
  return locks.filter((lock) =>
    `${group}/`.toLowerCase().startsWith(`${scopeOf(lock)}/`.toLowerCase()),
  );
}
