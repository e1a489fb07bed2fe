import type { Settings } from "../settings/settings";
import { isAssigned } from "./assignable";
import { assignmentsOf } from "./assigned-scopes";
import type { AzureConnection } from "./connection";
import type { ExistingNetwork } from "./existing-network";
import { getLocks, holdsAt, type Lock, lockRemoval, lockText } from "./group-locks";
import { pullAssignments, type Registry } from "./registries";
import { groupId } from "./resource-names";
import type { Shown } from "./shown";
import type { WorkloadClients } from "./workload-clients";

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
