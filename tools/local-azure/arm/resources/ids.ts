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
