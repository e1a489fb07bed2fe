import { operationNotAllowed, refuse } from "../azure-error";
import { ArmId, Body, keyOf, subscriptionPath, View } from "../resources/resource";
import { families, findSize } from "./offers";

/** Azure's name of the quota for vCPUs of all families of regular machines together. */
const total = "cores";

/** And of the quota for those of spot machines, which count against no other. */
const spotTotal = "lowPriorityCores";

/** A limit that no cluster reaches. */
const defaultLimit = 5000;

const machineType = "Microsoft.Compute/virtualMachines";
const addressType = "Microsoft.Network/publicIPAddresses";

interface AddressQuota {
  readonly localizedValue: string;
  /** Azure's error when there is no room, and what it counts. */
  readonly code: string;
  readonly counts: string;
}

/** Quotas of public addresses by name; Azure has made no Basic ones since September 2025. */
const addressQuotas: Readonly<Record<string, AddressQuota>> = {
  PublicIPAddresses: {
    localizedValue: "Public IP Addresses",
    code: "PublicIPCountLimitReached",
    counts: "public IP addresses",
  },
  IPv4StandardSkuPublicIpAddresses: {
    localizedValue: "Public IPv4 Addresses - Standard",
    code: "IPv4StandardSkuPublicIpCountLimitReached",
    counts: "IPv4 Standard SKU public IP addresses",
  },
};

const coreQuotas = [total, spotTotal, ...families];

const names = [...coreQuotas, ...Object.keys(addressQuotas)];

const sizeOf = (body: Body) =>
  findSize((body["hardwareProfile"] as { vmSize?: string } | undefined)?.vmSize ?? "");

/**
 * Quotas of a region: of vCPUs the total, and one for each family of sizes; and of public addresses.
 */
export class Quotas {
  private limits = new Map<string, number>();

  /**
   * Limits by name, such as `{ cores: 4, standardDSv5Family: 2 }`; others have the default.
   */
  set(limits: Readonly<Record<string, number>>): void {
    for (const [name, limit] of Object.entries(limits)) {
      if (!names.includes(name) || !Number.isInteger(limit) || limit < 0) {
        throw new Error(
          `${name}: ${limit} is not a quota; expected a whole number for one of ${names.join(", ")}`,
        );
      }
    }
    this.limits = new Map(Object.entries(limits));
  }

  /** The response of Microsoft.Compute/locations/usages. */
  usagesIn(location: string, view: View): object[] {
    return coreQuotas.map((name) => ({
      unit: "Count",
      name: { value: name, localizedValue: displayName(name) },
      currentValue: usage(name, location, view),
      limit: this.limitOf(name),
    }));
  }

  /** The response of Microsoft.Network/locations/usages. */
  addressUsagesIn(location: string, view: View): object[] {
    return Object.entries(addressQuotas).map(([name, { localizedValue }]) => ({
      id: `${subscriptionPath}/providers/Microsoft.Network/locations/${location}/usages/${name}`,
      unit: "Count",
      name: { value: name, localizedValue },
      currentValue: addressesIn(location, view),
      limit: this.limitOf(name),
    }));
  }

  /** Throws when a new or resized machine, or a new address, exceeds a quota. */
  check(id: ArmId, body: Body, view: View): void {
    const type = id.type.toLowerCase();
    if (type === machineType.toLowerCase()) this.checkMachine(id, body, view);
    if (type === addressType.toLowerCase() && view.find(id.id) === undefined) {
      this.checkAddress(body, view);
    }
  }

  private checkAddress(body: Body, view: View): void {
    for (const [name, { code, counts }] of Object.entries(addressQuotas)) {
      const limit = this.limitOf(name);
      if (addressesIn(String(body["location"]), view) < limit) continue;
      throw refuse(
        code,
        `Cannot create more than ${limit} ${counts} for this subscription in this region.`,
      );
    }
  }

  private checkMachine(id: ArmId, body: Body, view: View): void {
    const location = String(body["location"]);
    const size = sizeOf(body);
    if (size === undefined || sizeOf(view.find(id.id)?.body ?? {}) === size) return;
    for (const name of body["priority"] === "Spot" ? [spotTotal] : [total, size.family]) {
      const limit = this.limitOf(name);
      const current = usage(name, location, view, id.id);
      if (current + size.cores <= limit) continue;
      throw operationNotAllowed(
        `Operation could not be completed as it results in exceeding approved ${name === spotTotal ? "LowPriorityCores" : displayName(name)} quota. Additional details - ` +
          `Deployment Model: Resource Manager, Location: ${location}, Current Limit: ${limit}, Current Usage: ${current}, ` +
          `Additional Required: ${size.cores}, (Minimum) New Limit Required: ${current + size.cores}.`,
      );
    }
  }

  private limitOf(name: string): number {
    return this.limits.get(name) ?? defaultLimit;
  }
}

const totals: Readonly<Record<string, string>> = {
  [total]: "Total Regional vCPUs",
  [spotTotal]: "Total Regional Low-priority vCPUs",
};

const displayName = (name: string): string =>
  totals[name] ?? `${name.replace(/^standard(.+)Family$/, "Standard $1 Family")} vCPUs`;

/** vCPUs that count against a quota, whether their machines run or not. */
const usage = (name: string, location: string, view: View, except = ""): number =>
  view
    .ofType(machineType)
    .filter(({ id, body }) => body["location"] === location && keyOf(id) !== keyOf(except))
    .filter(({ body }) => (body["priority"] === "Spot") === (name === spotTotal))
    .map(({ body }) => sizeOf(body))
    .filter((size) => name === total || name === spotTotal || size?.family === name)
    .reduce((sum, size) => sum + (size?.cores ?? 0), 0);

const addressesIn = (location: string, view: View): number =>
  view.ofType(addressType).filter(({ body }) => body["location"] === location).length;
