import { parseContainer } from "../settings/blob-container";
import { hasOwnIdentity } from "../settings/own-identity";
import { quoted, toSet } from "../settings/problem";
import { azureName } from "../settings/rules/workload-identities";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import { type ExistingNetwork, networkScopes } from "./existing-network";
import { isAllowed, permissionsAt } from "./rights";
import { shownAs } from "./shown";
import type { AzureAnswer } from "./state";

/**
 * Why this update could not assign its roles at what others have made, and whether there is a container for etcd's
 * snapshots. What an update before has assigned is not asked about: that takes no right any more.
 */
export async function assignedScopeProblems(
  settings: Settings,
  azure: Pick<AzureAnswer, "isBegun" | "shown">,
  network: ExistingNetwork | undefined,
  connection: AzureConnection,
): Promise<string[]> {
  const scopes = [...new Set(newScopes(settings, azure, network))];
  const problems = await Promise.all([
    containerProblems(settings, connection),
    ...scopes.map(async (scope) => {
      const permissions = await permissionsAt(connection.arm, scope);
      return isAllowed(permissions, "Microsoft.Authorization/roleAssignments/write")
        ? []
        : [
            `the login may not assign roles at ${scope}, where the settings give identities of this program some: let its owner run ` +
              `az role assignment create --assignee LOGIN --role 'Role Based Access Control Administrator' --scope ${quoted(scope)}`,
          ];
    }),
  ]);
  return problems.flat();
}

function newScopes(
  settings: Settings,
  { isBegun, shown }: Pick<AzureAnswer, "isBegun" | "shown">,
  network: ExistingNetwork | undefined,
): string[] {
  const { clusterName, etcdBackups, diskEncryptionSetId, workloadIdentities } = settings;
  const ofCluster = [
    etcdBackups?.container ?? "",
    diskEncryptionSetId,
    ...networkScopes(network),
  ].filter(Boolean);
  const token = "azure-native:managedidentity:UserAssignedIdentity";
  const newOnes = workloadIdentities.filter(
    (one) => !isBegun || !shown.has(shownAs(token, azureName(clusterName, one))),
  );
  return [
    ...(hasOwnIdentity(settings) && !isBegun ? ofCluster : []),
    ...newOnes.flatMap(({ roles }) => roles.map(({ scope }) => scope)),
  ];
}

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
