import type { Settings } from "../settings/settings";
import { type Assignment, isAssigned } from "./assignable";
import { assignmentsOf } from "./assigned-scopes";
import type { AzureConnection } from "./connection";
import type { ExistingNetwork } from "./existing-network";
import { getLocks, holdsAt, type Lock, lockRemoval, lockText } from "./group-locks";
import { pullAssignments, type Registry } from "./registries";
import { groupId } from "./resource-names";
import type { Shown } from "./shown";

/** What locks on what others have made keep from being done there. */
export interface LocksAnswer {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

interface Foreign {
  readonly network: ExistingNetwork | undefined;
  readonly registries: readonly Registry[];
  readonly shown: Shown;
}

/**
 * Asks for the locks where roles are assigned, and on security groups of others. Azure refuses to assign a role under
 * a lock ReadOnly, and under any to take one away. Those that hold for the cluster's group too are in
 * plan/existing-group.ts.
 */
export async function getForeignLocks(
  settings: Settings,
  { network, registries, shown }: Foreign,
  connection: AzureConnection,
): Promise<LocksAnswer> {
  const { arm, subscriptionId } = connection;
  const assignments = [
    ...assignmentsOf(settings, network, subscriptionId),
    ...pullAssignments(settings, registries),
  ];
  const groups = settings.cloudProvider ? [...(network?.rules.keys() ?? [])] : [];
  const scopes = new Set([...assignments.map(({ scope }) => scope), ...groups]);
  const found = await Promise.all([...scopes].map((scope) => getLocks(scope, arm)));
  const group = groupId(settings, subscriptionId);
  const locks = new Map(
    found
      .flat()
      .filter((lock) => !holdsAt(lock, group))
      .map((lock) => [lock.id.toLowerCase(), lock]),
  );
  const answers = await Promise.all(
    [...locks.values()].map((lock) => {
      const under = assignments.filter(({ scope }) => holdsAt(lock, scope));
      const guards = groups.filter((scope) => holdsAt(lock, scope));
      return answerOf(lock, under, guards, (one) => isAssigned(one, shown, connection));
    }),
  );
  return {
    problems: answers.flatMap(({ problems }) => problems),
    warnings: answers.flatMap(({ warnings }) => warnings),
  };
}

async function answerOf(
  lock: Lock,
  assignments: readonly Assignment[],
  groups: readonly string[],
  isThere: (one: Assignment) => Promise<boolean>,
): Promise<LocksAnswer> {
  const [text, removal] = [lockText(lock), lockRemoval(lock)];
  const isReadOnly = lock.properties.level === "ReadOnly";
  const there = await Promise.all(assignments.map(isThere));
  if (isReadOnly && there.includes(false)) {
    return {
      problems: [`${text}, under which Azure assigns no role, and this update would: ${removal}`],
      warnings: [],
    };
  }
  return {
    problems: [],
    warnings: [
      ...(assignments.length === 0
        ? []
        : [
            `${text}: Azure will refuse to take the roles away that identities of this program have there, also in pulumi destroy. Have it removed before: ${removal}`,
          ]),
      ...(isReadOnly && groups.length > 0
        ? [
            `${text}: Azure's cloud provider can add no rules to ${groups.join(", ")}, by which Services of type LoadBalancer are reached: ${removal}`,
          ]
        : []),
    ],
  };
}
