import { AzureError, conflict, refuse } from "../../azure-error";
import { account, isWithin, keyOf } from "../../resources/ids";
import { Body, Resource, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { isReplicated, roleAllows, roleExists, unassign } from "./role";

type RoleAssignmentBody = {
  principalId: string;
  principalType?: string;
  roleDefinitionId: string;
  scope?: string;
  createdOn?: string;
};

const type = "Microsoft.Authorization/roleAssignments";

export const roleAssignment: ResourceType<RoleAssignmentBody> = {
  token: "azure-native:authorization:RoleAssignment",
  type,
  isStateless: true,
  forceNew: ["principalId"],
  name: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,

  accept({ id, body, old, now, pace }, view) {
    const isKnown = isKnownAt(now, pace);
    const role = (one: RoleAssignmentBody) => one.roleDefinitionId.split("/").at(-1)!.toLowerCase();
    if (old && (old.body.principalId !== body.principalId || role(old.body) !== role(body))) {
      throw refuse(
        "RoleAssignmentUpdateNotPermitted",
        "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
      );
    }
    const actual = principalType(body.principalId, view, isKnown);
    if (actual === undefined) {
      throw refuse(
        "PrincipalNotFound",
        `Principal ${body.principalId.replaceAll("-", "")} does not exist in the directory ${account.tenantId}. ` +
          "Check that you have the correct principal ID. If you are creating this principal and then immediately assigning a role, " +
          "this error might be related to a replication delay.",
      );
    }
    const requested = body.principalType ?? actual;
    if (requested !== actual) {
      throw refuse(
        "UnmatchedPrincipalType",
        `The PrincipalId '${body.principalId.replaceAll("-", "")}' has type '${actual}' , which is different from specified PrinciaplType '${requested}'.`,
      );
    }
    if (!roleExists(body.roleDefinitionId, view, isKnown)) {
      throw refuse(
        "RoleDefinitionDoesNotExist",
        `The specified role definition with ID '${role(body)}' does not exist.`,
      );
    }
    const duplicate = view.ofType(type).find((other) => {
      const theirs = other.body as RoleAssignmentBody;
      return (
        keyOf(other.id) !== id.key &&
        keyOf(theirs.scope ?? "") === keyOf(id.parent) &&
        theirs.principalId === body.principalId &&
        role(theirs) === role(body)
      );
    });
    if (duplicate) {
      throw conflict(
        "RoleAssignmentExists",
        `The role assignment already exists. The ID of the conflicting role assignment is ${duplicate.id.split("/").at(-1)!.replaceAll("-", "")}.`,
      );
    }
    const timestamp = now.toISOString();
    const filled: Body = {
      ...body,
      scope: id.parent,
      principalType: actual,
      createdOn: old?.body.createdOn ?? timestamp,
      updatedOn: timestamp,
      createdBy: account.objectId,
      updatedBy: account.objectId,
    };
    return { body: filled as RoleAssignmentBody };
  },

  notFound: ({ name }) =>
    new AzureError(404, "RoleAssignmentNotFound", `The role assignment '${name}' is not found.`),

  deleted: ({ body }, ledger, now) => unassign(body.roleDefinitionId, ledger, now),
};

/** Whether all of Azure knows a thing by now. */
const isKnownAt =
  (now: Date, pace: number) =>
  ({ changed }: Resource): boolean =>
    isReplicated(changed, now, pace);

/** On a resource, or on what is in it. */
interface Operation {
  readonly kind: "actions" | "dataActions";
  readonly action: string;
  readonly scope: string;
}

interface Moment {
  readonly now: Date;
  readonly pace: number;
}

/** The roles that a principal has by assignments at this scope, or above it. */
export const rolesOf = (
  principalId: string,
  scope: string,
  view: View,
  { now, pace }: Moment,
): string[] =>
  view.ofType(type).flatMap((assignment) => {
    const given = assignment.body as RoleAssignmentBody;
    const isTheirs =
      given.principalId === principalId &&
      isWithin(scope, given.scope ?? "") &&
      isKnownAt(now, pace)(assignment);
    return isTheirs ? [given.roleDefinitionId] : [];
  });

/** Whether an assignment at this scope, or above it, allows a principal an operation. */
export const mayDo = (
  principalId: string,
  { kind, action, scope }: Operation,
  view: View,
  at: Moment,
): boolean =>
  rolesOf(principalId, scope, view, at).some((role) => roleAllows(role, kind, action, view));

/** Principals in the directory: the managed identities and the signed-in service principal. */
function principalType(
  principalId: string,
  view: View,
  isKnown: (resource: Resource) => boolean,
): string | undefined {
  if (principalId === account.objectId) return "ServicePrincipal";
  const isIdentity = view
    .ofType("Microsoft.ManagedIdentity/userAssignedIdentities")
    .some((one) => one.body["principalId"] === principalId && isKnown(one));
  return isIdentity ? "ServicePrincipal" : undefined;
}
