import { AzureError, conflict } from "./azure-error";
import { ArmId, keyOf } from "./ids";
import { ResourceType } from "./resource-type";

/** Azure does one operation at a time on a network or a security group: this knows which are under way. */
export class Holds {
  private readonly holders = new Map<string, string>();

  /** Takes hold for an operation; returns how to let go. One that takes no time meets no other. */
  take(type: ResourceType, id: ArmId, milliseconds: number): () => void {
    if (type.lock === undefined || milliseconds === 0) return () => undefined;
    const what = keyOf(type.lock(id));
    const holder = this.holders.get(what);
    if (holder !== undefined) throw inProgress(holder);
    this.holders.set(what, id.id);
    return () => void this.holders.delete(what);
  }
}

export const inProgress = (id: string): AzureError =>
  conflict(
    "AnotherOperationInProgress",
    `Another operation on this or dependent resource is in progress. The resource is ${id}.`,
  );
