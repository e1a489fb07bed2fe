import { hasOwnIdentity, hasOwnKubeletIdentity } from "../settings/logins";
import { toSet } from "../settings/problem";
import type { Settings } from "../settings/settings";
import { type Assignment, isAssignable } from "./assigned-scopes";
import type { AzureConnection } from "./resource-manager";
import { type ExistingIdentity, getExistingIdentity } from "./identities";
import { lackingRights, type NeededRight, neededRights, type Needy } from "./lacking-rights";
import { groupId, kubeletIdentityName } from "./resource-names";
import { letOwnerGrant } from "./rights";
import { roleAt } from "./role-ids";
import { type Shown, shownText } from "./shown";

/** A container registry that is not this stack's. */
export interface Registry {
  readonly id: string;
  /** Where it is reached; its name is a part of it alone. */
  readonly server: string;
  /** What an identity has to be assigned to pull from it. */
  readonly pull: PullRole;
}

interface PullRole extends Omit<NeededRight, "scope"> {
  readonly builtIn: string;
  /** The GUID that every tenant has. */
  readonly guid: string;
}

/**
 * A registry whose repositories have permissions of their own heeds none of the roles for whole registries.
 *
 * @see https://learn.microsoft.com/azure/container-registry/container-registry-rbac-abac-repository-permissions
 */
const pullRoles: Readonly<Record<"registry" | "repository", PullRole>> = {
  registry: {
    builtIn: "AcrPull",
    guid: "7f951dda-4ed3-4680-a7ca-43fe172d538d",
    actions: ["Microsoft.ContainerRegistry/registries/pull/read"],
  },
  repository: {
    builtIn: "Container Registry Repository Reader",
    guid: "b93aa761-3e63-49ed-ac28-beffa264f7ac",
    actions: [],
    dataActions: ["content", "metadata"].map(
      (what) => `Microsoft.ContainerRegistry/registries/repositories/${what}/read`,
    ),
  },
};

/** By which kubelets pull, where this program makes their identity. */
export const pullAssignments = (
  settings: Settings,
  registries: readonly Registry[],
  subscriptionId: string,
): Assignment[] =>
  hasOwnKubeletIdentity(settings)
    ? registries.map(({ id, pull }) => ({
        ...{ identity: kubeletIdentityName(settings.clusterName), scope: id },
        role: roleAt(pull.guid, id, subscriptionId),
      }))
    : [];

/** What Azure says of the registries that the settings name, and of the identity for them. */
export interface RegistriesAnswer {
  readonly registries: readonly Registry[];
  /** The one that the settings name. */
  readonly identity?: ExistingIdentity;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Asks for each registry, and who may pull from it or let others do so. */
export async function getRegistries(
  settings: Settings,
  shown: Shown,
  connection: AzureConnection,
): Promise<RegistriesAnswer> {
  const { clusterName, kubeletIdentityId: id } = settings;
  const { subscriptionId } = connection;
  const [answers, { identity, problems }] = await Promise.all([
    Promise.all(
      settings.registries.map((_, index) => getRegistry(settings, shown, index, connection)),
    ),
    getExistingIdentity("kubeletIdentityId", id, connection),
  ]);
  const registries = answers.flatMap(({ registry }) => registry ?? []);
  const needy: Needy[] =
    identity === undefined
      ? []
      : [
          {
            ...{ id, principalId: identity.principalId },
            needed: registries.map(({ id: scope, pull }) => ({ scope, ...pull })),
            users: "Without them no machine pulls an image from there",
          },
          // Not this login's to assign: others give that identity its roles, too.
          ...(hasOwnIdentity(settings)
            ? [
                {
                  id: `${groupId(settings, subscriptionId)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${clusterName}`,
                  principalId: shownText(
                    shown,
                    "azure-native:managedidentity:UserAssignedIdentity",
                    clusterName,
                    "principalId",
                  ),
                  needed: neededRights(settings, subscriptionId).filter(
                    ({ scope }) => scope === id,
                  ),
                  users:
                    "Without them no disk is attached to a machine, since each has the identity of kubeletIdentityId",
                },
              ]
            : []),
        ];
  const lacking = await Promise.all(
    needy.map((one) =>
      lackingRights(settings, connection, one, { isGroupThere: true, isBegun: true }),
    ),
  );
  return {
    registries,
    identity,
    problems: [...answers.flatMap(({ problem }) => problem ?? []), ...problems],
    warnings: lacking.filter((one) => one !== undefined),
  };
}

interface ShownRegistry {
  readonly properties: { readonly loginServer: string; readonly roleAssignmentMode?: string };
}

interface Answer {
  readonly registry?: Registry;
  readonly problem?: string;
}

async function getRegistry(
  settings: Settings,
  shown: Shown,
  index: number,
  { arm, subscriptionId }: AzureConnection,
): Promise<Answer> {
  const id = settings.registries[index]!;
  const found = await arm.getIfReadable<ShownRegistry>(
    id,
    { "api-version": "2025-11-01" },
    { properties: { loginServer: "" } },
  );
  if (found === "unreadable") {
    return {
      problem: `the login may not read the registry ${id}, which says by what name it is reached: ${letOwnerGrant("Reader", id)}`,
    };
  }
  if (found === undefined) {
    const key = `registries[${index}]`;
    return {
      problem: `${key} is ${id}, expected a registry that Azure has: see az acr list --query '[].id' (${toSet(key, "ID")})`,
    };
  }
  const { loginServer, roleAssignmentMode } = found.properties;
  const pull =
    pullRoles[roleAssignmentMode === "AbacRepositoryPermissions" ? "repository" : "registry"];
  const registry: Registry = { id, server: loginServer.toLowerCase(), pull };
  const [assignment] = pullAssignments(settings, [registry], subscriptionId);
  if (assignment === undefined || (await isAssignable(assignment, shown, { arm }))) {
    return { registry };
  }
  return {
    registry,
    problem:
      `the login may not assign the role ${pull.builtIn} at ${id}, by which kubelets pull from it: ` +
      `${letOwnerGrant("Role Based Access Control Administrator", id)}, or name an identity that has that role (${toSet("kubeletIdentityId", "ID")})`,
  };
}
