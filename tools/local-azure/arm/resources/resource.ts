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

export const isBody = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The second body over the first, object by object; lists, tags and identities are replaced. */
export function merged(old: Body, wanted: Body): Body {
  const changed = Object.entries(wanted).map(([key, value]) => {
    const before = old[key];
    const isWhole = key === "tags" || key === "identity";
    return [key, !isWhole && isBody(before) && isBody(value) ? merged(before, value) : value];
  });
  return { ...old, ...withoutUndefined(Object.fromEntries(changed) as Body) };
}

/** Only the properties with these names. */
export const pick = (body: Body, names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));

/** Entra's name. */
export const loginHost = "login.microsoftonline.com";
/**
 * The account of the local Azure. Its ids are constant, so that runs can be compared.
 */
export const account = {
  subscriptionId: "5ca1ab1e-0000-4000-8000-000000000001",
  tenantId: "7e7a7000-0000-4000-8000-000000000002",
  clientId: "c11e4700-0000-4000-8000-000000000003",
  objectId: "0b7ec700-0000-4000-8000-000000000004",
} as const;

export const subscriptionPath = `/subscriptions/${account.subscriptionId}`;

export interface ArmId {
  readonly id: string;
  readonly key: string;
  /** As `Microsoft.Network/virtualNetworks/subnets`. */
  readonly type: string;
  readonly name: string;
  /** Names from the outermost resource inwards; Azure's lists join them with a slash. */
  readonly names: readonly string[];
  /**
   * The parent resource, or else the scope: a resource group, a subscription, another resource.
   */
  readonly parent: string;
  readonly group?: string;
  readonly subscription: string;
}

/** Azure compares ids case-insensitively. */
export const keyOf = (id: string): string => id.toLowerCase().replace(/\/+$/, "");

/** Whether what is at a scope is also at, or below, another one. */
export const isWithin = (scope: string, outer: string): boolean =>
  `${keyOf(scope)}/`.startsWith(`${keyOf(outer)}/`);

export const groupType = "Microsoft.Resources/resourceGroups";

/** Parses an id; undefined when the path is a collection or no id. */
export function parseId(path: string): ArmId | undefined {
  const segments = path.split("/").filter((segment) => segment !== "");
  const [subscriptions, subscription = "", groups, group] = segments;
  if (subscriptions?.toLowerCase() !== "subscriptions" || subscription === "") return undefined;
  const common = {
    id: `/${segments.join("/")}`,
    key: `/${segments.join("/")}`.toLowerCase(),
    subscription,
    group: groups?.toLowerCase() === "resourcegroups" ? group : undefined,
  };

  const provider = segments.findLastIndex((segment) => segment.toLowerCase() === "providers");
  if (provider < 0) {
    if (segments.length === 2) {
      return {
        ...common,
        type: "Microsoft.Resources/subscriptions",
        name: subscription,
        names: [subscription],
        parent: "",
      };
    }
    if (segments.length !== 4 || common.group === undefined) return undefined;
    const parent = `/${segments.slice(0, 2).join("/")}`;
    return { ...common, type: groupType, name: common.group, names: [common.group], parent };
  }

  const nested = segments.slice(provider + 2);
  const types = nested.filter((_, position) => position % 2 === 0);
  const names = nested.filter((_, position) => position % 2 === 1);
  if (names.length === 0 || names.length !== types.length) return undefined;
  const isNested = names.length > 1;
  return {
    ...common,
    type: `${segments[provider + 1]}/${types.join("/")}`,
    name: names.at(-1)!,
    names,
    parent: `/${segments.slice(0, isNested ? -2 : provider).join("/")}`,
  };
}

/** The region of what is there, or of what would be: that of a subnet is its network's. */
export function locationOf(id: string, view: View, body = view.find(id)?.body): string | undefined {
  const own = body?.["location"];
  if (typeof own === "string") return own;
  const parent = parseId(id)?.parent;
  return parent === undefined ? undefined : locationOf(parent, view);
}
