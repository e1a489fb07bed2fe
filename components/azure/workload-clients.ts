import type { AzureConnection } from "./connection";
import type { ExistingIdentity } from "./existing-identity";
import { permissionsAt, permits } from "./rights";
import type { Settings } from "../settings/settings";

/** What Azure says of the identities that service accounts log in as. */
export interface WorkloadClients {
  /** By the identity's id in lower case. */
  readonly clientIds: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

const write = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write";

/** Asks for identities that exist already, and whether the login may let service accounts log in as them. */
export async function getWorkloadClients(
  { workloadIdentities }: Pick<Settings, "workloadIdentities">,
  { arm }: AzureConnection,
): Promise<WorkloadClients> {
  const ids = [...new Set(workloadIdentities.map(({ identityId }) => identityId))].filter(Boolean);
  const answers = await Promise.all(
    ids.map(async (id) => {
      const [found, permissions] = await Promise.all([
        arm.get<{ readonly properties: ExistingIdentity }>(
          id,
          { "api-version": "2023-01-31" },
          { properties: { clientId: "", principalId: "" } },
        ),
        permissionsAt(arm, id),
      ]);
      const mayWrite = permissions.length === 0 || permits(permissions, write);
      const problem =
        found === undefined
          ? `workloadIdentities names ${id}, expected an identity that Azure has: see az identity list --query '[].id', ` +
            "or give roles in its place, and this program makes one"
          : mayWrite
            ? undefined
            : `the login may not let service accounts log in as ${id}: let its owner run ` +
              `az role assignment create --assignee LOGIN --role 'Managed Identity Federated Identity Credential Contributor' --scope ${id}`;
      return { id: id.toLowerCase(), clientId: found?.properties.clientId ?? "", problem };
    }),
  );
  return {
    clientIds: new Map(answers.map(({ id, clientId }) => [id, clientId])),
    problems: answers.flatMap(({ problem }) => problem ?? []),
  };
}
