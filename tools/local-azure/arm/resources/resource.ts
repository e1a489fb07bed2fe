import type { AzureError } from "../azure-error";

/** A resource as the SDK sends and returns it: what ARM nests under `properties` lies flat. */
export type Body = { [property: string]: unknown };

interface Failure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

export interface Resource<B extends Body = Body> {
  readonly id: string;
  /** ARM's type, as `Microsoft.Network/virtualNetworks`. */
  readonly type: string;
  body: B;
  /** Stored, but never returned by GET: customData, digests of secrets, reservations. */
  hidden: Body;
  changed: string;
  /** Why the last operation failed. */
  failure?: Failure;
}

export interface Reference {
  /**
   * Id of the referring part: a NIC's ipConfiguration, a balancer's frontend, else the resource
   * itself.
   */
  readonly from: string;
  /** Id of the resource that refers. */
  readonly owner: string;
  readonly to: string;
  /** The private IP address allocated to this reference to a subnet. */
  readonly address?: string;
  /** The error when the target is missing. @default InvalidResourceReference */
  readonly missing?: AzureError;
  /** Whether the target may be in any region. @default false */
  readonly crossesRegions?: boolean;
}

/** Read access to all resources. */
export interface View {
  find(id: string): Resource | undefined;
  /** Also for sub-resources, such as a load balancer's backend pool. */
  exists(id: string): boolean;
  /** Of one type: roles may be assigned at any resource, too. */
  children(id: string, type: string): Resource[];
  ofType(type: string): Resource[];
  referrers(id: string): readonly Reference[];
}

/** Write access, for types that also change other resources. */
export interface Ledger extends View {
  put(resource: Resource): void;
  remove(id: string): void;
}

/** To Azure and to Pulumi, an undefined property is the same as a missing one. */
export function withoutUndefined<B extends Body>(body: B): B {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as B;
}

/** The second body over the first, object by object; lists, tags and identities are replaced. */
export function merged(old: Body, wanted: Body): Body {
  const isPlain = (value: unknown): value is Body =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  const changed = Object.entries(wanted).map(([key, value]) => {
    const before = old[key];
    const isWhole = key === "tags" || key === "identity";
    return [key, !isWhole && isPlain(before) && isPlain(value) ? merged(before, value) : value];
  });
  return { ...old, ...withoutUndefined(Object.fromEntries(changed) as Body) };
}

/** Only the properties with these names. */
export const pick = (body: Body, names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
