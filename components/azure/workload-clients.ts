import { ownAccounts } from "../settings/logins";
import { quoted, toRemove, toSet } from "../settings/problem";
import { azureName, mostOfIdentity } from "../settings/rules/identities";
import type { Settings } from "../settings/settings";
import type { AzureConnection } from "./resource-manager";
import { askIdentity, unreadableIdentity } from "./identities";
import { keyOf } from "./existing-network";

/** What Azure says of the identities that service accounts log in as. */
export interface WorkloadClients {
  /** By the identity's id, as `keyOf` writes it. */
  readonly clientIds: ReadonlyMap<string, string>;
  /** Of the same, whether each has all federated credentials that this update wants; undefined where nobody knows. */
  readonly isWritten: ReadonlyMap<string, boolean | undefined>;
  readonly problems: readonly string[];
}

/** Names of the federated credentials that the settings want of an identity of others. */
function credentialsOf(settings: Settings, id: string): string[] {
  const { clusterName, workloadIdentities, machineIdentity, identityId: ofCluster } = settings;
  const isIt = (one: string) => keyOf(one) === keyOf(id);
  return [
    ...workloadIdentities.filter(({ identityId }) => isIt(identityId)),
    ...(!machineIdentity && isIt(ofCluster) ? ownAccounts(settings) : []),
  ].map((account) => azureName(clusterName, account));
}

interface Credential {
  readonly name: string;
  readonly properties: { readonly issuer: string };
}

/** @param issuer this cluster's, which no other's credentials have */
function compared(
  names: readonly string[],
  there: readonly Credential[] | "unreadable",
  issuer: string,
) {
  const wanted = names.length;
  if (there === "unreadable") return { wanted, others: 0, taken: [], isWritten: undefined };
  const keys = new Set(names.map(keyOf));
  const found = there.filter(({ name }) => keys.has(keyOf(name)));
  const taken = found.filter(({ properties }) => properties.issuer !== issuer);
  const isWritten = found.length - taken.length === wanted;
  return { wanted, others: there.length - found.length, taken, isWritten };
}

const write = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write";

/**
 * Asks for identities that exist already, the cluster's where its own pods log in as it, and whether the login may
 * let service accounts log in as them. A federated credential is written in the cluster's subscription, as all that is
 * made: where others have an identity of the same name there, it would be that one's.
 *
 * @param issuer of the cluster's tokens
 */
export async function getWorkloadClients(
  settings: Settings,
  issuer: string,
  connection: AzureConnection,
): Promise<WorkloadClients> {
  const { workloadIdentities, machineIdentity, identityId: ofCluster } = settings;
  const declared = workloadIdentities.map(({ identityId }) => identityId);
  const ids = [...new Set([...declared, ...(machineIdentity ? [] : [ofCluster])])].filter(Boolean);
  const answers = await Promise.all(
    ids.map(async (id) => {
      const [answer, there] = await Promise.all([
        askIdentity(id, write, connection),
        connection.arm.listIfReadable<Credential>(
          `${id}/federatedIdentityCredentials`,
          { "api-version": "2023-01-31" },
          { name: "", properties: { issuer: "" } },
        ),
      ]);
      return { id, ...answer, ...compared(credentialsOf(settings, id), there, issuer) };
    }),
  );
  return {
    isWritten: new Map(answers.map(({ id, isWritten }) => [keyOf(id), isWritten])),
    clientIds: new Map(
      answers.flatMap(({ id, identity }) =>
        typeof identity === "object" ? [[keyOf(id), identity.clientId] as const] : [],
      ),
    ),
    problems: answers.flatMap(({ id, identity, isAllowed, isWritten, wanted, others, taken }) => {
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
        ...(others + wanted > mostOfIdentity
          ? [
              `the identity ${id} has ${others} federated credentials besides the ${wanted} that the settings want of it, and Azure takes ${mostOfIdentity} of an identity: ` +
                "give some service accounts another identity, or roles in its place",
            ]
          : []),
        ...taken.map(
          ({ name, properties }) =>
            `the identity ${id} has a federated credential ${name} of the issuer ${properties.issuer}, expected ${issuer}: a cluster of the same name has it. ` +
            `Take another name for this one (${toSet("clusterName", "NAME")}), or another identity; where nothing logs in by it any more: ` +
            `az resource delete --ids ${quoted(`${id}/federatedIdentityCredentials/${name}`)}`,
        ),
        ...(isAllowed || isWritten
          ? []
          : [
              `the login may not let service accounts log in as ${id}: let its owner run ` +
                `az role assignment create --assignee LOGIN --role 'Managed Identity Federated Identity Credential Contributor' --scope ${quoted(id)}`,
            ]),
      ];
    }),
  };
}
