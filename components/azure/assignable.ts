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
  { identity, scope, role }: Assignment,
  shown: Shown,
  { arm }: Pick<AzureConnection, "arm">,
): Promise<boolean> {
  const permissions = await permissionsAt(arm, scope);
  if (isAllowed(permissions, "Microsoft.Authorization/roleAssignments/write")) return true;
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const principalId = shownText(shown, token, identity, "principalId");
  if (principalId === undefined) return false;
  // Where the login may not read it, nothing is known.
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
