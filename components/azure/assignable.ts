import type { AzureConnection } from "./connection";
import { keyOf } from "./existing-network";
import { isAllowed, permissionsAt } from "./rights";
import { assignmentName } from "./role-ids";
import { type Shown, shownText } from "./shown";

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
