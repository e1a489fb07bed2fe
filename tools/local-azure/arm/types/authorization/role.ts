import { AzureError, conflict, refuse } from "../../azure-error";
import { account, Body, isWithin, keyOf, Ledger, Resource, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";

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
    const definition = custom(body.roleDefinitionId, view)?.body as RoleDefinitionBody | undefined;
    if (definition?.assignableScopes?.some((scope) => isWithin(id.parent, scope)) === false) {
      throw refuse(
        "RoleAssignmentScopeNotAssignableToRoleDefinition",
        `The assignment scope '${id.parent}' is not assignable to role definition '${role(body)}'.`,
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

type RoleDefinitionBody = {
  roleName?: string;
  assignableScopes?: string[];
  permissions?: Permission[];
  roleType?: string;
  createdOn?: string;
};

type Permission = Partial<Record<"actions" | "notActions" | "dataActions", string[]>>;

const roleDefinitionType = "Microsoft.Authorization/roleDefinitions";

/**
 * How long a change is not known to all of Azure: from seconds to minutes, and nobody repeats what
 * was refused for it (pulumi-azure #840).
 */
const replicationSeconds = 30;

/** Whether all of Azure knows by now what has changed then. */
const isReplicated = (changed: string, now: Date, pace: number): boolean =>
  now.getTime() - Date.parse(changed) >= replicationSeconds * 1000 * pace;

const unassignedAt = "unassignedAt";

export const roleDefinition: ResourceType<RoleDefinitionBody> = {
  token: "azure-native:authorization:RoleDefinition",
  type: roleDefinitionType,
  isStateless: true,
  name: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,

  accept({ id, body, old, now }, view) {
    if (!body.roleName || !body.assignableScopes?.length || !body.permissions?.length) {
      throw refuse(
        "InvalidRoleDefinition",
        `Role definition ${id.name} must have a roleName, permissions and at least one of assignableScopes.`,
      );
    }
    const duplicate = view
      .ofType(roleDefinitionType)
      .find((other) => keyOf(other.id) !== id.key && other.body["roleName"] === body.roleName);
    if (duplicate) {
      throw new AzureError(
        409,
        "RoleDefinitionWithSameNameExists",
        `A custom role with the same name already exists in this directory. Use a different name. (${body.roleName})`,
      );
    }
    const timestamp = now.toISOString();
    return {
      body: {
        description: "",
        ...body,
        roleType: "CustomRole",
        createdOn: old?.body.createdOn ?? timestamp,
        updatedOn: timestamp,
        createdBy: account.objectId,
        updatedBy: account.objectId,
      } as RoleDefinitionBody,
    };
  },

  notFound: ({ name }) =>
    new AzureError(
      404,
      "RoleDefinitionDoesNotExist",
      `The specified role definition with ID '${name.replaceAll("-", "")}' does not exist.`,
    ),

  mayDelete({ id, hidden }, view, now, pace) {
    const name = id.split("/").at(-1)!.toLowerCase();
    const used = view
      .ofType("Microsoft.Authorization/roleAssignments")
      .some(({ body }) => String(body["roleDefinitionId"]).toLowerCase().endsWith(name));
    const unassigned = hidden[unassignedAt] as string | undefined;
    if (used || (unassigned !== undefined && !isReplicated(unassigned, now, pace))) {
      throw refuse(
        "RoleDefinitionHasAssignments",
        "There are existing role assignments referencing role (code: RoleDefinitionHasAssignments).",
      );
    }
  },
};

const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";

/** What every role may do that is to manage something. */
const around = [
  "Microsoft.Authorization/*/read",
  "Microsoft.Resources/deployments/*",
  "Microsoft.Resources/subscriptions/resourceGroups/read",
];

/**
 * Built-in roles that a cluster may use, and what each allows; of those without actions, none is given to a
 * cluster's own identity.
 *
 * @see https://learn.microsoft.com/azure/role-based-access-control/built-in-roles
 */
const builtIn: ReadonlyMap<string, Permission> = new Map([
  ["8e3af657-a8ff-443c-a75c-2fe8c4bcb635", { actions: ["*"] }], // Owner
  [
    "b24988ac-6180-42a0-ab88-20f7382dd24c", // Contributor
    {
      actions: ["*"],
      notActions: ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"],
    },
  ],
  ["acdd72a7-3385-48ef-bd42-f606fba81ae7", { actions: ["*/read"] }], // Reader
  ["18d7d88d-d35e-4fb5-a5c3-7773c20a72d9", {}], // User Access Administrator
  [
    "4d97b98b-1d4f-4787-a291-c67834d212e7", // Network Contributor
    { actions: ["Microsoft.Network/*", ...around] },
  ],
  ["9980e02c-c2be-4d73-94e8-173b1dc7cf3c", {}], // Virtual Machine Contributor
  ["7efff54f-a5b4-42b5-a1c5-5411624893ce", {}], // Disk Snapshot Contributor
  ["60fc6e62-5479-42d4-8bf4-67625fcc2840", {}], // Disk Pool Operator
  [
    "f1a07417-d97a-45cb-824c-7a7467783830", // Managed Identity Operator
    {
      actions: [
        "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
        ...around,
      ],
    },
  ],
  ["e40ec5ca-96e0-45a2-b4ff-59039f2c2b59", {}], // Managed Identity Contributor
  ["17d1049b-9a84-46fb-8f53-869881c3d3ab", {}], // Storage Account Contributor
  [
    "7f951dda-4ed3-4680-a7ca-43fe172d538d", // AcrPull
    { actions: ["Microsoft.ContainerRegistry/registries/pull/read"] },
  ],
  [
    "b93aa761-3e63-49ed-ac28-beffa264f7ac", // Container Registry Repository Reader
    {
      dataActions: ["content", "metadata"].map(
        (what) => `Microsoft.ContainerRegistry/registries/repositories/${what}/read`,
      ),
    },
  ],
  ["2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", { dataActions: [`${blobs}/read`] }], // Storage Blob Data Reader
  [
    "ba92f5b4-2d11-453d-a403-e96b0029c9fe", // Storage Blob Data Contributor
    {
      dataActions: ["read", "write", "delete", "add/action", "move/action"].map(
        (verb) => `${blobs}/${verb}`,
      ),
    },
  ],
  ["b7e6dc6d-f1e8-4753-8033-0f276bb0955b", { dataActions: [`${blobs}/*`] }], // Storage Blob Data Owner
]);

/** What GET returns of a role that every tenant has; undefined for others. */
export const builtInRole = (name: string): Body | undefined => {
  const permission = builtIn.get(name.toLowerCase());
  return permission && { roleType: "BuiltInRole", permissions: [permission] };
};

const named = (roleDefinitionId: string): string =>
  roleDefinitionId.split("/").at(-1)!.toLowerCase();

/** Notes that an assignment of a role is gone. */
function unassign(roleDefinitionId: string, ledger: Ledger, now: Date): void {
  const role = custom(roleDefinitionId, ledger);
  if (role !== undefined) role.hidden[unassignedAt] = now.toISOString();
}

const custom = (roleDefinitionId: string, view: View): Resource | undefined =>
  view
    .ofType(roleDefinitionType)
    .find((role) => role.id.toLowerCase().endsWith(`/${named(roleDefinitionId)}`));

function roleExists(
  roleDefinitionId: string,
  view: View,
  isKnown: (role: Resource) => boolean,
): boolean {
  const role = custom(roleDefinitionId, view);
  return builtIn.has(named(roleDefinitionId)) || (role !== undefined && isKnown(role));
}

/**
 * Whether a role allows an operation, such as `…/blobs/read`: of those on resources (actions), or on what is
 * in them (dataActions).
 */
function roleAllows(
  roleDefinitionId: string,
  kind: "actions" | "dataActions",
  action: string,
  view: View,
): boolean {
  const permissions = permissionsOf(roleDefinitionId, view);
  const has = (patterns: readonly string[] = []) => patterns.some((one) => covers(one, action));
  return permissions.some(
    (permission) => has(permission[kind]) && !(kind === "actions" && has(permission.notActions)),
  );
}

/** What a role allows. */
export function permissionsOf(roleDefinitionId: string, view: View): readonly Permission[] {
  const role = custom(roleDefinitionId, view)?.body as RoleDefinitionBody | undefined;
  return role?.permissions ?? [builtIn.get(named(roleDefinitionId)) ?? {}];
}

/** A star stands for any part of a name, also for none with its slash. */
const covers = (pattern: string, action: string): boolean =>
  new RegExp(
    `^${pattern
      .replaceAll("/*/", "*/")
      .split("*")
      .map((part) => part.replace(/[.]/g, "\\."))
      .join(".*")}$`,
    "i",
  ).test(action);
