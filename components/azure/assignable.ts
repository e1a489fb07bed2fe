import type { AzureConnection } from "./connection";
import { keyOf } from "./existing-network";
import { isAllowed, permissionsAt } from "./rights";
import { type Shown, shownText } from "./shown";

/** A role that an identity of this program's own gets at a scope. */
export interface Assignment {
  /** The identity's name. */
  readonly identity: string;
  readonly scope: string;
  /** Its GUID, or its id. */
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

/** Whether Azure has an assignment, as far as the login may read it: what is not known is not refused. */
export async function isAssigned(
  { identity, scope, role }: Assignment,
  shown: Shown,
  { arm }: Pick<AzureConnection, "arm">,
): Promise<boolean> {
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const principalId = shownText(shown, token, identity, "principalId");
  if (principalId === undefined) return false;
  const assigned = await arm
    .list<{ properties: { principalId: string; scope: string; roleDefinitionId: string } }>(
      `${scope}/providers/Microsoft.Authorization/roleAssignments`,
      { "api-version": "2022-04-01", $filter: `atScope() and assignedTo('${principalId}')` },
      { properties: { principalId: "", scope: "", roleDefinitionId: "" } },
    )
    .catch(() => undefined);
  const nameOf = (id: string) => keyOf(id.split("/").at(-1)!);
  return (
    assigned?.some(
      ({ properties: one }) =>
        one.principalId === principalId &&
        keyOf(one.scope) === keyOf(scope) &&
        nameOf(one.roleDefinitionId) === nameOf(role),
    ) ?? true
  );
}
