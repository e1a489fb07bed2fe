import type { Settings } from "../settings/settings";
import { hasOwnIdentity } from "../settings/own-identity";
import type { AzureConnection } from "./connection";
import type { ArmClient } from "./resource-manager";

/** What one role allows: its actions without its exceptions. */
export interface Permission {
  readonly actions?: readonly string[];
  readonly notActions?: readonly string[];
  readonly dataActions?: readonly string[];
  readonly notDataActions?: readonly string[];
}

/** What a cluster is made of, by the right that it takes. */
const needs = {
  Contributor: {
    "create resource groups": "Microsoft.Resources/subscriptions/resourceGroups/write",
    "create networks": "Microsoft.Network/virtualNetworks/write",
    "create machines": "Microsoft.Compute/virtualMachines/write",
  },
  /** Of the program's own identity alone: any other has its rights from others. */
  "User Access Administrator": {
    "create role definitions": "Microsoft.Authorization/roleDefinitions/write",
    "create role assignments": "Microsoft.Authorization/roleAssignments/write",
  },
} as const;

/**
 * What the login may do at a scope. Azure's reference has this list for resource groups and resources
 * only; Azure's own guide asks it for subscriptions as well. Where it is not given, it is empty: nothing
 * is known, and nothing refused.
 *
 * @see https://learn.microsoft.com/rest/api/authorization/permissions
 */
export const permissionsAt = (arm: ArmClient, scope: string): Promise<Permission[]> =>
  arm
    .list<Permission>(
      `${scope}/providers/Microsoft.Authorization/permissions`,
      { "api-version": "2022-04-01" },
      {},
    )
    .catch(() => []);

/** Which rights the login lacks to create a first cluster, by the role that has them. */
export async function rightsProblems(
  settings: Settings,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const scope = `/subscriptions/${subscriptionId}`;
  const permissions = await permissionsAt(arm, scope);
  if (permissions.length === 0) return [];
  return Object.entries(needs).flatMap(([role, actions]) => {
    const isForIdentity = role !== "Contributor";
    if (isForIdentity && !hasOwnIdentity(settings)) return [];
    const lacking = Object.entries(actions)
      .filter(([, action]) => !permits(permissions, action))
      .map(([what]) => what);
    if (lacking.length === 0) return [];
    return [
      `the login may not ${lacking.join(", nor ")} in subscription ${subscriptionId}: let its owner run ` +
        `az role assignment create --assignee LOGIN --role '${role}' --scope ${scope}` +
        (isForIdentity
          ? "; or give the cluster an identity or an application that has its rights already: pulumi config set identityId ID, or servicePrincipalClientId ID"
          : ""),
    ];
  });
}

/** A right that one role takes away another may still give. */
export const permits = (permissions: readonly Permission[], action: string): boolean =>
  permissions.some(({ actions, notActions }) => covers(actions, notActions, action));

/** The same of what is in a resource, such as blobs. */
export const permitsData = (permissions: readonly Permission[], action: string): boolean =>
  permissions.some(({ dataActions, notDataActions }) =>
    covers(dataActions, notDataActions, action),
  );

const covers = (
  patterns: readonly string[] = [],
  exceptions: readonly string[] = [],
  action: string,
): boolean =>
  patterns.some((pattern) => matches(pattern, action)) &&
  !exceptions.some((pattern) => matches(pattern, action));

/** A pattern's star stands for any characters, and between slashes also for nothing. */
const matches = (pattern: string, action: string): boolean =>
  new RegExp(
    `^${pattern
      .replaceAll("/*/", "*/")
      .split("*")
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&"))
      .join(".*")}$`,
    "i",
  ).test(action);
