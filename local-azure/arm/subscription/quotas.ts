import { conflict } from "../azure-error";
import { ArmId, keyOf } from "../resources/ids";
import { Body, View } from "../resources/resource";
import { families, findSize } from "./skus";

/** Azure's name of the quota for vCPUs of all families together. */
const total = "cores";

/** A limit that no cluster reaches. */
const defaultLimit = 5000;

const machineType = "Microsoft.Compute/virtualMachines";

const sizeOf = (body: Body) =>
  findSize((body["hardwareProfile"] as { vmSize?: string } | undefined)?.vmSize ?? "");

/** vCPU quotas of a region: the total, and one for each family of sizes. */
export class Quotas {
  private limits = new Map<string, number>();

  /**
   * Limits by name, such as `{ cores: 4, standardDSv5Family: 2 }`; others have the default.
   */
  set(limits: Readonly<Record<string, number>>): void {
    for (const [name, limit] of Object.entries(limits)) {
      if (![total, ...families].includes(name) || !Number.isInteger(limit) || limit < 0) {
        throw new Error(
          `${name}: ${limit} is not a quota; expected a whole number for ${total} or one of ${families.join(", ")}`,
        );
      }
    }
    this.limits = new Map(Object.entries(limits));
  }

  /** The response of Microsoft.Compute/locations/usages. */
  usagesIn(location: string, view: View): object[] {
    return [total, ...families].map((name) => ({
      unit: "Count",
      name: { value: name, localizedValue: displayName(name) },
      currentValue: usage(name, location, view),
      limit: this.limitOf(name),
    }));
  }

  /** Throws when a new or resized machine exceeds a quota. */
  check(id: ArmId, body: Body, view: View): void {
    if (id.type.toLowerCase() !== machineType.toLowerCase()) return;
    const location = String(body["location"]);
    const size = sizeOf(body);
    if (size === undefined || sizeOf(view.find(id.id)?.body ?? {}) === size) return;
    for (const name of [total, size.family]) {
      const limit = this.limitOf(name);
      const current = usage(name, location, view, id.id);
      if (current + size.cores <= limit) continue;
      throw conflict(
        "OperationNotAllowed",
        `Operation could not be completed as it results in exceeding approved ${displayName(name)} quota. Additional details - ` +
          `Deployment Model: Resource Manager, Location: ${location}, Current Limit: ${limit}, Current Usage: ${current}, ` +
          `Additional Required: ${size.cores}, (Minimum) New Limit Required: ${current + size.cores}.`,
      );
    }
  }

  private limitOf(name: string): number {
    return this.limits.get(name) ?? defaultLimit;
  }
}

const displayName = (name: string): string =>
  name === total
    ? "Total Regional vCPUs"
    : `${name.replace(/^standard(.+)Family$/, "Standard $1 Family")} vCPUs`;

/** vCPUs that count against a quota, whether their machines run or not. */
const usage = (name: string, location: string, view: View, except = ""): number =>
  view
    .ofType(machineType)
    .filter(({ id, body }) => body["location"] === location && keyOf(id) !== keyOf(except))
    .map(({ body }) => sizeOf(body))
    .filter((size) => name === total || size?.family === name)
    .reduce((sum, size) => sum + (size?.cores ?? 0), 0);
