import type { Settings } from "../settings/settings";
import { assignmentsOf, isAssigned } from "./assigned-scopes";
import type { ArmClient, AzureConnection } from "./resource-manager";
import type { ExistingNetwork } from "./existing-network";
import { pullAssignments, type Registry } from "./registries";
import { groupId } from "./resource-names";
import type { Shown } from "./shown";
import type { WorkloadClients } from "./identities";
import { quoted } from "../settings/problem";

/** What keeps everybody, whatever their role, from changing or deleting what is at its scope. */
export interface Lock {
  readonly id: string;
  readonly name: string;
  readonly properties: { readonly level: "CanNotDelete" | "ReadOnly" };
}

export const scopeOf = ({ id }: Pick<Lock, "id">): string =>
  id.replace(/\/providers\/Microsoft\.Authorization\/locks\/[^/]+$/i, "");

/** For people. */
export const lockText = (lock: Lock): string =>
  `the lock ${lock.name} on ${scopeOf(lock)} is ${lock.properties.level}`;

export const lockRemoval = ({ id }: Lock): string =>
  `its owner runs az lock delete --ids ${quoted(id)}`;

const holdsAt = (lock: Lock, scope: string): boolean =>
  `${scope}/`.toLowerCase().startsWith(`${scopeOf(lock)}/`.toLowerCase());

/**
 * The locks at a scope, and above it. Azure lists those below it too. Where the login may not read them, nothing is
 * known.
 *
 * @param asked what is there of the scope, or above it
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
 */
async function getLocks(scope: string, arm: ArmClient, asked = scope): Promise<Lock[]> {
  const locks = await arm
    .list<Lock>(
      `${asked}/providers/Microsoft.Authorization/locks`,
      { "api-version": "2020-05-01" },
      { id: "", name: "", properties: { level: "ReadOnly" } },
    )
    .catch(() => []);
  return locks.filter((lock) => holdsAt(lock, scope));
}

/** The locks on the cluster's resource group, and above it. */
export function getGroupLocks(
  settings: Settings,
  isThere: boolean,
  { arm, subscriptionId }: AzureConnection,
): Promise<Lock[]> {
  const group = groupId(settings, subscriptionId);
  return getLocks(group, arm, isThere ? group : `/subscriptions/${subscriptionId}`);
}

/** What locks on what others have made keep from being done there. */
export interface LocksAnswer {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

interface Foreign {
  /** Identities that have federated credentials of this program, and whether all are written already. */
  readonly isWritten: WorkloadClients["isWritten"];
  readonly network: ExistingNetwork | undefined;
  readonly registries: readonly Registry[];
  readonly shown: Shown;
}

/** What this program makes at a scope of others. */
interface Written {
  readonly what: "role assignment" | "federated credential";
  readonly scope: string;
  /** Whether Azure has it, as far as the login may read it. */
  readonly isThere: () => Promise<boolean>;
}

/**
 * Asks for the locks where roles are assigned and federated credentials written, and on security groups of others.
 * Azure refuses to make such a thing under a lock ReadOnly, and under any to take one away. Those that hold for the
 * cluster's group too are in plan/existing-group.ts.
 */
export async function getForeignLocks(
  settings: Settings,
  { network, registries, shown, isWritten }: Foreign,
  connection: AzureConnection,
): Promise<LocksAnswer> {
  const { arm, subscriptionId } = connection;
  const assignments = [
    ...assignmentsOf(settings, network, subscriptionId),
    ...pullAssignments(settings, registries, subscriptionId),
  ];
  const written: Written[] = [
    ...assignments.map((one) => ({
      ...{ what: "role assignment" as const, scope: one.scope },
      isThere: () => isAssigned(one, shown, connection),
    })),
    ...[...isWritten].map(([scope, is = true]) => ({
      ...{ what: "federated credential" as const, scope },
      isThere: () => Promise.resolve(is),
    })),
  ];
  const groups = settings.cloudProvider ? [...(network?.rules.keys() ?? [])] : [];
  const scopes = new Set([...written.map(({ scope }) => scope), ...groups]);
  const found = await Promise.all([...scopes].map((scope) => getLocks(scope, arm)));
  const group = groupId(settings, subscriptionId);
  const locks = new Map(
    found
      .flat()
      .filter((lock) => !holdsAt(lock, group))
      .map((lock) => [lock.id.toLowerCase(), lock]),
  );
  const answers = await Promise.all(
    [...locks.values()].map((lock) =>
      answerOf(
        lock,
        written.filter(({ scope }) => holdsAt(lock, scope)),
        groups.filter((scope) => holdsAt(lock, scope)),
      ),
    ),
  );
  return {
    problems: answers.flatMap(({ problems }) => problems),
    warnings: answers.flatMap(({ warnings }) => warnings),
  };
}

async function answerOf(
  lock: Lock,
  written: readonly Written[],
  groups: readonly string[],
): Promise<LocksAnswer> {
  const [text, removal] = [lockText(lock), lockRemoval(lock)];
  const isReadOnly = lock.properties.level === "ReadOnly";
  // Under another lock nothing is refused that is made.
  const isThere = await Promise.all(isReadOnly ? written.map((one) => one.isThere()) : []);
  const kindsOf = (all: readonly Written[]) => [...new Set(all.map(({ what }) => what))];
  const missing = kindsOf(written.filter((_, at) => isThere[at] === false));
  if (missing.length > 0) {
    return {
      problems: [
        `${text}, under which Azure makes no ${missing.join(" and no ")}, and this update would: ${removal}`,
      ],
      warnings: [],
    };
  }
  const kinds = kindsOf(written).map((what) => `${what}s`);
  return {
    problems: [],
    warnings: [
      ...(kinds.length === 0
        ? []
        : [
            `${text}: Azure will refuse to take away the ${kinds.join(" and ")} of this program there, in an update that wants them otherwise and in pulumi destroy. Have it removed before: ${removal}`,
          ]),
      ...(isReadOnly && groups.length > 0
        ? [
            `${text}: Azure's cloud provider can add no rules to ${groups.join(", ")}, by which Services of type LoadBalancer are reached: ${removal}`,
          ]
        : []),
    ],
  };
}
