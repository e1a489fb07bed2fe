import { parseContainer } from "../settings/azure-ids";
import { hasOwnIdentity } from "../settings/logins";
import { toSet } from "../settings/problem";
import { azureName } from "../settings/rules/identities";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./resource-manager";
import { type ExistingNetwork, keyOf } from "./existing-network";
import { assignmentName, foreignRoleId, foreignRoles, roleAt } from "./role-ids";
import { type Shown, shownText } from "./shown";
import { isAllowed, letOwnerGrant, permissionsAt } from "./rights";

/** A role that an identity of this program's own gets at a scope. */
export interface Assignment {
  /** The identity's name. */
  readonly identity: string;
  readonly scope: string;
  /** The id by which it is assigned. */
  readonly role: string;
}

/** Whether Azure has an assignment, or the login may make it: one that is there takes no right any more. */
export async function isAssignable(
  one: Assignment,
  shown: Shown,
  connection: Pick<AzureConnection, "arm">,
): Promise<boolean> {
  const permissions = await permissionsAt(connection.arm, one.scope);
  return (
    isAllowed(permissions, "Microsoft.Authorization/roleAssignments/write") ||
    (await isAssigned(one, shown, connection))
  );
}

/**
 * Whether Azure has an assignment by this program's name for it, as far as the login may read it: what is not known is
 * not refused.
 */
export async function isAssigned(
  { identity, scope, role }: Assignment,
  shown: Shown,
  { arm }: Pick<AzureConnection, "arm">,
): Promise<boolean> {
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const principalId = shownText(shown, token, identity, "principalId");
  if (principalId === undefined) return false;
  const assigned = await arm
    .listOnce<{ name: string }>(
      `${scope}/providers/Microsoft.Authorization/roleAssignments`,
      { "api-version": "2022-04-01", $filter: `atScope() and assignedTo('${principalId}')` },
      { name: "" },
    )
    .catch(() => undefined);
  // One of others gives the same right, and this program's is still to be made.
  const wanted = assignmentName(principalId, scope, role);
  return assigned?.some(({ name }) => keyOf(name) === wanted) ?? true;
}

/**
 * Why this update could not assign its roles at what others have made, and whether there is a container for etcd's
 * snapshots. Those of registries are in registries.ts.
 */
export async function assignedScopeProblems(
  settings: Settings,
  shown: Shown,
  network: ExistingNetwork | undefined,
  connection: AzureConnection,
): Promise<string[]> {
  const { subscriptionId } = connection;
  const instead = `, or name an identity that has them (${toSet("identityId", "ID")})`;
  const asked = [
    ...ofCluster(settings, network, subscriptionId).map((one) => ({ one, instead })),
    ...ofPods(settings, subscriptionId).map((one) => ({ one, instead: "" })),
  ];
  const answers = await Promise.all(
    asked.map(async ({ one, instead: or }) =>
      (await isAssignable(one, shown, connection)) ? [] : [{ scope: one.scope, or }],
    ),
  );
  const refused = answers.flat();
  // A right at a network is one at its subnets.
  const highest = refused.filter(
    ({ scope, or }) =>
      !refused.some(
        (other) => other.or === or && keyOf(scope).startsWith(`${keyOf(other.scope)}/`),
      ),
  );
  const problems = highest.map(
    ({ scope, or }) =>
      `the login may not assign roles at ${scope}, where the settings give identities of this program some: ` +
      `${letOwnerGrant("Role Based Access Control Administrator", scope)}${or}`,
  );
  return [...(await containerProblems(settings, connection)), ...new Set(problems)];
}

/** What this program assigns at what others have made, but for registries. */
export const assignmentsOf = (
  settings: Settings,
  network: ExistingNetwork | undefined,
  subscriptionId: string,
): Assignment[] => [
  ...ofCluster(settings, network, subscriptionId),
  ...ofPods(settings, subscriptionId),
];

function ofCluster(
  settings: Settings,
  network: ExistingNetwork | undefined,
  subscriptionId: string,
): Assignment[] {
  if (!hasOwnIdentity(settings)) return [];
  return foreignRoles(settings, network).map((one) => ({
    ...{ identity: settings.clusterName, scope: one.scope },
    role: foreignRoleId(one, settings, subscriptionId),
  }));
}

const ofPods = (
  { clusterName, workloadIdentities }: Settings,
  subscriptionId: string,
): Assignment[] =>
  workloadIdentities.flatMap((one) =>
    one.roles.map(({ role, scope }) => ({
      ...{ identity: azureName(clusterName, one), scope },
      role: roleAt(role, scope, subscriptionId),
    })),
  );

/** Where the login may not see it, nothing is known. */
async function containerProblems(
  { etcdBackups }: Pick<Settings, "etcdBackups">,
  { arm }: AzureConnection,
): Promise<string[]> {
  const id = etcdBackups?.container ?? "";
  const { account } = parseContainer(id) ?? {};
  if (account === undefined) return [];
  const found = await arm
    .get<object>(id, { "api-version": "2024-01-01" }, {})
    .catch(() => "unknown");
  if (found !== undefined) return [];
  const key = "etcdBackups.container";
  return [
    `${key} is ${id}, expected a container that Azure has: ` +
      `see az storage container-rm list --storage-account ${account} --query '[].id' (${toSet(key, "ID")})`,
  ];
}
