import { quoted, toRemove } from "../settings/problem";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./connection";
import { askIdentity, unreadableIdentity } from "./existing-identity";
import { keyOf } from "./existing-network";

/** What Azure says of the identities that service accounts log in as. */
export interface WorkloadClients {
  /** By the identity's id, as `keyOf` writes it. */
  readonly clientIds: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

const write = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write";

/**
 * Asks for identities that exist already, the cluster's where its own pods log in as it, and whether the login may
 * let service accounts log in as them. A federated credential is written in the cluster's subscription, as all that is
 * made: where others have an identity of the same name there, it would be that one's.
 */
export async function getWorkloadClients(
  {
    workloadIdentities,
    machineIdentity,
    identityId: ofCluster,
  }: Pick<Settings, "workloadIdentities" | "machineIdentity" | "identityId">,
  connection: AzureConnection,
): Promise<WorkloadClients> {
  const declared = workloadIdentities.map(({ identityId }) => identityId);
  const ids = [...new Set([...declared, ...(machineIdentity ? [] : [ofCluster])])].filter(Boolean);
  const answers = await Promise.all(
    ids.map(async (id) => ({ id, ...(await askIdentity(id, write, connection)) })),
  );
  return {
    clientIds: new Map(
      answers.flatMap(({ id, identity }) =>
        typeof identity === "object" ? [[keyOf(id), identity.clientId] as const] : [],
      ),
    ),
    problems: answers.flatMap(({ id, identity, isAllowed }) => {
      const isDeclared = declared.includes(id);
      if (!keyOf(id).startsWith(`/subscriptions/${keyOf(connection.subscriptionId)}/`)) {
        const expected = `expected an identity in the cluster's subscription, ${connection.subscriptionId}, where its federated credential is written: take one of those`;
        return isDeclared
          ? `workloadIdentities names ${id}, ${expected}, or give roles in its place, and this program makes one`
          : `identityId is ${id}, ${expected}, or have control planes carry it (${toRemove("machineIdentity")})`;
      }
      // The cluster's own is asked for by itself.
      if (identity === undefined && !isDeclared) return [];
      if (identity === undefined) {
        return (
          `workloadIdentities names ${id}, expected an identity that Azure has: see az identity list --query '[].id', ` +
          "or give roles in its place, and this program makes one"
        );
      }
      return [
        ...(identity === "unreadable" && isDeclared ? [unreadableIdentity(id, "Reader")] : []),
        ...(isAllowed
          ? []
          : [
              `the login may not let service accounts log in as ${id}: let its owner run ` +
                `az role assignment create --assignee LOGIN --role 'Managed Identity Federated Identity Credential Contributor' --scope ${quoted(id)}`,
            ]),
      ];
    }),
  };
}
