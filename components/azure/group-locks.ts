import type { Settings } from "../settings/settings";
import { quoted } from "../settings/problem";
import type { AzureConnection } from "./connection";
import type { ArmClient } from "./resource-manager";
import { groupId } from "./resource-names";

/** What keeps everybody, whatever their role, from changing or deleting what is at its scope. */
export interface Lock {
  readonly id: string;
  readonly name: string;
  readonly properties: { readonly level: "CanNotDelete" | "ReadOnly" };
}

export const scopeOf = ({ id }: Pick<Lock, "id">): string =>
  id.replace(/\/providers\/Microsoft\.Authorization\/locks\/[^/]+$/i, "");

/** For people. */
export const lockText = (lock: Lock): string =>
  `the lock ${lock.name} on ${scopeOf(lock)} is ${lock.properties.level}`;

export const lockRemoval = ({ id }: Lock): string =>
  `its owner runs az lock delete --ids ${quoted(id)}`;

export const holdsAt = (lock: Lock, scope: string): boolean =>
  `${scope}/`.toLowerCase().startsWith(`${scopeOf(lock)}/`.toLowerCase());

/**
 * The locks at a scope, and above it. Azure lists those below it too. Where the login may not read them, nothing is
 * known.
 *
 * @param asked what is there of the scope, or above it
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
 */
export async function getLocks(scope: string, arm: ArmClient, asked = scope): Promise<Lock[]> {
  const locks = await arm
    .list<Lock>(
      `${asked}/providers/Microsoft.Authorization/locks`,
      { "api-version": "2020-05-01" },
      { id: "", name: "", properties: { level: "ReadOnly" } },
    )
    .catch(() => []);
  return locks.filter((lock) => holdsAt(lock, scope));
}

/** The locks on the cluster's resource group, and above it. */
export function getGroupLocks(
  settings: Settings,
  isThere: boolean,
  { arm, subscriptionId }: AzureConnection,
): Promise<Lock[]> {
  const group = groupId(settings, subscriptionId);
  return getLocks(group, arm, isThere ? group : `/subscriptions/${subscriptionId}`);
}
