import { conflict, refuse } from "../../azure-error";
import { ArmId, isWithin, parseId, Resource, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";

type LockBody = {
  level: string;
  notes?: string;
};

const type = "Microsoft.Authorization/locks";

export const managementLock: ResourceType<LockBody> = {
  token: "azure-native:authorization:ManagementLockByScope",
  type,
  isStateless: true,

  accept({ id, body }) {
    if (!["CanNotDelete", "ReadOnly"].includes(body.level)) {
      throw refuse("InvalidLockLevel", `Lock ${id.name} has the level '${body.level}'.`);
    }
    return { body };
  },
};

/**
 * Throws where a lock forbids it: one at the resource or above, and of a deletion also one on what is deleted
 * with it. Locks themselves are written and deleted by who has the right to.
 */
export function checkLocks(id: ArmId, operation: "write" | "delete", view: View): void {
  if (id.type.toLowerCase() === type.toLowerCase()) return;
  const scopeOf = (lock: Resource): string => parseId(lock.id)!.parent;
  const holds = (lock: Resource): boolean => {
    const scope = scopeOf(lock);
    const isBelow = operation === "delete" && isWithin(scope, id.id);
    const isHere = isBelow || isWithin(id.id, scope);
    return isHere && (operation === "delete" || lock.body["level"] === "ReadOnly");
  };
  const locks = view.ofType(type).filter(holds);
  if (locks.length === 0) return;
  throw conflict(
    "ScopeLocked",
    `The scope '${id.id}' cannot perform ${operation} operation because following scope(s) are locked: ` +
      `'${locks.map(scopeOf).join("','")}'. Please remove the lock and try again.`,
  );
}
