import { digest } from "../digest";
import { quoted } from "../settings/problem";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import type { NeededRight } from "./needed-rights";
import { groupId } from "./resource-names";
import type { ArmClient } from "./resource-manager";
import { type Permission, permits, permitsData } from "./rights";

const version = { "api-version": "2022-04-01" };

/** An identity of others, and what it needs. */
export interface Needy {
  /** Azure's id. */
  readonly id: string;
  readonly principalId: string;
  readonly needed: readonly NeededRight[];
  /** Who needs them, and what becomes of them without. */
  readonly users: string;
}

/**
 * Which rights an existing identity lacks, with the commands that give them, as a text for whoever may
 * run these; undefined where it lacks none. Not a refusal: rights at the resource group can be given when
 * that is there, which is after the first update has begun, and what needs them tries again.
 *
 * @param isGroupThere whether Azure can say what is assigned at the cluster's resource group
 */
export async function lackingRights(
  settings: Settings,
  { arm, subscriptionId }: AzureConnection,
  { id, principalId, needed, users }: Needy,
  isGroupThere: boolean,
): Promise<string | undefined> {
  const subscription = `/subscriptions/${subscriptionId}`;
  const group = groupId(settings, subscriptionId);
  const scopes = [...new Set(needed.map(({ scope }) => scope))];
  const isInGroup = (scope: string) => scope === group || scope.startsWith(`${group}/`);
  // Of what is still to be made Azure says nothing, not even what it will have from above.
  const askedFor = (scope: string): string[] => {
    if (!isInGroup(scope)) return [scope];
    return isGroupThere ? [scope, group] : [subscription];
  };
  const given = new Map(
    await Promise.all(
      scopes.map(
        async (scope) => [scope, await givenAt(arm, askedFor(scope), principalId)] as const,
      ),
    ),
  );
  const lacking = needed.filter((one) => lacks(one, given.get(one.scope)));
  const unread = scopes.filter((scope) => given.get(scope) === undefined);
  if (lacking.length === 0 || (unread.length > 0 && isGroupThere)) return undefined;
  return [
    `The identity ${id} ${unread.length > 0 ? `may lack rights, which the login may not read at ${unread.join(", ")}` : "lacks rights"}. ` +
      `${users}. Have this run by who may assign roles:`,
    ...commands(lacking, principalId, (role) => {
      const hash = digest(role).slice(0, 8);
      return `${settings.clusterName} ${hash} (${subscriptionId})`;
    }),
    ...(isGroupThere || !scopes.some(isInGroup)
      ? []
      : [
          `What is for ${group}, or in it: as soon as that is there, while the first pulumi up goes on.`,
        ]),
  ].join("\n  ");
}

/** Undefined where the login may not read it. */
async function givenAt(
  arm: ArmClient,
  scopes: readonly string[],
  principalId: string,
): Promise<Permission[] | undefined> {
  // Of groups that the identity is in, too.
  const query = { ...version, $filter: `atScope() and assignedTo('${principalId}')` };
  const example = { properties: { roleDefinitionId: "" } };
  try {
    const assigned = await Promise.all(
      scopes.map((scope) => {
        const path = `${scope}/providers/Microsoft.Authorization/roleAssignments`;
        return arm.list<typeof example>(path, query, example);
      }),
    );
    const ids = new Set(assigned.flat().map(({ properties }) => properties.roleDefinitionId));
    const roles = await Promise.all(
      [...ids].map((id) => arm.get<{ properties: { permissions: Permission[] } }>(id, version, {})),
    );
    return roles.flatMap((role) => role?.properties.permissions ?? []);
  } catch {
    return undefined;
  }
}

const lacks = (
  { actions, dataActions = [] }: NeededRight,
  given: readonly Permission[] = [],
): boolean =>
  actions.some((action) => !permits(given, action)) ||
  dataActions.some((action) => !permitsData(given, action));

/** What `az role definition create` takes, without a name. */
interface CustomRole {
  readonly Actions: readonly string[];
  readonly AssignableScopes: string[];
}

/**
 * A role of its own for each set of actions, wherever it is assigned.
 *
 * @param nameOf by its content: no two roles of a tenant may have the same name, and what is lacking another time is another role
 */
function commands(
  lacking: readonly NeededRight[],
  principalId: string,
  nameOf: (role: CustomRole) => string,
): string[] {
  const roles = new Map<string, CustomRole>();
  for (const { scope, actions, builtIn } of lacking) {
    if (builtIn !== undefined) continue;
    const subscription = scope.split("/", 3).join("/");
    roles.set(actions.join(), { Actions: actions, AssignableScopes: [subscription] });
  }
  return [
    ...[...roles.values()].map((role) => {
      const named = { Name: nameOf(role), ...role };
      return `az role definition create --role-definition '${JSON.stringify(named)}'`;
    }),
    ...lacking.map(
      ({ scope, actions, builtIn = nameOf(roles.get(actions.join())!) }) =>
        `az role assignment create --assignee-object-id ${principalId} --assignee-principal-type ServicePrincipal ` +
        `--role '${builtIn}' --scope ${quoted(scope)}`,
    ),
  ];
}
