import { quoted, toRemove, toSet } from "../settings/problem";
import type { AzureConnection } from "./resource-manager";
import { isAllowed, letOwnerGrant, permissionsAt } from "./rights";
import type { Settings } from "../settings/settings";
import { type Given, identitiesOfOthers } from "./additions";
import { keyOf } from "./existing-network";
import { groupWord } from "./resource-names";
import { shownAs } from "./shown";
import type { AzureAnswer } from "./state";
import { ownAccounts, subjectOf } from "../settings/logins";
import { azureName, mostOfIdentity } from "../settings/rules/identities";

/** An identity that is not this stack's, as Azure has it. */
export interface ExistingIdentity {
  readonly clientId: string;
  readonly principalId: string;
}

/** What Azure says of the identity that the settings name; nothing where they name none. */
export interface IdentityAnswer {
  readonly identity?: ExistingIdentity;
  readonly problems: readonly string[];
}

/** Asks for an identity, and whether the login may do this with it. */
export async function askIdentity(id: string, action: string, { arm }: AzureConnection) {
  const [found, permissions] = await Promise.all([
    arm.getIfReadable<{ readonly properties: ExistingIdentity }>(
      id,
      { "api-version": "2023-01-31" },
      { properties: { clientId: "", principalId: "" } },
    ),
    permissionsAt(arm, id),
  ]);
  return {
    identity: found === "unreadable" ? found : found?.properties,
    isAllowed: isAllowed(permissions, action),
  };
}

/** @param role one that reads it */
const unreadableIdentity = (id: string, role: string): string =>
  `the login may not read the identity ${id}: ${letOwnerGrant(role, id)}`;

/** What Azure asks for of who gives an identity to a machine. */
const assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";

/**
 * Asks for an existing identity, and whether the login may give it to machines. Its region does not matter.
 *
 * @param setting the one that names it
 */
export async function getExistingIdentity(
  setting: "identityId" | "kubeletIdentityId",
  id: string,
  connection: AzureConnection,
): Promise<IdentityAnswer> {
  if (id === "") return { problems: [] };
  const { identity, isAllowed: mayGive } = await askIdentity(id, assign, connection);
  if (identity === undefined) {
    return {
      problems: [
        `${setting} is ${id}, expected an identity that Azure has: see az identity list --query '[].id', ` +
          `or let this program make one (${toRemove(setting)})`,
      ],
    };
  }
  if (identity === "unreadable") {
    return { problems: [unreadableIdentity(id, "Managed Identity Operator")] };
  }
  return {
    identity,
    problems: mayGive
      ? []
      : [
          `the login may not give the identity ${id} to machines: ${letOwnerGrant("Managed Identity Operator", id)}`,
        ],
  };
}

/** Why Azure would refuse every change of these machines. */
export interface AddedIdentity {
  /** Names of machines that have the identity. */
  readonly machines: readonly string[];
  readonly problem: string;
}

/**
 * Identities that others, or their policies, have given machines, and that no request of this login may name. Each change
 * of a machine names all that it has, since Azure takes away what is left out, and Azure asks of each whether the
 * caller may assign it (aad-pod-identity#339).
 *
 * @param previous what the last update has given
 */
export async function getAddedIdentities(
  settings: Settings,
  { machines, shown }: Pick<AzureAnswer, "machines" | "shown">,
  previous: Given | undefined,
  connection: AzureConnection,
): Promise<AddedIdentity[]> {
  const checked = [settings.identityId, settings.kubeletIdentityId].map(keyOf);
  const having = new Map<string, { readonly id: string; readonly machines: string[] }>();
  for (const name of machines.keys()) {
    const vm = shown.get(shownAs("azure-native:compute:VirtualMachine", name)) ?? {};
    for (const id of identitiesOfOthers(vm, settings, previous)) {
      if (checked.includes(keyOf(id))) continue;
      const one = having.get(keyOf(id)) ?? { id, machines: [] };
      one.machines.push(name);
      having.set(keyOf(id), one);
    }
  }
  const answers = await Promise.all(
    [...having.values()].map(async ({ id, machines: names }): Promise<AddedIdentity[]> => {
      // Where Azure says neither, nothing is known.
      const answer = await askIdentity(id, assign, connection).catch(() => undefined);
      if (answer === undefined) return [];
      const { identity, isAllowed } = answer;
      if (identity !== undefined && identity !== "unreadable" && isAllowed) return [];
      const way =
        identity === undefined
          ? `that is gone: for name in ${names.join(" ")}; do az vm identity remove --resource-group ${groupWord(settings)} --name $name --identities ${quoted(id)}; done`
          : `that this login may not assign: ${letOwnerGrant("Managed Identity Operator", id)}`;
      return [
        {
          machines: names,
          problem:
            `${names.join(", ")} ${names.length > 1 ? "have" : "has"} the identity ${id}, which somebody else or a policy has added. A change of a machine names ` +
            `all of its identities, and Azure refuses one ${way}`,
        },
      ];
    }),
  );
  return answers.flat();
}

/** What Azure says of the identities that service accounts log in as. */
export interface WorkloadClients {
  /** By the identity's id, as `keyOf` writes it. */
  readonly clientIds: ReadonlyMap<string, string>;
  /** Of the same, whether each has all federated credentials that this update wants; undefined where nobody knows. */
  readonly isWritten: ReadonlyMap<string, boolean | undefined>;
  readonly problems: readonly string[];
}

/** The federated credentials that the settings want of an identity of others. */
function credentialsOf(settings: Settings, id: string) {
  const { clusterName, workloadIdentities, machineIdentity, identityId: ofCluster } = settings;
  const isIt = (one: string) => keyOf(one) === keyOf(id);
  return [
    ...workloadIdentities.filter(({ identityId }) => isIt(identityId)),
    ...(!machineIdentity && isIt(ofCluster) ? ownAccounts(settings) : []),
  ].map((account) => ({ name: azureName(clusterName, account), subject: subjectOf(account) }));
}

interface Credential {
  readonly name: string;
  /** One that matches claims by an expression has no subject. */
  readonly properties: { readonly issuer: string; readonly subject?: string };
}

/** @param issuer this cluster's, which no other's credentials have */
function compared(
  all: ReturnType<typeof credentialsOf>,
  there: readonly Credential[] | "unreadable",
  issuer: string,
) {
  const wanted = all.length;
  const none = { wanted, others: 0, taken: [], doubled: [], isWritten: undefined };
  if (there === "unreadable") return none;
  const keys = new Set(all.map(({ name }) => keyOf(name)));
  const found = there.filter(({ name }) => keys.has(keyOf(name)));
  const taken = found.filter(({ properties }) => properties.issuer !== issuer);
  const doubled = there.filter(
    (one) =>
      !found.includes(one) &&
      one.properties.issuer === issuer &&
      all.some(({ subject }) => subject === one.properties.subject),
  );
  const isWritten = found.length - taken.length === wanted;
  return { wanted, others: there.length - found.length, taken, doubled, isWritten };
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
    problems: answers.flatMap((answer) => {
      const { id, identity, isAllowed, isWritten, wanted, others, taken, doubled } = answer;
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
        ...doubled.map(
          ({ name, properties: { subject } }) =>
            `the identity ${id} has a federated credential ${name} for ${String(subject)}, and this program would make another one, of which Azure takes one: ` +
            `az resource delete --ids ${quoted(`${id}/federatedIdentityCredentials/${name}`)}`,
        ),
        ...(isAllowed || isWritten
          ? []
          : [
              `the login may not let service accounts log in as ${id}: ` +
                letOwnerGrant("Managed Identity Federated Identity Credential Contributor", id),
            ]),
      ];
    }),
  };
}
