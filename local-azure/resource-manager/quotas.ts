import { conflict } from "./azure-error";
import { ArmId, keyOf } from "./ids";
import { Body, View } from "./resource-type";
import { families, findSize } from "./skus";

/** Azure's name for the processors of all families together. */
const total = "cores";

/** What a large subscription has of everything. */
const usualLimit = 5000;

const machineType = "Microsoft.Compute/virtualMachines";

const sizeOf = (body: Body) =>
  findSize((body["hardwareProfile"] as { vmSize?: string } | undefined)?.vmSize ?? "");

/** How many processors there may be in each region, in all and of each family of sizes. */
export class Quotas {
  private limits = new Map<string, number>();

  /** Limits by name, as `{ cores: 4, standardDSv5Family: 2 }`; what is not named has a usual one. */
  set(limits: Readonly<Record<string, number>>): void {
    for (const [name, limit] of Object.entries(limits)) {
      if (![total, ...families].includes(name) || !Number.isInteger(limit) || limit < 0) {
        throw new Error(
          `${name}: ${limit} is no quota; expected a whole number for ${total} or one of ${families.join(", ")}`,
        );
      }
    }
    this.limits = new Map(Object.entries(limits));
  }

  /** An answer of Microsoft.Compute/locations/usages. */
  usagesIn(location: string, view: View): object[] {
    return [total, ...families].map((name) => ({
      unit: "Count",
      name: { value: name, localizedValue: named(name) },
      currentValue: used(name, location, view),
      limit: this.limitOf(name),
    }));
  }

  /** Refuses a machine, new or resized, for which there is no room. */
  check(id: ArmId, body: Body, view: View): void {
    if (id.type.toLowerCase() !== machineType.toLowerCase()) return;
    const location = String(body["location"]);
    const size = sizeOf(body);
    if (size === undefined || sizeOf(view.find(id.id)?.body ?? {}) === size) return;
    for (const name of [total, size.family]) {
      const limit = this.limitOf(name);
      const others = used(name, location, view, id.id);
      if (others + size.cores <= limit) continue;
      throw conflict(
        "OperationNotAllowed",
        `Operation could not be completed as it results in exceeding approved ${named(name)} quota. Additional details - ` +
          `Deployment Model: Resource Manager, Location: ${location}, Current Limit: ${limit}, Current Usage: ${others}, ` +
          `Additional Required: ${size.cores}, (Minimum) New Limit Required: ${others + size.cores}.`,
      );
    }
  }

  private limitOf(name: string): number {
    return this.limits.get(name) ?? usualLimit;
  }
}

const named = (name: string): string =>
  name === total ? "Total Regional vCPUs" : `${name.replace(/^standard(.+)Family$/, "Standard $1 Family")} vCPUs`;

/** Processors that count against a quota, whether their machines run or not. */
const used = (name: string, location: string, view: View, except = ""): number =>
  view
    .ofType(machineType)
    .filter(({ id, body }) => body["location"] === location && keyOf(id) !== keyOf(except))
    .map(({ body }) => sizeOf(body))
    .filter((size) => name === total || size?.family === name)
    .reduce((sum, size) => sum + (size?.cores ?? 0), 0);
