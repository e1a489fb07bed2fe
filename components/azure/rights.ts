import type { Settings } from "../settings/settings";
import { hasOwnIdentity } from "../settings/logins";
import { quoted } from "../settings/problem";
import type { ArmClient, AzureConnection } from "./resource-manager";
import { groupId } from "./resource-names";
import { type Shown, shownAs } from "./shown";

/** Who lets the login of an update do something, and by which command. */
export const letOwnerGrant = (role: string, scope: string): string =>
  `let its owner run az role assignment create --assignee LOGIN --role '${role}' --scope ${quoted(scope)}`;

/** What one role allows: its actions without its exceptions. */
export interface Permission {
  readonly actions?: readonly string[];
  readonly notActions?: readonly string[];
  readonly dataActions?: readonly string[];
  readonly notDataActions?: readonly string[];
}

/** Rights at one scope, by what they are for, and the role that gives them. */
interface Need {
  readonly role: string;
  readonly scope: string;
  /** The scope, for people. */
  readonly place: string;
  readonly actions: Readonly<Record<string, string>>;
}

const inSubscription = (subscriptionId: string) => ({
  scope: `/subscriptions/${subscriptionId}`,
  place: `subscription ${subscriptionId}`,
});

/** For the program's own identity alone: any other has its rights from others. */
const roleNeeds = (settings: Settings, subscriptionId: string): Need[] =>
  hasOwnIdentity(settings)
    ? [
        {
          role: "User Access Administrator",
          ...inSubscription(subscriptionId),
          actions: {
            "create role definitions": "Microsoft.Authorization/roleDefinitions/write",
            "create role assignments": "Microsoft.Authorization/roleAssignments/write",
          },
        },
      ]
    : [];

/** What a cluster takes: in a resource group that exists already, all but roles is there alone. */
function needsOf(settings: Settings, subscriptionId: string): Need[] {
  const isOwnGroup = settings.resourceGroup === "";
  return [
    {
      role: "Contributor",
      ...(isOwnGroup
        ? inSubscription(subscriptionId)
        : {
            scope: groupId(settings, subscriptionId),
            place: `resource group ${settings.resourceGroup}`,
          }),
      actions: {
        ...(isOwnGroup && {
          "create resource groups": "Microsoft.Resources/subscriptions/resourceGroups/write",
        }),
        ...(settings.nodeSubnets.length === 0 && {
          "create networks": "Microsoft.Network/virtualNetworks/write",
        }),
        "create machines": "Microsoft.Compute/virtualMachines/write",
      },
    },
    ...roleNeeds(settings, subscriptionId),
  ];
}

/**
 * What the login may do at a scope. Azure's reference has this list for resource groups and resources
 * only; Azure's own guide asks it for subscriptions as well. Where it is not given, it is empty: nothing
 * is known, and nothing refused.
 *
 * @see https://learn.microsoft.com/rest/api/authorization/permissions
 */
export const permissionsAt = (arm: ArmClient, scope: string): Promise<Permission[]> =>
  arm
    .listOnce<Permission>(
      `${scope}/providers/Microsoft.Authorization/permissions`,
      { "api-version": "2022-04-01" },
      {},
    )
    .catch(() => []);

/** Which rights the login lacks to create a first cluster, by the role that has them. */
export const rightsProblems = (settings: Settings, connection: AzureConnection) =>
  lackingOf(needsOf(settings, connection.subscriptionId), connection);

/** Which it lacks to give a living cluster an identity of the program's own, in place of one that others have made. */
export const ownIdentityProblems = (
  settings: Settings,
  shown: Shown,
  connection: AzureConnection,
): Promise<string[]> => {
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const isThere = shown.has(shownAs(token, settings.clusterName));
  return lackingOf(isThere ? [] : roleNeeds(settings, connection.subscriptionId), connection);
};

async function lackingOf(needs: readonly Need[], { arm }: AzureConnection): Promise<string[]> {
  const problems = await Promise.all(
    needs.map(async ({ role, scope, place, actions }) => {
      const permissions = await permissionsAt(arm, scope);
      const lacking = Object.entries(actions)
        .filter(([, action]) => !isAllowed(permissions, action))
        .map(([what]) => what);
      if (lacking.length === 0) return [];
      return [
        `the login may not ${lacking.join(", nor ")} in ${place}: ${letOwnerGrant(role, scope)}` +
          (role === "Contributor"
            ? ""
            : "; or give the cluster an identity or an application that has its rights already: pulumi config set identityId ID, or servicePrincipalClientId ID"),
      ];
    }),
  );
  return problems.flat();
}

/** Whether a login may do this; it is taken to where Azure does not show what it may. */
export const isAllowed = (permissions: readonly Permission[], action: string): boolean =>
  permissions.length === 0 || permits(permissions, action);

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
