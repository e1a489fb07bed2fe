import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";

/** What one role allows: its actions without its exceptions. */
interface Permission {
  readonly actions: readonly string[];
  readonly notActions: readonly string[];
}

/** What a cluster is made of, by the right that it takes. */
const needs = {
  Contributor: {
    "create resource groups": "Microsoft.Resources/subscriptions/resourceGroups/write",
    "create networks": "Microsoft.Network/virtualNetworks/write",
    "create machines": "Microsoft.Compute/virtualMachines/write",
  },
  /** Of a managed identity alone: an application has its rights already. */
  "User Access Administrator": {
    "create role definitions": "Microsoft.Authorization/roleDefinitions/write",
    "create role assignments": "Microsoft.Authorization/roleAssignments/write",
  },
} as const;

/**
 * Which rights the login lacks to create a first cluster, by the role that has them. Azure's
 * reference has this list for resource groups and resources only; Azure's own guide asks it for
 * subscriptions as well. Where it is not given, nothing is known and nothing refused.
 *
 * @see https://learn.microsoft.com/rest/api/authorization/permissions
 */
export async function rightsProblems(
  { servicePrincipal }: Settings,
  { arm, subscriptionId }: AzureConnection,
): Promise<string[]> {
  const scope = `/subscriptions/${subscriptionId}`;
  const path = `${scope}/providers/Microsoft.Authorization/permissions`;
  const permissions = await arm
    .list<Permission>(path, { "api-version": "2022-04-01" }, {})
    .catch(() => []);
  if (permissions.length === 0) return [];
  return Object.entries(needs).flatMap(([role, actions]) => {
    const isForIdentity = role !== "Contributor";
    if (isForIdentity && servicePrincipal !== undefined) return [];
    const lacking = Object.entries(actions)
      .filter(([, action]) => !allows(permissions, action))
      .map(([what]) => what);
    if (lacking.length === 0) return [];
    return [
      `the login may not ${lacking.join(", nor ")} in subscription ${subscriptionId}: let its owner run ` +
        `az role assignment create --assignee LOGIN --role '${role}' --scope ${scope}` +
        (isForIdentity
          ? "; or give the cluster an application that has its rights already: pulumi config set servicePrincipalClientId ID"
          : ""),
    ];
  });
}

/** A right that one role takes away another may still give. */
const allows = (permissions: readonly Permission[], action: string): boolean =>
  permissions.some(
    ({ actions = [], notActions = [] }) =>
      actions.some((pattern) => matches(pattern, action)) &&
      !notActions.some((pattern) => matches(pattern, action)),
  );

/** A pattern's star stands for any characters. */
const matches = (pattern: string, action: string): boolean =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&"))
      .join(".*")}$`,
    "i",
  ).test(action);
